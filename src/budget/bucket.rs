//! A bucket that successes refill (AWS standard retry mode).

/// Sizes of a token bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Tokens of a full bucket, 1 to 1 000 000.
    pub capacity: u32,
    /// What a retry costs.
    pub costs: Costs,
}

/// What a retry costs by the class of its failure, 1 to the capacity each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// See [`Class::Transient`](crate::engine::Class::Transient).
    pub transient: u32,
    /// See [`Class::Throttling`](crate::engine::Class::Throttling).
    pub throttling: u32,
    /// See [`Class::Timeout`](crate::engine::Class::Timeout).
    pub timeout: u32,
}

impl Costs {
    /// The costs of 2026.
    pub const AWS_2026: Costs = Costs { transient: 14, throttling: 5, timeout: 14 };
    /// The costs before.
    pub const AWS_LEGACY: Costs = Costs { transient: 5, throttling: 5, timeout: 10 };
}
