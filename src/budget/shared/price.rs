//! What a share pays a retry with, and whether it has enough.
use super::exchange::Sizes;
use super::share::{Own, Share};
use crate::budget::balance::Purpose;
use crate::budget::ratio::Floor;
use crate::budget::window::RETRY_UNITS;
use crate::budget::{Limits, saturated};

/// A replica that never exchanged lends what the floor refills in this time.
const LENT_REFILLS_MS: u64 = 5_000;
/// How long what the last exchange told may be relied on.
const SEEN_MS: u64 = 10 * 60 * 1_000;

/// What retries are paid with: retries of a ratio, tokens of a bucket, thousandths of a throttle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Price {
    pub(super) earned: u64,
    pub(super) lease: u64,
    pub(super) local: u64,
    pub(super) owes: u64,
}

/// What is not paid yet.
struct Due(u64);

impl Due {
    /// Pays with up to `there`, and tells how much.
    fn pay(&mut self, there: u64) -> u64 {
        let paid = self.0.min(there);
        self.0 = self.0.saturating_sub(paid);
        paid
    }
}

impl Share {
    /// Whole retries that it would grant now.
    pub(in crate::budget) fn available(&self, limits: &Limits) -> u32 {
        let lent = u64::from(self.lends(limits));
        match (&self.own, limits) {
            (Own::Window(window), Limits::Ratio(_)) => {
                let tokens = self.lease.saturating_add(self.local_tokens()).saturating_add(lent);
                window.retries().saturating_add(saturated(tokens))
            }
            (Own::Copy { balance, .. }, Limits::Throttle(limits)) if !self.reach.is_denied() => {
                balance.available(limits)
            }
            (Own::Earned(_), Limits::TokenBucket(bucket)) => {
                let tokens = self.lease.saturating_add(self.spendable());
                let retries = tokens / u64::from(bucket.costs.transient.max(1));
                saturated(retries.saturating_add(lent))
            }
            _ => 0,
        }
    }

    /// The same with what the pool had at the last exchange.
    pub(in crate::budget) fn available_with_pool(&self, limits: &Limits) -> u32 {
        let Some(seen) = &self.seen else {
            // Nobody has told of another replica that used it.
            let may_be_gone = self.reach.standing.has_emptied(&Sizes::of(limits), self.now_ms);
            let is_unknown = self.is_degraded() || may_be_gone;
            return if is_unknown { self.available(limits) } else { limits.capacity() };
        };
        let pool = match limits {
            Limits::Ratio(ratio) => {
                (seen.units_left / RETRY_UNITS).saturating_add(seen.level / ratio.floor.token())
            }
            Limits::Throttle(_) => 0,
            Limits::TokenBucket(bucket) => seen.level / u64::from(bucket.costs.transient.max(1)),
        };
        self.available(limits).saturating_add(saturated(pool))
    }

    /// What `retries` would be paid with. `None` if there is not enough.
    pub(super) fn price(&self, limits: &Limits, purpose: Purpose, retries: u32) -> Option<Price> {
        match (&self.own, limits) {
            (Own::Window(window), Limits::Ratio(_)) => {
                let mut due = Due(retries.into());
                let earned = due.pay(window.retries().into());
                let lease = due.pay(self.lease);
                let local = due.pay(self.local_tokens());
                Some(Price { earned, lease, local, owes: self.lent(due, 1, limits)? })
            }
            (Own::Copy { balance, .. }, Limits::Throttle(limits)) if !self.reach.is_denied() => {
                let earned = match purpose {
                    Purpose::Attempt(_) => balance.grants(limits).then_some(0)?,
                    Purpose::Lease => {
                        let left = balance.withdraw(limits, retries)?;
                        u64::from(balance.thousandths().saturating_sub(left.thousandths()))
                    }
                };
                Some(Price { earned, lease: 0, local: 0, owes: 0 })
            }
            (Own::Earned(_), Limits::TokenBucket(bucket)) => {
                let each = u64::from(bucket.costs.of(purpose.class()));
                let mut due = Due(each.saturating_mul(retries.into()));
                let lease = due.pay(self.lease);
                let earned = due.pay(self.spendable());
                Some(Price { earned, lease, local: 0, owes: self.lent(due, each, limits)? })
            }
            _ => None,
        }
    }

    /// What is granted on credit: one retry at most, and only if nothing is owed.
    fn lent(&self, due: Due, each: u64, limits: &Limits) -> Option<u64> {
        let Due(tokens) = due;
        (tokens == 0 || (tokens <= each && self.lends(limits))).then_some(tokens)
    }

    /// Whether one retry may go ahead of what pays for it. Every replica does that once until the
    /// pool has paid what all owe: so together they are never ahead by more than one each.
    fn lends(&self, limits: &Limits) -> bool {
        if self.is_degraded() || 0 < self.owes {
            return false;
        }
        let (has_own, refills) = match (&self.own, limits) {
            (Own::Window(window), Limits::Ratio(ratio)) => (!window.is_empty(), ratio.floor),
            (Own::Earned(earned), Limits::TokenBucket(_)) => (0 < *earned, Floor::NONE),
            _ => return false,
        };
        match &self.seen {
            Some(seen) if self.now_ms.saturating_sub(seen.sent_ms) <= SEEN_MS => {
                let pays = 0 < seen.level || 0 < seen.units_left || 0 < self.lease || has_own;
                seen.debt == 0 && (pays || 0 < refills.count)
            }
            _ => {
                let refilled = u64::from(refills.count).saturating_mul(LENT_REFILLS_MS);
                let replicas = u64::from(self.reach.standing.replicas);
                0 < refills.count && refills.interval_ms.saturating_mul(replicas) <= refilled
            }
        }
    }

    fn local_tokens(&self) -> u64 {
        self.local.map_or(0, |local| local.tokens())
    }

    /// Earned tokens that pay for a retry here.
    fn spendable(&self) -> u64 {
        match &self.own {
            Own::Earned(earned) if !self.reach.is_denied() => *earned,
            _ => 0,
        }
    }
}
