//! A throttle does what its text says, whatever happens to it.
use arbitrary::{Result, Unstructured};
use retryd::budget::throttle::{Balance, Limits};

use crate::slow_throttle::Throttle;
use crate::steps::{Step, each_step};

pub(crate) fn does_what_its_text_says(bytes: &mut Unstructured<'_>) -> Result<()> {
    let mut limits = limits(bytes)?;
    let mut slow = Throttle::new(limits);
    let mut fast = Balance::fresh(&limits);
    // What each grant has left, and the sizes by which it paid.
    let mut grants: Vec<(u32, Limits)> = Vec::new();
    each_step(bytes, |bytes, step| {
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
                assert_eq!(got.is_some(), paid.is_some(), "{retries} retries");
                if let (Some(slow_left), Some(fast_left)) = (paid, got) {
                    (slow, fast) = (slow_left, fast_left);
                    grants.push((retries, limits));
                }
            }
            Step::GiveBack { grant, retries } => {
                let count = grants.len();
                if let Some((left, of)) = grants.get_mut(grant % count.max(1)) {
                    let retries = retries.min(*left);
                    *left -= retries;
                    slow.give_back(retries, *of);
                    fast = fast.give_back(&limits, of.tokens_max, retries);
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
        assert_eq!(fast.grants(&limits), slow.grants());
        assert_eq!(fast.available(&limits), slow.available());
        Ok(())
    })
}

fn limits(bytes: &mut Unstructured<'_>) -> Result<Limits> {
    Ok(Limits {
        tokens_max: bytes.int_in_range(3..=1_000)?,
        token_ratio_thousandths: bytes.int_in_range(1..=1_000_000)?,
    })
}
