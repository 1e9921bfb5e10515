//! Exponential backoff from an attempt number and one draw, in integers, so that every language
//! and every replay gets the same number.
use super::rules::{Backoff, Jitter};

/// The wait after attempt `attempts_made`, spread by `draw`: 1 ms to `backoff.max_ms`.
pub(super) fn wait_ms(backoff: &Backoff, attempts_made: u32, draw: u32) -> u64 {
    let step_ms = step_ms(backoff, attempts_made);
    let wait_ms = match backoff.jitter {
        Jitter::None => step_ms,
        Jitter::Full => 1 + scale(draw, step_ms),
        Jitter::Equal => {
            let half_ms = step_ms.div_ceil(2);
            half_ms + scale(draw, step_ms - half_ms + 1)
        }
    };
    wait_ms.max(1).min(backoff.max_ms)
}

/// `d(1) = min(base, max)`, `d(n+1) = min(max, ceil(d(n) * multiplier))`.
fn step_ms(backoff: &Backoff, attempts_made: u32) -> u64 {
    let mut step_ms = backoff.base_ms.min(backoff.max_ms);
    for _ in 1..attempts_made {
        let grown_ms = step_ms
            .saturating_mul(u64::from(backoff.multiplier_thousandths))
            .div_ceil(1_000)
            .min(backoff.max_ms);
        // At the maximum, or not growing at all: it stays, however many attempts follow.
        if grown_ms <= step_ms {
            break;
        }
        step_ms = grown_ms;
    }
    step_ms
}

/// `floor(draw * range_ms / 2^32)`, a number below `range_ms`.
fn scale(draw: u32, range_ms: u64) -> u64 {
    // The product fits: a range is at most 24 h, below 2^27 ms. Saturated for rules made by hand.
    u64::from(draw).saturating_mul(range_ms) >> u32::BITS
}
