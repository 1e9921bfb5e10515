//! A token bucket does what its text says, whatever happens to it.
use proptest::prelude::*;
use retryd::budget::bucket;
use retryd::engine::Class;

use super::histories::{Step, step};
use super::slow_bucket::{Bucket, cost};

fn limits() -> impl Strategy<Value = bucket::Limits> {
    let capacity = prop_oneof![4 => 1..=600_u32, 1 => 1..=1_000_000_u32];
    let share = || prop_oneof![9 => 1..=200_u32, 1 => Just(1_000)];
    (capacity, share(), share(), share()).prop_map(|(capacity, transient, throttling, timeout)| {
        let cost =
            |share: u32| (capacity / 1_000 * share + capacity % 1_000 * share / 1_000).max(1);
        let costs = bucket::Costs {
            transient: cost(transient),
            throttling: cost(throttling),
            timeout: cost(timeout),
        };
        bucket::Limits { capacity, costs }
    })
}

proptest! {
    #[test]
    fn a_bucket_does_what_its_text_says(
        first in limits(),
        history in prop::collection::vec(step(limits()), 1..80),
    ) {
        let mut limits = first;
        let mut slow = Bucket::new(limits);
        let mut fast = bucket::Balance::fresh(&limits);
        let mut grants = Vec::new();
        for step in history {
            match step {
                Step::Report(usage) => {
                    slow.succeed(usage);
                    fast = fast.deposit(&limits, &usage);
                }
                Step::Fail => {}
                Step::Ask { class, retries } => {
                    let paid = slow.pay(class, retries);
                    let got = fast.withdraw(&limits, class, retries);
                    prop_assert_eq!(got.is_some(), paid.is_some(), "{} retries", retries);
                    if let (Some(slow_left), Some((fast_left, debit))) = (paid, got) {
                        (slow, fast) = (slow_left, fast_left);
                        grants.push((retries, class, limits, debit));
                    }
                }
                Step::GiveBack { grant, retries } if !grants.is_empty() => {
                    let (left, class, of, debit) = grant.get_mut(&mut grants);
                    let retries = retries.min(*left);
                    *left -= retries;
                    slow.give_back(*class, retries, *of);
                    fast = fast.give_back(&limits, *debit, retries);
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
            for class in [Class::Transient, Class::Throttling, Class::Timeout] {
                let granted = cost(limits, class) <= slow.now().0;
                prop_assert_eq!(fast.grants(&limits, class), granted, "{:?}", class);
            }
            prop_assert_eq!(u128::from(fast.available(&limits)), slow.available());
            // A price of 1 shows every token.
            let costs = bucket::Costs { transient: 1, ..limits.costs };
            let tokens = fast.available(&bucket::Limits { costs, ..limits });
            prop_assert_eq!(u128::from(tokens), slow.now().0);
        }
    }
}
