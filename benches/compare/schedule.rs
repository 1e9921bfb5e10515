//! When calls are due, whatever becomes of the calls before them.
use std::time::Duration;

use fastrand::Rng;

/// The moments of `calls` in order, from the first one's. Their rate grows evenly from nothing to `per_s` within `ramp`, and
/// stays there.
///
/// Each falls anywhere within its own share of the time, by chance: calls of many callers do not come on a beat. The same
/// seed draws the same moments.
pub(crate) fn due(per_s: u32, ramp: Duration, calls: usize, seed: u64) -> Vec<Duration> {
    let (per_s, ramp_s) = (f64::from(per_s), ramp.as_secs_f64());
    let in_ramp = per_s * ramp_s / 2.0;
    let mut chance = Rng::with_seed(seed);
    let mut moment = |call: usize| {
        let before = call as f64 + chance.f64();
        // So many come before it: a triangle's area while the rate grows, then that of a triangle and a rectangle.
        Duration::from_secs_f64(if before < in_ramp {
            (2.0 * before * ramp_s / per_s).sqrt()
        } else {
            ramp_s / 2.0 + before / per_s
        })
    };
    (0..calls).map(&mut moment).collect()
}
