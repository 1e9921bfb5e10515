//! A share of the requests over a sliding window, plus a floor (Gateway API GEP-3388).

/// Sizes of a ratio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Retries for each hundred requests, 0 to 1000.
    pub percent: u32,
    /// Length of the window, 1 s to 1 h.
    pub interval_ms: u64,
    /// What is granted without requests.
    pub floor: Floor,
}

/// A token bucket of `count` tokens that refills continuously, all of them over `interval_ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Floor {
    /// Tokens of a full floor, 0 to 1 000 000.
    pub count: u32,
    /// Time to fill it from empty, 1 s to 1 h.
    pub interval_ms: u64,
}
