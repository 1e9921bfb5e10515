//! The model of a budget, with its sizes.
use std::mem::discriminant;

use super::balance::Purpose;
use super::{Usage, bucket, ratio, throttle};

/// The model of a budget, with its sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limits {
    /// A share of the requests, plus a floor (Gateway API GEP-3388).
    Ratio(ratio::Limits),
    /// Failures counted against successes (gRFC A6).
    Throttle(throttle::Limits),
    /// A bucket that successes refill (AWS standard retry mode).
    TokenBucket(bucket::Limits),
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

    /// As in a policy file.
    pub(super) fn model_name(&self) -> &'static str {
        match self {
            Limits::Ratio(_) => "ratio",
            Limits::Throttle(_) => "throttle",
            Limits::TokenBucket(_) => "token_bucket",
        }
    }

    pub(super) fn is_same_model(&self, other: &Limits) -> bool {
        discriminant(self) == discriminant(other)
    }
}
