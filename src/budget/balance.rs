//! One balance of any model, and the same steps for all of them.
use std::mem::discriminant;

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
    pub(super) fn grants(self, limits: &Limits, purpose: Purpose, now_ms: u64) -> bool {
        match (self, limits) {
            (Balance::Ratio(balance), Limits::Ratio(limits)) => balance.grants(limits, now_ms),
            (Balance::Throttle(balance), Limits::Throttle(limits)) => balance.grants(limits),
            (Balance::TokenBucket(balance), Limits::TokenBucket(limits)) => {
                balance.grants(limits, purpose.class())
            }
            _ => false,
        }
    }

    /// Pays for `retries`, all or none.
    pub(super) fn withdraw(
        self,
        limits: &Limits,
        purpose: Purpose,
        retries: u32,
        now_ms: u64,
    ) -> Option<(Balance, Debit)> {
        match (self, limits) {
            (Balance::Ratio(balance), Limits::Ratio(limits)) => {
                let (balance, debit) = balance.withdraw(limits, retries, now_ms)?;
                Some((Balance::Ratio(balance), Debit::Ratio(debit)))
            }
            (Balance::Throttle(balance), Limits::Throttle(limits)) => {
                let balance = balance.withdraw(limits, retries)?;
                let debit = Debit::Throttle { tokens_max: limits.tokens_max };
                Some((Balance::Throttle(balance), debit))
            }
            (Balance::TokenBucket(balance), Limits::TokenBucket(limits)) => {
                let (balance, debit) = balance.withdraw(limits, purpose.class(), retries)?;
                Some((Balance::TokenBucket(balance), Debit::TokenBucket(debit)))
            }
            _ => None,
        }
    }

    /// Takes `retries` back, and tells what is left of the debit.
    #[must_use]
    pub(super) fn give_back(
        self,
        limits: &Limits,
        debit: Debit,
        retries: u32,
        now_ms: u64,
    ) -> (Balance, Debit) {
        match (self, limits, debit) {
            (Balance::Ratio(balance), Limits::Ratio(limits), Debit::Ratio(debit)) => {
                let (balance, debit) = balance.give_back(limits, debit, retries, now_ms);
                (Balance::Ratio(balance), Debit::Ratio(debit))
            }
            (
                Balance::Throttle(balance),
                Limits::Throttle(limits),
                Debit::Throttle { tokens_max },
            ) => (Balance::Throttle(balance.give_back(limits, tokens_max, retries)), debit),
            (
                Balance::TokenBucket(balance),
                Limits::TokenBucket(limits),
                Debit::TokenBucket(paid),
            ) => (Balance::TokenBucket(balance.give_back(limits, paid, retries)), debit),
            (mismatched, _, _) => (mismatched, debit),
        }
    }

    /// Carries what is in it over to other sizes of the same model.
    #[must_use]
    pub(super) fn rescaled(self, old: &Limits, new: &Limits, now_ms: u64) -> Balance {
        match (self, old, new) {
            (Balance::Ratio(balance), Limits::Ratio(old), Limits::Ratio(new)) => {
                Balance::Ratio(balance.rescaled(old, new, now_ms))
            }
            (Balance::Throttle(balance), Limits::Throttle(old), Limits::Throttle(new)) => {
                Balance::Throttle(balance.rescaled(old, new))
            }
            (Balance::TokenBucket(balance), Limits::TokenBucket(old), Limits::TokenBucket(new)) => {
                Balance::TokenBucket(balance.rescaled(old, new))
            }
            (mismatched, _, _) => mismatched,
        }
    }

    /// Whether it may be dropped when nobody has used it for long. The others heal by successes
    /// alone, so they come back full, as after a restart.
    pub(super) fn may_be_dropped(self, limits: &Limits, now_ms: u64) -> bool {
        match (self, limits) {
            (Balance::Ratio(balance), Limits::Ratio(limits)) => balance.is_fresh(limits, now_ms),
            _ => true,
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

/// What a retry is paid for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The attempt that failed like this is repeated.
    Attempt(Class),
    /// A caller takes retries ahead, before anything has failed.
    Lease,
}

impl Purpose {
    pub(super) fn class(self) -> Class {
        match self {
            Purpose::Attempt(class) => class,
            Purpose::Lease => Class::Transient,
        }
    }
}

/// What one balance paid for one grant, so that it can be given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Debit {
    Ratio(ratio::Debit),
    Throttle { tokens_max: u32 },
    TokenBucket(bucket::Debit),
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

    /// Whether a report of `usage` and a failure, if it counts, change anything.
    pub(super) fn is_fed(&self, usage: &Usage, counts: bool) -> bool {
        match self {
            Limits::Ratio(limits) => 0 < limits.units_earned(usage),
            Limits::Throttle(limits) => counts || 0 < limits.earned(usage),
            Limits::TokenBucket(limits) => 0 < limits.tokens_earned(usage),
        }
    }

    /// Whether a retry is charged. A throttle counts failures instead, until retries are taken
    /// ahead of them.
    pub(super) fn charges(&self, purpose: Purpose) -> bool {
        match self {
            Limits::Ratio(_) | Limits::TokenBucket(_) => true,
            Limits::Throttle(_) => purpose == Purpose::Lease,
        }
    }

    pub(super) fn is_same_model(&self, other: &Limits) -> bool {
        discriminant(self) == discriminant(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RETRY: Purpose = Purpose::Attempt(Class::Transient);

    #[test]
    fn limits_of_another_model_grant_nothing() {
        let throttle = throttle::Limits { tokens_max: 10, token_ratio_thousandths: 100 };
        let throttle = Limits::Throttle(throttle);
        let bucket = bucket::Limits { capacity: 500, costs: bucket::Costs::AWS_2026 };
        let bucket = Limits::TokenBucket(bucket);
        let balance = Balance::fresh(&throttle, 0);
        assert!(balance.grants(&throttle, RETRY, 0));
        assert!(!balance.grants(&bucket, RETRY, 0));
        assert_eq!(balance.withdraw(&bucket, RETRY, 1, 0), None);
        assert_eq!(balance.available(&bucket, 0), 0);
        let usage = Usage { first_try_successes: 1, ..Usage::default() };
        assert_eq!(balance.deposit(&bucket, &usage, 0), balance);
    }
}
