//! Any reports and asks, in any order and at any time, against the slow models of the tests.
#![no_main]
use arbitrary::{Arbitrary, Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use retryd::budget::{Usage, bucket, ratio, throttle};
use retryd::engine::Class;
use slow::{SlowBucket, SlowRatio, slow_throttle};

#[path = "../../tests/budget_laws/slow.rs"]
mod slow;

/// The slow models go through all that happened, each time.
const CALLS_MAX: usize = 200;

fuzz_target!(|bytes: &[u8]| {
    let mut bytes = Unstructured::new(bytes);
    // Bytes that end early end the history.
    let _ = match bytes.arbitrary::<u8>().unwrap_or(0) % 3 {
        0 => a_ratio_does_what_its_text_says(&mut bytes),
        1 => a_throttle_does_what_its_text_says(&mut bytes),
        _ => a_bucket_does_what_its_text_says(&mut bytes),
    };
});

enum Call {
    Report(Usage),
    Ask(Class),
}

fn a_ratio_does_what_its_text_says(bytes: &mut Unstructured<'_>) -> Result<()> {
    let limits = ratio::Limits {
        percent: bytes.int_in_range(0..=1_000)?,
        interval_ms: bytes.int_in_range(1_000..=3_600_000)?,
        floor: ratio::Floor {
            count: bytes.int_in_range(0..=1_000_000)?,
            interval_ms: bytes.int_in_range(1_000..=3_600_000)?,
        },
    };
    let mut now_ms = u64::from(u32::arbitrary(bytes)?);
    let mut slow = SlowRatio::new(limits, now_ms);
    let mut balance = ratio::Balance::fresh(&limits, now_ms);
    each_call(bytes, |bytes, call| {
        now_ms = moved(bytes, now_ms, limits.interval_ms)?;
        match call {
            Call::Report(usage) => {
                slow.report(now_ms, &usage);
                balance = balance.deposit(&limits, &usage, now_ms);
            }
            Call::Ask(_) => {
                let granted = slow.ask(now_ms);
                assert_eq!(balance.grants(&limits, now_ms), granted);
                let next = balance.withdraw(&limits, 1, now_ms).map(|(next, _)| next);
                assert_eq!(next.is_some(), granted);
                balance = next.unwrap_or(balance);
            }
        }
        let available = slow.available(now_ms).min(u32::MAX.into());
        assert_eq!(u128::from(balance.available(&limits, now_ms)), available);
        Ok(())
    })
}

fn a_throttle_does_what_its_text_says(bytes: &mut Unstructured<'_>) -> Result<()> {
    let limits = throttle::Limits {
        tokens_max: bytes.int_in_range(3..=1_000)?,
        token_ratio_thousandths: bytes.int_in_range(1..=1_000_000)?,
    };
    let mut counted = Vec::new();
    let mut balance = throttle::Balance::fresh(&limits);
    each_call(bytes, |_, call| {
        match call {
            Call::Report(usage) => {
                counted.push(Some(usage.first_try_successes + usage.retried_successes));
                balance = balance.deposit(&limits, &usage);
            }
            Call::Ask(_) => {
                counted.push(None);
                balance = balance.count_failure();
            }
        }
        let tokens = slow_throttle(&limits, &counted);
        let grants = |failures: i128| {
            2 * (tokens - 1_000 * failures) > 1_000 * i128::from(limits.tokens_max)
        };
        assert_eq!(balance.grants(&limits), grants(0));
        let ahead = (1..).take_while(|failures| grants(*failures)).count();
        assert_eq!(usize::try_from(balance.available(&limits)), Ok(ahead));
        Ok(())
    })
}

fn a_bucket_does_what_its_text_says(bytes: &mut Unstructured<'_>) -> Result<()> {
    let capacity = bytes.int_in_range(1..=1_000_000)?;
    let mut cost = || bytes.int_in_range(1..=capacity);
    let costs = bucket::Costs { transient: cost()?, throttling: cost()?, timeout: cost()? };
    let limits = bucket::Limits { capacity, costs };
    let mut slow = SlowBucket::new(limits);
    let mut balance = bucket::Balance::fresh(&limits);
    each_call(bytes, |_, call| {
        match call {
            Call::Report(usage) => {
                slow.report(&usage);
                balance = balance.deposit(&limits, &usage);
            }
            Call::Ask(class) => {
                let granted = slow.ask(class);
                assert_eq!(balance.grants(&limits, class), granted);
                let next = balance.withdraw(&limits, class, 1).map(|(next, _)| next);
                assert_eq!(next.is_some(), granted);
                balance = next.unwrap_or(balance);
            }
        }
        assert_eq!(i128::from(balance.available(&limits)), slow.available());
        Ok(())
    })
}

fn each_call(
    bytes: &mut Unstructured<'_>,
    mut play: impl FnMut(&mut Unstructured<'_>, Call) -> Result<()>,
) -> Result<()> {
    for _ in 0..CALLS_MAX {
        if bytes.is_empty() {
            break;
        }
        let call = match bytes.int_in_range(0..=4)? {
            0 => Call::Report(usage(bytes)?),
            1 => Call::Ask(Class::Throttling),
            2 => Call::Ask(Class::Timeout),
            _ => Call::Ask(Class::Transient),
        };
        play(bytes, call)?;
    }
    Ok(())
}

/// A report as the border lets it in.
fn usage(bytes: &mut Unstructured<'_>) -> Result<Usage> {
    fn count(bytes: &mut Unstructured<'_>) -> Result<u64> {
        let max = if bool::arbitrary(bytes)? { 100 } else { Usage::COUNT_MAX };
        bytes.int_in_range(0..=max)
    }
    let retried_successes = count(bytes)?;
    let retried_transient = bytes.int_in_range(0..=retried_successes)?;
    let retried_throttling = bytes.int_in_range(0..=retried_successes - retried_transient)?;
    let rest = retried_successes - retried_transient - retried_throttling;
    let period_ms = bool::arbitrary(bytes)?.then(|| bytes.int_in_range(1..=u64::MAX));
    Ok(Usage {
        requests: count(bytes)?,
        first_try_successes: count(bytes)?,
        retried_successes,
        retried_transient,
        retried_throttling,
        retried_timeout: bytes.int_in_range(0..=rest)?,
        period_ms: period_ms.transpose()?,
    })
}

/// Onwards by a little, to the edges of slots and of the window, by far, and now and then back.
fn moved(bytes: &mut Unstructured<'_>, now_ms: u64, interval_ms: u64) -> Result<u64> {
    let slot_ms = interval_ms / 10;
    let edge = |bytes: &mut Unstructured<'_>, ms: u64| bytes.int_in_range(ms - 1..=ms + 1);
    let later_ms = match bytes.int_in_range(0..=7)? {
        0 => edge(bytes, slot_ms)?,
        1 => edge(bytes, interval_ms)?,
        2 => bytes.int_in_range(0..=2 * interval_ms)?,
        3 => u64::from(u32::arbitrary(bytes)?),
        4 => return Ok(now_ms.saturating_sub(bytes.int_in_range(0..=slot_ms)?)),
        _ => bytes.int_in_range(0..=50)?,
    };
    Ok(now_ms + later_ms)
}
