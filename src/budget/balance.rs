//! One balance of any model, and the same steps for all of them.
use super::shared::Share;
use super::{Limits, Usage, bucket, ratio, throttle};
use crate::engine::Class;

/// What one budget holds for one key. With limits of another model it grants nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Balance {
    Ratio(ratio::Balance),
    Throttle(throttle::Balance),
    TokenBucket(bucket::Balance),
    /// This replica's part of a balance of any model.
    Shared(Box<Share>),
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
    pub(super) fn deposit(&mut self, limits: &Limits, usage: &Usage, now_ms: u64) {
        match (self, limits) {
            (Balance::Ratio(balance), Limits::Ratio(limits)) => {
                *balance = balance.deposit(limits, usage, now_ms);
            }
            (Balance::Throttle(balance), Limits::Throttle(limits)) => {
                *balance = balance.deposit(limits, usage);
            }
            (Balance::TokenBucket(balance), Limits::TokenBucket(limits)) => {
                *balance = balance.deposit(limits, usage);
            }
            (Balance::Shared(share), limits) => share.deposit(limits, usage),
            _ => {}
        }
    }

    /// Takes a token from a throttle. The other models charge and do not count.
    pub(super) fn count_failure(&mut self) {
        match self {
            Balance::Throttle(balance) => *balance = balance.count_failure(),
            Balance::Shared(share) => share.count_failure(),
            Balance::Ratio(_) | Balance::TokenBucket(_) => {}
        }
    }

    /// Whether it lets one more retry pass.
    pub(super) fn grants(&self, limits: &Limits, purpose: Purpose, now_ms: u64) -> bool {
        match (self, limits) {
            (Balance::Ratio(balance), Limits::Ratio(limits)) => balance.grants(limits, now_ms),
            (Balance::Throttle(balance), Limits::Throttle(limits)) => balance.grants(limits),
            (Balance::TokenBucket(balance), Limits::TokenBucket(limits)) => {
                balance.grants(limits, purpose.class())
            }
            (Balance::Shared(share), limits) => share.grants(limits, purpose),
            _ => false,
        }
    }

    /// Pays for `retries`, all or none.
    pub(super) fn withdraw(
        &mut self,
        limits: &Limits,
        purpose: Purpose,
        retries: u32,
        now_ms: u64,
    ) -> Option<Debit> {
        match (self, limits) {
            (Balance::Ratio(balance), Limits::Ratio(limits)) => {
                let (left, debit) = balance.withdraw(limits, retries, now_ms)?;
                *balance = left;
                Some(Debit::Ratio(debit))
            }
            (Balance::Throttle(balance), Limits::Throttle(limits)) => {
                *balance = balance.withdraw(limits, retries)?;
                Some(Debit::Throttle { tokens_max: limits.tokens_max })
            }
            (Balance::TokenBucket(balance), Limits::TokenBucket(limits)) => {
                let (left, debit) = balance.withdraw(limits, purpose.class(), retries)?;
                *balance = left;
                Some(Debit::TokenBucket(debit))
            }
            (Balance::Shared(share), limits) => share.withdraw(limits, purpose, retries),
            _ => None,
        }
    }

    /// Retries were refused. Only who shares wants to know.
    pub(super) fn refused(&mut self, retries: u32) {
        if let Balance::Shared(share) = self {
            share.refused(retries);
        }
    }

    /// Takes `retries` back, and tells what is left of the debit.
    #[must_use]
    pub(super) fn give_back(
        &mut self,
        limits: &Limits,
        debit: Debit,
        retries: u32,
        now_ms: u64,
    ) -> Debit {
        match (self, limits, debit) {
            (Balance::Ratio(balance), Limits::Ratio(limits), Debit::Ratio(paid)) => {
                let (next, left) = balance.give_back(limits, paid, retries, now_ms);
                *balance = next;
                return Debit::Ratio(left);
            }
            (
                Balance::Throttle(balance),
                Limits::Throttle(limits),
                Debit::Throttle { tokens_max },
            ) => *balance = balance.give_back(limits, tokens_max, retries),
            (
                Balance::TokenBucket(balance),
                Limits::TokenBucket(limits),
                Debit::TokenBucket(paid),
            ) => *balance = balance.give_back(limits, paid, retries),
            (Balance::Shared(share), limits, debit) => {
                return share.give_back(limits, debit, retries);
            }
            _ => {}
        }
        debit
    }

    /// Carries what is in it over to other sizes of the same model.
    pub(super) fn rescale(&mut self, old: &Limits, new: &Limits, now_ms: u64) {
        match (self, old, new) {
            (Balance::Ratio(balance), Limits::Ratio(old), Limits::Ratio(new)) => {
                *balance = balance.rescaled(old, new, now_ms);
            }
            (Balance::Throttle(balance), Limits::Throttle(old), Limits::Throttle(new)) => {
                *balance = balance.rescaled(old, new);
            }
            (Balance::TokenBucket(balance), Limits::TokenBucket(old), Limits::TokenBucket(new)) => {
                *balance = balance.rescaled(old, new);
            }
            (Balance::Shared(share), old, new) => share.rescale(old, new),
            _ => {}
        }
    }

    /// A fresh one of the same kind, for one that nobody has used for long.
    pub(super) fn renew(&mut self, limits: &Limits, now_ms: u64) {
        match self {
            Balance::Shared(share) => **share = share.renewed(limits, now_ms),
            Balance::Ratio(_) | Balance::Throttle(_) | Balance::TokenBucket(_) => {
                *self = Balance::fresh(limits, now_ms);
            }
        }
    }

    /// Whether it may be dropped when nobody has used it for long. A throttle and a bucket heal by
    /// successes alone, so they come back full, as after a restart.
    pub(super) fn may_be_dropped(&self, limits: &Limits, now_ms: u64) -> bool {
        match (self, limits) {
            (Balance::Ratio(balance), Limits::Ratio(limits)) => balance.is_fresh(limits, now_ms),
            (Balance::Shared(share), limits) => share.may_be_dropped(limits, now_ms),
            _ => true,
        }
    }

    /// Whole retries that it would grant now.
    pub(super) fn available(&self, limits: &Limits, now_ms: u64) -> u32 {
        match (self, limits) {
            (Balance::Ratio(balance), Limits::Ratio(limits)) => balance.available(limits, now_ms),
            (Balance::Throttle(balance), Limits::Throttle(limits)) => balance.available(limits),
            (Balance::TokenBucket(balance), Limits::TokenBucket(limits)) => {
                balance.available(limits)
            }
            (Balance::Shared(share), limits) => share.available(limits),
            _ => 0,
        }
    }

    /// The same as it is shown to whoever asks about budgets: with what the pool had last.
    pub(super) fn shown(&self, limits: &Limits, now_ms: u64) -> u32 {
        match self {
            Balance::Shared(share) => share.available_with_pool(limits),
            _ => self.available(limits, now_ms),
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
        let mut balance = Balance::fresh(&throttle, 0);
        assert!(balance.grants(&throttle, RETRY, 0));
        assert!(!balance.grants(&bucket, RETRY, 0));
        assert_eq!(balance.withdraw(&bucket, RETRY, 1, 0), None);
        assert_eq!(balance.available(&bucket, 0), 0);
        let usage = Usage { first_try_successes: 1, ..Usage::default() };
        let before = balance.clone();
        balance.deposit(&bucket, &usage, 0);
        assert_eq!(balance, before);
    }
}
