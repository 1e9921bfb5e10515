//! A ratio does what its text says, whatever happens to it and whenever.
use arbitrary::{Arbitrary, Result, Unstructured};
use retryd::budget::Usage;
use retryd::budget::ratio::{Balance, Debit, Floor, Limits};

use crate::slow_ratio::{self, Ratio};
use crate::steps::{Step, each_step};

pub(crate) fn does_what_its_text_says(bytes: &mut Unstructured<'_>) -> Result<()> {
    let mut limits = limits(bytes)?;
    let mut now_ms = u64::from(u32::arbitrary(bytes)?);
    let mut slow = Ratio::new(limits, now_ms);
    let mut fast = Balance::fresh(&limits, now_ms);
    let mut grants: Vec<(slow_ratio::Debit, Debit)> = Vec::new();
    each_step(bytes, |bytes, step| {
        now_ms = moved(bytes, now_ms, &limits)?;
        match step {
            Step::Report(usage) => {
                slow = slow.at(now_ms);
                slow.report(&usage);
                fast = fast.deposit(&limits, &usage, now_ms);
            }
            Step::Fail => {}
            Step::Ask { retries, .. } => {
                let paid = slow.at(now_ms).pay(retries);
                let got = fast.withdraw(&limits, retries, now_ms);
                assert_eq!(got.is_some(), paid.is_some(), "{retries} at {now_ms}");
                if let (Some((slow_left, owed)), Some((fast_left, debit))) = (paid, got) {
                    (slow, fast) = (slow_left, fast_left);
                    grants.push((owed, debit));
                }
            }
            Step::GiveBack { grant, retries } => {
                let count = grants.len();
                if let Some((owed, debit)) = grants.get_mut(grant % count.max(1)) {
                    slow = slow.at(now_ms);
                    slow.give_back(owed, retries);
                    (fast, *debit) = fast.give_back(&limits, *debit, retries, now_ms);
                }
            }
            Step::Reload => {
                let new = self::limits(bytes)?;
                slow = slow.at(now_ms);
                slow.reload(new);
                let was = fast.available(&limits, now_ms);
                fast = fast.rescaled(&limits, &new, now_ms);
                let back = fast.rescaled(&new, &limits, now_ms);
                assert!(back.available(&limits, now_ms) <= was);
                limits = new;
            }
        }
        same(&slow, fast, now_ms);
        Ok(())
    })
}

/// To the last part of a unit and of a token: what is there now, and what it takes to the next
/// whole retry of each.
fn same(slow: &Ratio, fast: Balance, now_ms: u64) {
    let limits = slow.limits;
    let now = slow.at(now_ms);
    assert_eq!(u128::from(fast.available(&limits, now_ms)), shown(&now), "{now_ms}");
    assert_eq!(fast.grants(&limits, now_ms), now.pay(1).is_some(), "{now_ms}");
    assert_eq!(fast.is_fresh(&limits, now_ms), now.is_fresh(), "{now_ms}");

    let unit_by_unit = Limits { percent: 1, ..limits };
    let missing = u64::try_from(100 - now.window() % 100).expect("at most 100");
    for requests in [missing - 1, missing] {
        let usage = Usage { requests, ..Usage::NOTHING };
        let mut fed = now.clone();
        fed.limits = unit_by_unit;
        fed.report(&usage);
        let available = fast.deposit(&unit_by_unit, &usage, now_ms).available(&limits, now_ms);
        assert_eq!(u128::from(available), shown(&fed), "{requests} units more");
    }

    let token = u128::from(limits.floor.interval_ms);
    let missing = (token - now.floor() % token).div_ceil(u128::from(limits.floor.count.max(1)));
    let missing_ms = u64::try_from(missing).expect("at most a token");
    for later_ms in [missing_ms - 1, missing_ms].map(|ms| now.now_ms() + ms) {
        let available = fast.available(&limits, later_ms);
        assert_eq!(u128::from(available), shown(&slow.at(later_ms)), "at {later_ms}");
    }
}

/// "The counts shown saturate at 2^32 - 1."
fn shown(slow: &Ratio) -> u128 {
    slow.available().min(u32::MAX.into())
}

fn limits(bytes: &mut Unstructured<'_>) -> Result<Limits> {
    Ok(Limits {
        percent: bytes.int_in_range(0..=1_000)?,
        interval_ms: bytes.int_in_range(1_000..=3_600_000)?,
        floor: Floor {
            count: bytes.int_in_range(0..=1_000_000)?,
            interval_ms: bytes.int_in_range(1_000..=3_600_000)?,
        },
    })
}

/// Onwards by a little, to the edges of slots and of the window, by far, and now and then back.
fn moved(bytes: &mut Unstructured<'_>, now_ms: u64, limits: &Limits) -> Result<u64> {
    let off_ms = |bytes: &mut Unstructured<'_>| bytes.int_in_range(-1..=1_i64);
    let (to_ms, off_ms) = match bytes.int_in_range(0..=9)? {
        0 | 1 => {
            let slot = now_ms * 10 / limits.interval_ms + bytes.int_in_range(1..=12)?;
            ((slot * limits.interval_ms).div_ceil(10), off_ms(bytes)?)
        }
        2 => (now_ms + limits.interval_ms, off_ms(bytes)?),
        3 => (now_ms + bytes.int_in_range(0..=2 * limits.interval_ms)?, 0),
        4 => (now_ms + u64::from(u32::arbitrary(bytes)?), 0),
        5 => (now_ms, -bytes.int_in_range(0..=3_000_i64)?),
        6 => (now_ms + bytes.int_in_range(0..=50)?, 0),
        _ => (now_ms, 0),
    };
    Ok(to_ms.saturating_add_signed(off_ms))
}
