//! A replica's own part of a floor, while the pool is out of reach.
use crate::budget::ratio::Floor;

/// Tokens, in parts: a token has as many as the floor's has, for each replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Local {
    parts: u64,
    at_ms: u64,
    /// Parts of a token.
    token: u64,
}

impl Local {
    /// Nothing, from `now_ms` on.
    pub(super) fn empty(now_ms: u64) -> Local {
        Local { parts: 0, at_ms: now_ms, token: 1 }
    }

    /// Refills as fast as one of `replicas` may, up to its part of the floor. Every part is worth
    /// a token at least, or small floors would never grant.
    #[must_use]
    pub(super) fn refilled(mut self, floor: &Floor, replicas: u32, now_ms: u64) -> Local {
        self.token = floor.token().saturating_mul(u64::from(replicas.max(1)));
        let elapsed_ms = now_ms.saturating_sub(self.at_ms);
        let added = elapsed_ms.saturating_mul(u64::from(floor.count));
        self.parts = self.parts.saturating_add(added).min(floor.full().max(self.token));
        self.at_ms = self.at_ms.max(now_ms);
        self
    }

    /// Whole tokens.
    pub(super) fn tokens(&self) -> u64 {
        self.parts / self.token.max(1)
    }

    pub(super) fn take(&mut self, tokens: u64) {
        self.parts = self.parts.saturating_sub(tokens.saturating_mul(self.token));
    }
}
