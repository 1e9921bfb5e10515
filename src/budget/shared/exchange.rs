//! What a replica and the pool of one balance tell each other, as plain numbers.
use crate::budget::{Limits, OnStoreLoss};

/// What a replica says. Its times are those of the fleet's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Counts this replica's exchanges of this balance. The pool answers a call that it sees late,
    /// or twice, with nothing.
    pub sequence: u64,
    /// The sizes that the replica goes by.
    pub sizes: Sizes,
    /// What a pool that is gone begins with, in parts of a token.
    pub start: u64,
    /// What such a pool owes: the debt that this replica heard of last.
    pub debt: u64,
    /// Earned units that it gives away: when their slot began, in tenths of a millisecond, and how
    /// many.
    pub gives: Vec<(u64, u32)>,
    /// Earned units that it lacks.
    pub wants_units: u64,
    /// Leased tokens that it still has. An absolute number: a call that is repeated does no harm.
    pub holds: u64,
    /// Tokens that it wants leased besides.
    pub wants: u64,
    /// Tokens that it puts into the pool: earned, no longer needed, or left of a lease that lapsed.
    pub returns: u64,
    /// Tokens that it granted on credit, or that failures took from a throttle.
    pub owes: u64,
}

/// What the pool answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// The fleet's time at the pool.
    pub now_ms: u64,
    /// Earned units for the replica, as in [`Call::gives`].
    pub units: Vec<(u64, u32)>,
    /// Tokens leased to it, besides those that it holds.
    pub granted: u64,
    /// Replicas that exchanged a moment ago, this one included.
    pub active: u64,
    /// Tokens granted on credit by any replica that nothing has paid for yet.
    pub debt: u64,
    /// Parts of tokens left in the pool.
    pub level: u64,
    /// Earned units left in the pool.
    pub units_left: u64,
}

/// How the pool counts a balance. A replica with other sizes has another policy file: the pool
/// goes by the sizes that it saw first last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Tokens of a full pool.
    pub tokens: u64,
    /// Parts that make one token.
    pub parts: u64,
    /// Parts that a millisecond adds.
    pub refill: u64,
    /// Length of the window of earned units; 0 if there is none.
    pub interval_ms: u64,
    /// Tokens that a retry costs.
    pub price: u64,
    /// What the level cannot pay is forgotten and not owed: a throttle ends at 0.
    pub forgives: bool,
}

/// How long a pool outlives its last exchange at least. As a balance in one process.
const LIFE_MS_MIN: u64 = 10 * 60 * 1_000;

impl Sizes {
    /// How the pool counts a budget.
    pub fn of(limits: &Limits) -> Sizes {
        match limits {
            Limits::Ratio(ratio) => Sizes {
                tokens: ratio.floor.count.into(),
                parts: ratio.floor.interval_ms.max(1),
                refill: ratio.floor.count.into(),
                interval_ms: ratio.interval_ms.max(1),
                price: 1,
                forgives: false,
            },
            Limits::Throttle(throttle) => Sizes {
                tokens: throttle.full().into(),
                parts: 1,
                refill: 0,
                interval_ms: 0,
                price: 0,
                forgives: true,
            },
            Limits::TokenBucket(bucket) => Sizes {
                tokens: bucket.capacity.into(),
                parts: 1,
                refill: 0,
                interval_ms: 0,
                price: bucket.costs.transient.into(),
                forgives: false,
            },
        }
    }

    /// Parts of a full pool.
    pub fn full(&self) -> u64 {
        self.tokens.saturating_mul(self.parts)
    }

    /// How long a pool outlives its last exchange. After that it would be a full one anyway.
    pub fn life_ms(&self) -> u64 {
        let floor_ms = if self.refill == 0 { 0 } else { self.parts };
        LIFE_MS_MIN.max(self.interval_ms).max(floor_ms.saturating_mul(2))
    }
}

/// How things stand between this replica and the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Since when the store is lost.
    pub lost_since_ms: Option<u64>,
    /// When the store was found empty. For a while a pool that is missing may be one that it has
    /// lost, and not a new one.
    pub emptied_ms: Option<u64>,
    /// Replicas that share, or did before the store was lost.
    pub replicas: u32,
    /// What the budget grants while the store is lost.
    pub on_store_loss: OnStoreLoss,
}

impl Standing {
    /// Whether a pool that is missing may have been there before.
    pub(super) fn has_emptied(&self, sizes: &Sizes, now_ms: u64) -> bool {
        self.emptied_ms
            .is_some_and(|emptied_ms| now_ms < emptied_ms.saturating_add(sizes.life_ms()))
    }
}
