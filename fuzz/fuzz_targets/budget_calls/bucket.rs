//! A token bucket does what its text says, whatever happens to it.
use arbitrary::{Result, Unstructured};
use retryd::budget::bucket::{Balance, Costs, Debit, Limits};
use retryd::engine::Class;

use crate::slow_bucket::{Bucket, cost};
use crate::steps::{Step, each_step};

pub(crate) fn does_what_its_text_says(bytes: &mut Unstructured<'_>) -> Result<()> {
    let mut limits = limits(bytes)?;
    let mut slow = Bucket::new(limits);
    let mut fast = Balance::fresh(&limits);
    // What each grant has left, and how it was paid.
    let mut grants: Vec<(u32, Class, Limits, Debit)> = Vec::new();
    each_step(bytes, |bytes, step| {
        match step {
            Step::Report(usage) => {
                slow.succeed(usage);
                fast = fast.deposit(&limits, &usage);
            }
            Step::Fail => {}
            Step::Ask { class, retries } => {
                let paid = slow.pay(class, retries);
                let got = fast.withdraw(&limits, class, retries);
                assert_eq!(got.is_some(), paid.is_some(), "{retries} retries");
                if let (Some(slow_left), Some((fast_left, debit))) = (paid, got) {
                    (slow, fast) = (slow_left, fast_left);
                    grants.push((retries, class, limits, debit));
                }
            }
            Step::GiveBack { grant, retries } => {
                let count = grants.len();
                if let Some((left, class, of, debit)) = grants.get_mut(grant % count.max(1)) {
                    let retries = retries.min(*left);
                    *left -= retries;
                    slow.give_back(*class, retries, *of);
                    fast = fast.give_back(&limits, *debit, retries);
                }
            }
            Step::Reload => {
                let new = self::limits(bytes)?;
                slow.reload(new);
                let was = fast.available(&limits);
                fast = fast.rescaled(&limits, &new);
                assert!(fast.rescaled(&new, &limits).available(&limits) <= was);
                limits = new;
            }
        }
        let (tokens, _) = slow.now();
        for class in [Class::Transient, Class::Throttling, Class::Timeout] {
            assert_eq!(fast.grants(&limits, class), cost(limits, class) <= tokens, "{class:?}");
        }
        assert_eq!(u128::from(fast.available(&limits)), slow.available());
        // A price of 1 shows every token.
        let costs = Costs { transient: 1, ..limits.costs };
        assert_eq!(u128::from(fast.available(&Limits { costs, ..limits })), tokens);
        Ok(())
    })
}

fn limits(bytes: &mut Unstructured<'_>) -> Result<Limits> {
    let capacity = bytes.int_in_range(1..=1_000_000)?;
    let mut cost = || bytes.int_in_range(1..=capacity);
    let costs = Costs { transient: cost()?, throttling: cost()?, timeout: cost()? };
    Ok(Limits { capacity, costs })
}
