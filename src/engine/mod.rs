//! The decision: four stages, each of which can only object or hand on a proof.
//!
//! ```text
//! Facts ──> blockers ──> permanent ──> evidence ──> specific ──> Retry
//!              │             │            │            │
//!              └─────────────┴─ Denied ───┴────────────┘
//! ```
//!
//! A proof has private fields, so only its own stage can make one, and the next stage takes it by
//! value. A stage can therefore not be skipped, swapped or repeated, and once a stage has answered
//! [`Denied`] there is nothing left from which a [`Retry`] could be made: **a later rule can never
//! re-enable something that an earlier rule forbade.**
//!
//! The engine is pure: no clock, no randomness, no IO, no allocation, and nothing outside `core`.
//!
//! # Example
//!
//! ```
//! use retryd::engine::{
//!     self, Coverage, Facts, Failure, GrpcCode, Hint, Idempotency, Judged, Rule, Rules,
//! };
//!
//! let rules = Rules::default();
//! let lost_answer = Facts {
//!     rules: &rules,
//!     attempts_made: 1,
//!     budget: Coverage::Unbudgeted,
//!     body_replayable: true,
//!     first_byte_delivered: false,
//!     runtime_draining: false,
//!     remaining_ms: Some(2_000),
//!     failure: Judged::by(&rules, Failure::Grpc(GrpcCode::Unavailable)),
//!     evidence: None,
//!     idempotency: Idempotency::default(),
//!     hint: Hint::default(),
//!     draw: u32::MAX,
//! };
//! let denied = engine::decide(&lost_answer).unwrap_err();
//! assert_eq!(denied.rule(), Rule::MaybeProcessed);
//!
//! let declared = Idempotency { declared: true, ..Idempotency::default() };
//! let declared = Facts { idempotency: declared, ..lost_answer };
//! let retry = engine::decide(&declared).unwrap();
//! assert_eq!(retry.delay().ms(), 100);
//! ```
mod backoff;
mod blockers;
mod evidence;
mod facts;
mod failure;
mod judged;
mod look;
mod permanent;
mod rule;
mod rules;
mod specific;

pub use blockers::Gauge;
pub use facts::{Coverage, Evidence, Facts, Hint, Idempotency, Purse, Wait};
pub use failure::{Category, Failure, GrpcCode, HttpStatus};
pub use judged::{Class, Judged};
pub use look::Look;
pub use rule::{Denied, Rule, Step};
pub use rules::{Backoff, Categories, GrpcCodes, HttpStatuses, Jitter, RetryOn, Rules, Statuses};
pub use specific::{Delay, Retry};

/// Decides whether the failed attempt in `facts` may be repeated.
///
/// # Errors
///
/// [`Denied`] is the answer no. It names the rule that objected first.
pub fn decide<'a>(facts: &'a Facts<'a>) -> Result<Retry<'a>, Denied<'a>> {
    blockers::clear(facts)
        .and_then(permanent::clear)
        .and_then(evidence::clear)
        .and_then(specific::plan)
}
