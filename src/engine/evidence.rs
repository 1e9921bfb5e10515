//! Stage 3: what is known about a second run of the operation.
use super::facts::{Evidence, Facts, Idempotency};
use super::permanent::{Transient, TransientFailure};
use super::rule::{Denied, Rule};

/// Proof that a second run is safe.
pub(super) struct Repeatable<'a> {
    facts: &'a Facts<'a>,
    failure: TransientFailure,
}

impl<'a> Repeatable<'a> {
    pub(super) fn into_parts(self) -> (&'a Facts<'a>, TransientFailure) {
        (self.facts, self.failure)
    }
}

pub(super) fn clear(transient: Transient<'_>) -> Result<Repeatable<'_>, Denied<'_>> {
    let (facts, failure) = transient.into_parts();
    let objection = match facts.evidence() {
        Evidence::NotSent | Evidence::Refused => None,
        Evidence::MaybeProcessed | Evidence::Processed => objection(facts.idempotency),
    };
    match objection {
        Some(rule) => Err(Denied::by(rule, facts)),
        None => Ok(Repeatable { facts, failure }),
    }
}

/// A key that is registered protects nothing unless it travelled with the attempt.
fn objection(idempotency: Idempotency) -> Option<Rule> {
    match idempotency {
        Idempotency { declared: true, .. } => None,
        Idempotency { key_registered: true, key_sent: true, .. } => None,
        Idempotency { key_registered: true, key_sent: false, .. } => {
            Some(Rule::IdempotencyKeyNotSent)
        }
        Idempotency { key_registered: false, .. } => Some(Rule::MaybeProcessed),
    }
}
