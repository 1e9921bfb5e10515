//! A ratio does what its text says, whatever happens to it.
use proptest::prelude::*;
use retryd::budget::{Usage, ratio};

use super::histories::{Step, step};
use super::moments::{Gap, gap, start_ms};
use super::slow_ratio::Ratio;

fn limits() -> impl Strategy<Value = ratio::Limits> {
    let percent = prop_oneof![Just(0), Just(70), 1..=100_u32, 0..=1_000_u32];
    let odd_ms = prop::sample::select(vec![1_001, 1_111, 10_005]);
    let interval_ms = || prop_oneof![Just(1_000), Just(10_000), odd_ms.clone(), 1_000..20_000_u64];
    let floor = (0..12_u32, interval_ms())
        .prop_map(|(count, interval_ms)| ratio::Floor { count, interval_ms });
    (percent, interval_ms(), floor).prop_map(|(percent, interval_ms, floor)| ratio::Limits {
        percent,
        interval_ms,
        floor,
    })
}

fn history() -> impl Strategy<Value = Vec<(Gap, Step<ratio::Limits>)>> {
    prop::collection::vec((gap(), step(limits())), 1..80)
}

proptest! {
    #[test]
    fn a_ratio_does_what_its_text_says(
        first in limits(),
        start_ms in start_ms(),
        history in history(),
    ) {
        let (mut now_ms, mut limits) = (start_ms, first);
        let mut slow = Ratio::new(limits, now_ms);
        let mut fast = ratio::Balance::fresh(&limits, now_ms);
        let mut grants = Vec::new();
        for (gap, step) in history {
            now_ms = gap.after(now_ms, &limits);
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
                    prop_assert_eq!(got.is_some(), paid.is_some(), "{} at {}", retries, now_ms);
                    if let (Some((slow_left, owed)), Some((fast_left, debit))) = (paid, got) {
                        (slow, fast) = (slow_left, fast_left);
                        grants.push((owed, debit));
                    }
                }
                Step::GiveBack { grant, retries } if !grants.is_empty() => {
                    let (owed, debit) = grant.get_mut(&mut grants);
                    slow = slow.at(now_ms);
                    slow.give_back(owed, retries);
                    (fast, *debit) = fast.give_back(&limits, *debit, retries, now_ms);
                }
                Step::GiveBack { .. } => {}
                Step::Reload(new) => {
                    slow = slow.at(now_ms);
                    slow.reload(new);
                    let was = fast;
                    fast = fast.rescaled(&limits, &new, now_ms);
                    let back = fast.rescaled(&new, &limits, now_ms);
                    prop_assert!(back.available(&limits, now_ms) <= was.available(&limits, now_ms));
                    limits = new;
                }
            }
            same(&slow, fast, now_ms)?;
        }
    }
}

/// To the last part of a unit and of a token: what is there now, and what it takes to the next
/// whole retry of each.
fn same(slow: &Ratio, fast: ratio::Balance, now_ms: u64) -> Result<(), TestCaseError> {
    let limits = slow.limits;
    let now = slow.at(now_ms);
    prop_assert_eq!(u128::from(fast.available(&limits, now_ms)), now.available(), "{}", now_ms);
    prop_assert_eq!(fast.grants(&limits, now_ms), now.pay(1).is_some(), "{}", now_ms);
    prop_assert_eq!(fast.is_fresh(&limits, now_ms), now.is_fresh(), "{}", now_ms);

    let unit_by_unit = ratio::Limits { percent: 1, ..limits };
    let missing = u64::try_from(100 - now.window() % 100).unwrap();
    for requests in [missing - 1, missing] {
        let usage = Usage { requests, ..Usage::NOTHING };
        let mut fed = now.clone();
        fed.limits = unit_by_unit;
        fed.report(&usage);
        let available = fast.deposit(&unit_by_unit, &usage, now_ms).available(&limits, now_ms);
        prop_assert_eq!(u128::from(available), fed.available(), "{} units more", requests);
    }

    let token = u128::from(limits.floor.interval_ms);
    let missing = (token - now.floor() % token).div_ceil(u128::from(limits.floor.count.max(1)));
    let seen_ms = now.now_ms();
    for later_ms in [missing - 1, missing].map(|ms| seen_ms + u64::try_from(ms).unwrap()) {
        let available = fast.available(&limits, later_ms);
        prop_assert_eq!(u128::from(available), slow.at(later_ms).available(), "at {}", later_ms);
    }
    Ok(())
}
