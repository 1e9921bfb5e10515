//! Failures counted against successes (gRFC A6).
use super::{Usage, in_proportion, saturated};

/// A token in the unit of a balance, which keeps three decimals.
pub(super) const TOKEN: u32 = 1_000;

/// What one throttle holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Balance {
    tokens_thousandths: u32,
}

impl Balance {
    /// A full throttle.
    pub fn fresh(limits: &Limits) -> Balance {
        Balance { tokens_thousandths: limits.full() }
    }

    /// Earns for the successes reported, on the first attempt or later.
    #[must_use]
    pub fn deposit(self, limits: &Limits, usage: &Usage) -> Balance {
        self.plus(limits, limits.earned(usage))
    }

    /// Takes a token for one failure. Nothing gives it back but successes.
    #[must_use]
    pub fn count_failure(self) -> Balance {
        Balance { tokens_thousandths: self.tokens_thousandths.saturating_sub(TOKEN) }
    }

    /// Whether a retry may go out now: more than half of the tokens are there.
    pub fn grants(self, limits: &Limits) -> bool {
        0 < self.above_half(limits)
    }

    /// Pays for `retries` ahead, all or none: after each, more than half must be left.
    pub fn withdraw(self, limits: &Limits, retries: u32) -> Option<Balance> {
        let rest = self.tokens_thousandths.checked_sub(TOKEN.checked_mul(retries)?)?;
        let rest = Balance { tokens_thousandths: rest };
        (retries == 0 || rest.grants(limits)).then_some(rest)
    }

    /// Takes back retries that were paid for ahead, from a throttle of `tokens_max` tokens.
    #[must_use]
    pub fn give_back(self, limits: &Limits, tokens_max: u32, retries: u32) -> Balance {
        let paid = u64::from(TOKEN).saturating_mul(u64::from(retries));
        let paid = in_proportion(paid, u64::from(tokens_max), u64::from(limits.tokens_max));
        self.plus(limits, paid)
    }

    /// Carries the tokens over to another size, in proportion.
    #[must_use]
    pub fn rescaled(self, old: &Limits, new: &Limits) -> Balance {
        let tokens = u64::from(self.tokens_thousandths);
        let tokens = in_proportion(tokens, u64::from(old.full()), u64::from(new.full()));
        Balance { tokens_thousandths: 0 }.plus(new, tokens)
    }

    /// What is there, in thousandths.
    pub(super) fn thousandths(self) -> u32 {
        self.tokens_thousandths
    }

    /// So many thousandths of a token, but not more than fit.
    pub(super) fn of_thousandths(limits: &Limits, thousandths: u64) -> Balance {
        Balance { tokens_thousandths: 0 }.plus(limits, thousandths)
    }

    /// Takes thousandths of a token.
    pub(super) fn minus_thousandths(self, thousandths: u64) -> Balance {
        let left = self.tokens_thousandths.saturating_sub(saturated(thousandths));
        Balance { tokens_thousandths: left }
    }

    /// Half of it, rounded down. Half of a full one grants nothing until something succeeds.
    pub(super) fn halved(self) -> Balance {
        Balance { tokens_thousandths: self.tokens_thousandths / 2 }
    }

    pub(super) fn plus(self, limits: &Limits, thousandths: u64) -> Balance {
        let sum = u64::from(self.tokens_thousandths).saturating_add(thousandths);
        let full = limits.full();
        Balance { tokens_thousandths: u32::try_from(sum).map_or(full, |sum| sum.min(full)) }
    }

    /// How many further failures in a row would be granted a retry.
    pub fn available(self, limits: &Limits) -> u32 {
        // The last of them must leave more than half: what is exactly half is one too few.
        self.above_half(limits).saturating_sub(1) / (2 * TOKEN)
    }

    /// Twice what is there beyond half of the tokens, so that half of an odd number is whole.
    fn above_half(self, limits: &Limits) -> u32 {
        self.tokens_thousandths.saturating_mul(2).saturating_sub(limits.full())
    }
}

/// Sizes of a throttle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Tokens of a full throttle, 3 to 1000.
    pub tokens_max: u32,
    /// What a success adds, in thousandths of a token, 1 to 1 000 000.
    pub token_ratio_thousandths: u32,
}

impl Limits {
    /// What a fresh balance grants.
    pub fn capacity(&self) -> u32 {
        Balance::fresh(self).available(self)
    }

    /// What a report earns, in thousandths of a token.
    pub(super) fn earned(&self, usage: &Usage) -> u64 {
        let successes = usage.first_try_successes.saturating_add(usage.retried_successes);
        successes.saturating_mul(u64::from(self.token_ratio_thousandths))
    }

    /// A full throttle, in thousandths.
    pub(super) fn full(&self) -> u32 {
        self.tokens_max.saturating_mul(TOKEN)
    }
}
