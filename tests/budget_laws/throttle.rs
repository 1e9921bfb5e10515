//! A throttle does what its text says, whatever happens to it.
use proptest::prelude::*;
use retryd::budget::throttle;

use super::histories::{Step, step};
use super::slow_throttle::Throttle;

fn limits() -> impl Strategy<Value = throttle::Limits> {
    let tokens_max = prop_oneof![2 => 3..=20_u32, 1 => 3..=1_000_u32];
    let ratio = prop_oneof![Just(100), Just(253), 1..2_000_u32, 1..=1_000_000_u32];
    (tokens_max, ratio).prop_map(|(tokens_max, token_ratio_thousandths)| throttle::Limits {
        tokens_max,
        token_ratio_thousandths,
    })
}

proptest! {
    #[test]
    fn a_throttle_does_what_its_text_says(
        first in limits(),
        failures_first in 0..600_usize,
        history in prop::collection::vec(step(limits()), 1..80),
    ) {
        let mut limits = first;
        let mut slow = Throttle::new(limits);
        let mut fast = throttle::Balance::fresh(&limits);
        for _ in 0..failures_first.min(2 * limits.tokens_max as usize) {
            slow.fail();
            fast = fast.count_failure();
        }
        // What each grant has left, and the sizes by which it paid.
        let mut grants: Vec<(u32, throttle::Limits)> = Vec::new();
        for step in history {
            match step {
                Step::Report(usage) => {
                    slow.succeed(usage.first_try_successes + usage.retried_successes);
                    fast = fast.deposit(&limits, &usage);
                }
                Step::Fail => {
                    slow.fail();
                    fast = fast.count_failure();
                }
                Step::Ask { retries, .. } => {
                    let (paid, got) = (slow.acquire(retries), fast.withdraw(&limits, retries));
                    prop_assert_eq!(got.is_some(), paid.is_some(), "{} retries", retries);
                    if let (Some(slow_left), Some(fast_left)) = (paid, got) {
                        (slow, fast) = (slow_left, fast_left);
                        grants.push((retries, limits));
                    }
                }
                Step::GiveBack { grant, retries } if !grants.is_empty() => {
                    let (left, of) = grant.get_mut(&mut grants);
                    let retries = retries.min(*left);
                    *left -= retries;
                    slow.give_back(retries, *of);
                    fast = fast.give_back(&limits, of.tokens_max, retries);
                }
                Step::GiveBack { .. } => {}
                Step::Reload(new) => {
                    slow.reload(new);
                    let was = fast;
                    fast = fast.rescaled(&limits, &new);
                    let back = fast.rescaled(&new, &limits);
                    prop_assert!(back.available(&limits) <= was.available(&limits));
                    limits = new;
                }
            }
            prop_assert_eq!(fast.grants(&limits), slow.grants());
            prop_assert_eq!(fast.available(&limits), slow.available());
        }
    }
}
