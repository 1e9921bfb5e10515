//! One balance of any model, and the same steps for all of them.
use super::{Limits, Usage, bucket, ratio, throttle};
use crate::engine::Class;

/// What one budget holds for one key. With limits of another model it grants nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Balance {
    Ratio(ratio::Balance),
    Throttle(throttle::Balance),
    TokenBucket(bucket::Balance),
}

// A million of them are kept.
const _: () = assert!(size_of::<Balance>() <= 64);

impl Balance {
    pub(super) fn fresh(limits: &Limits, now_ms: u64) -> Balance {
        match limits {
            Limits::Ratio(limits) => Balance::Ratio(ratio::Balance::fresh(limits, now_ms)),
            Limits::Throttle(limits) => Balance::Throttle(throttle::Balance::fresh(limits)),
            Limits::TokenBucket(limits) => Balance::TokenBucket(bucket::Balance::fresh(limits)),
        }
    }

    /// Earns for what was reported.
    #[must_use]
    pub(super) fn deposit(self, limits: &Limits, usage: &Usage, now_ms: u64) -> Balance {
        match (self, limits) {
            (Balance::Ratio(balance), Limits::Ratio(limits)) => {
                Balance::Ratio(balance.deposit(limits, usage, now_ms))
            }
            (Balance::Throttle(balance), Limits::Throttle(limits)) => {
                Balance::Throttle(balance.deposit(limits, usage))
            }
            (Balance::TokenBucket(balance), Limits::TokenBucket(limits)) => {
                Balance::TokenBucket(balance.deposit(limits, usage))
            }
            (mismatched, _) => mismatched,
        }
    }

    /// Takes a token from a throttle. The other models charge and do not count.
    #[must_use]
    pub(super) fn count_failure(self) -> Balance {
        match self {
            Balance::Throttle(balance) => Balance::Throttle(balance.count_failure()),
            Balance::Ratio(_) | Balance::TokenBucket(_) => self,
        }
    }

    /// Whether it lets one more retry pass.
    pub(super) fn grants(self, limits: &Limits, class: Class, now_ms: u64) -> bool {
        match (self, limits) {
            (Balance::Ratio(balance), Limits::Ratio(limits)) => balance.grants(limits, now_ms),
            (Balance::Throttle(balance), Limits::Throttle(limits)) => balance.grants(limits),
            (Balance::TokenBucket(balance), Limits::TokenBucket(limits)) => {
                balance.grants(limits, class)
            }
            _ => false,
        }
    }

    /// Pays for one retry. A throttle is not charged, and not asked again.
    pub(super) fn withdraw(self, limits: &Limits, class: Class, now_ms: u64) -> Option<Balance> {
        match (self, limits) {
            (Balance::Ratio(balance), Limits::Ratio(limits)) => {
                balance.withdraw(limits, now_ms).map(Balance::Ratio)
            }
            (Balance::Throttle(balance), Limits::Throttle(_)) => Some(Balance::Throttle(balance)),
            (Balance::TokenBucket(balance), Limits::TokenBucket(limits)) => {
                balance.withdraw(limits, class).map(Balance::TokenBucket)
            }
            _ => None,
        }
    }

    /// Whole retries that it would grant now.
    pub(super) fn available(self, limits: &Limits, now_ms: u64) -> u32 {
        match (self, limits) {
            (Balance::Ratio(balance), Limits::Ratio(limits)) => balance.available(limits, now_ms),
            (Balance::Throttle(balance), Limits::Throttle(limits)) => balance.available(limits),
            (Balance::TokenBucket(balance), Limits::TokenBucket(limits)) => {
                balance.available(limits)
            }
            _ => 0,
        }
    }
}

impl Limits {
    /// Whole retries that a fresh balance would grant.
    pub fn capacity(&self) -> u32 {
        match self {
            Limits::Ratio(limits) => limits.capacity(),
            Limits::Throttle(limits) => limits.capacity(),
            Limits::TokenBucket(limits) => limits.capacity(),
        }
    }

    /// Whether a report of `usage` adds anything.
    pub(super) fn earns(&self, usage: &Usage) -> bool {
        let earned = match self {
            Limits::Ratio(limits) => limits.units_earned(usage),
            Limits::Throttle(limits) => limits.earned(usage),
            Limits::TokenBucket(limits) => limits.tokens_earned(usage),
        };
        0 < earned
    }

    /// Whether a retry is charged. The others count failures instead.
    pub(super) fn charges(&self) -> bool {
        match self {
            Limits::Ratio(_) | Limits::TokenBucket(_) => true,
            Limits::Throttle(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_another_model_grant_nothing() {
        let throttle = throttle::Limits { tokens_max: 10, token_ratio_thousandths: 100 };
        let throttle = Limits::Throttle(throttle);
        let bucket = bucket::Limits { capacity: 500, costs: bucket::Costs::AWS_2026 };
        let bucket = Limits::TokenBucket(bucket);
        let balance = Balance::fresh(&throttle, 0);
        assert!(balance.grants(&throttle, Class::Transient, 0));
        assert!(!balance.grants(&bucket, Class::Transient, 0));
        assert_eq!(balance.withdraw(&bucket, Class::Transient, 0), None);
        assert_eq!(balance.available(&bucket, 0), 0);
        let usage = Usage { first_try_successes: 1, ..Usage::default() };
        assert_eq!(balance.deposit(&bucket, &usage, 0), balance);
    }
}
