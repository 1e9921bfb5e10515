//! A bucket that successes refill (AWS standard retry mode).
use super::{Usage, in_proportion};
use crate::engine::Class;

/// What one token bucket holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Balance {
    tokens: u32,
}

impl Balance {
    /// A full bucket.
    pub fn fresh(limits: &Limits) -> Balance {
        Balance { tokens: limits.capacity }
    }

    /// Earns for the successes reported.
    #[must_use]
    pub fn deposit(self, limits: &Limits, usage: &Usage) -> Balance {
        self.plus(limits, limits.tokens_earned(usage))
    }

    /// Pays for `retries` after failures of `class`, all or none.
    pub fn withdraw(self, limits: &Limits, class: Class, retries: u32) -> Option<(Balance, Debit)> {
        let debit = Debit::of(limits, class);
        let tokens = self.tokens.checked_sub(debit.each.checked_mul(retries)?)?;
        Some((Balance { tokens }, debit))
    }

    /// Whether one retry after a failure of `class` would be paid for.
    pub fn grants(self, limits: &Limits, class: Class) -> bool {
        limits.costs.of(class) <= self.tokens
    }

    /// Takes `retries` back, at the price that was paid.
    #[must_use]
    pub fn give_back(self, limits: &Limits, debit: Debit, retries: u32) -> Balance {
        self.plus(limits, debit.given_back(limits, retries))
    }

    /// Carries the tokens over to another size, in proportion.
    #[must_use]
    pub fn rescaled(self, old: &Limits, new: &Limits) -> Balance {
        let tokens = u64::from(self.tokens);
        let tokens = in_proportion(tokens, u64::from(old.capacity), u64::from(new.capacity));
        Balance { tokens: 0 }.plus(new, tokens)
    }

    fn plus(self, limits: &Limits, tokens: u64) -> Balance {
        let sum = u64::from(self.tokens).saturating_add(tokens);
        let full = limits.capacity;
        Balance { tokens: u32::try_from(sum).map_or(full, |sum| sum.min(full)) }
    }

    /// Retries after transient failures that would be paid for now.
    pub fn available(self, limits: &Limits) -> u32 {
        self.tokens / limits.costs.transient.max(1)
    }
}

/// What a bucket paid for each retry of one grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Debit {
    each: u32,
    /// The size of the bucket then.
    capacity: u32,
}

impl Debit {
    /// What each retry after a failure of `class` is paid with.
    pub(super) fn of(limits: &Limits, class: Class) -> Debit {
        Debit { each: limits.costs.of(class), capacity: limits.capacity }
    }

    /// What was paid for `retries`, in a bucket of today's size.
    pub(super) fn given_back(self, limits: &Limits, retries: u32) -> u64 {
        let paid = u64::from(self.each).saturating_mul(u64::from(retries));
        in_proportion(paid, u64::from(self.capacity), u64::from(limits.capacity))
    }
}

/// Sizes of a token bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Tokens of a full bucket, 1 to 1 000 000.
    pub capacity: u32,
    /// What a retry costs.
    pub costs: Costs,
}

impl Limits {
    /// What a fresh balance grants after transient failures.
    pub fn capacity(&self) -> u32 {
        Balance::fresh(self).available(self)
    }

    /// What a report earns. A retried success gives back what its retry cost; one whose class was
    /// not told, the least that it can have cost.
    pub(super) fn tokens_earned(&self, usage: &Usage) -> u64 {
        let Usage { retried_transient, retried_throttling, retried_timeout, .. } = *usage;
        let without_class = [retried_transient, retried_throttling, retried_timeout]
            .into_iter()
            .fold(usage.retried_successes, u64::saturating_sub);
        [
            (usage.first_try_successes, 1),
            (retried_transient, self.costs.transient),
            (retried_throttling, self.costs.throttling),
            (retried_timeout, self.costs.timeout),
            (without_class, self.costs.smallest()),
        ]
        .into_iter()
        .map(|(successes, tokens)| successes.saturating_mul(u64::from(tokens)))
        .fold(0, u64::saturating_add)
    }
}

/// What a retry costs by the class of its failure, 1 to the capacity each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// See [`Class::Transient`].
    pub transient: u32,
    /// See [`Class::Throttling`].
    pub throttling: u32,
    /// See [`Class::Timeout`].
    pub timeout: u32,
}

impl Costs {
    /// What AWS's SDKs charge since 2026: `aws-2026` in a policy file.
    pub const AWS_2026: Costs = Costs { transient: 14, throttling: 5, timeout: 14 };
    /// What they charged before: `aws-legacy`.
    pub const AWS_LEGACY: Costs = Costs { transient: 5, throttling: 5, timeout: 10 };

    pub(super) fn of(&self, class: Class) -> u32 {
        match class {
            Class::Transient => self.transient,
            Class::Throttling => self.throttling,
            Class::Timeout => self.timeout,
        }
    }

    /// The cheapest of the three.
    pub(crate) fn smallest(&self) -> u32 {
        self.transient.min(self.throttling).min(self.timeout)
    }

    /// The dearest of the three.
    pub(crate) fn largest(&self) -> u32 {
        self.transient.max(self.throttling).max(self.timeout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cheapest_and_the_dearest_are_the_same_in_any_order() {
        for [transient, throttling, timeout] in
            [[2, 5, 9], [2, 9, 5], [5, 2, 9], [5, 9, 2], [9, 2, 5], [9, 5, 2]]
        {
            let costs = Costs { transient, throttling, timeout };
            assert_eq!((costs.smallest(), costs.largest()), (2, 9), "{costs:?}");
        }
    }
}
