//! A failure, held against the rules once. The throttle's count and stages 2 to 4 read it.
use super::facts::{Evidence, Hint};
use super::failure::{Category, Failure, GrpcCode};
use super::permanent::{self, TransientFailure};
use super::rules::Rules;

/// A failure and what the rules of one policy say about it.
#[derive(Clone, Copy, Debug)]
pub struct Judged {
    failure: Failure,
    transient: Option<TransientFailure>,
    listed: bool,
    evidence: Evidence,
    class: Class,
}

impl Judged {
    /// Judges `failure` by `rules`: the ones that [`Facts::rules`](super::Facts) will hold.
    pub fn by(rules: &Rules, failure: Failure) -> Judged {
        Judged {
            failure,
            transient: permanent::transient(failure),
            listed: is_listed(rules, failure),
            evidence: derived_evidence(rules, failure),
            class: Class::of(failure),
        }
    }

    /// What was judged.
    pub fn failure(&self) -> Failure {
        self.failure
    }

    /// Whether no repeat can help.
    pub fn is_permanent(&self) -> bool {
        self.transient.is_none()
    }

    /// Whether the policy's `retry_on` names it.
    pub fn is_listed(&self) -> bool {
        self.listed
    }

    /// How a token bucket sees it.
    pub fn class(&self) -> Class {
        self.class
    }

    /// What the failure alone proves about the server's side.
    pub fn evidence(&self) -> Evidence {
        self.evidence
    }

    /// Whether it is transient and `retry_on` allows it, given the hint that came with it.
    pub(super) fn is_retryable(&self, hint: Hint) -> bool {
        self.transient.is_some_and(|failure| failure.is_retryable(self.listed, hint))
    }

    pub(super) fn transient(&self) -> Option<TransientFailure> {
        self.transient
    }
}

/// How a token bucket sees a failure (AWS standard retry mode).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Everything that is neither of the others.
    Transient,
    /// The server asked to slow down.
    Throttling,
    /// The attempt took too long.
    Timeout,
}

impl Class {
    fn of(failure: Failure) -> Class {
        match failure {
            Failure::Http(status) if status.get() == 429 => Class::Throttling,
            Failure::Grpc(GrpcCode::ResourceExhausted) => Class::Throttling,
            Failure::Grpc(GrpcCode::DeadlineExceeded)
            | Failure::Category(Category::AttemptTimeout) => Class::Timeout,
            Failure::Http(_) | Failure::Grpc(_) | Failure::Category(_) => Class::Transient,
        }
    }
}

fn is_listed(rules: &Rules, failure: Failure) -> bool {
    match failure {
        Failure::Http(status) => rules.retry_on.statuses.http.contains(status),
        Failure::Grpc(code) => rules.retry_on.statuses.grpc.contains(code),
        Failure::Category(category) => rules.retry_on.categories.contains(category),
    }
}

/// Only what proves that the server did no work speaks for the caller.
///
/// Sources: RFC 9110 §9.2.2, RFC 9113 §8.7 and §6.8, RFC 9114 §4.1.1, RFC 8470 §5.2, gRFC A6.
/// That 429 proves it is a convention: `refusal_statuses` may leave it out.
fn derived_evidence(rules: &Rules, failure: Failure) -> Evidence {
    match failure {
        Failure::Http(status) if rules.refusal_statuses.http.contains(status) => Evidence::Refused,
        Failure::Grpc(code) if rules.refusal_statuses.grpc.contains(code) => Evidence::Refused,
        Failure::Category(Category::StreamRefused) => Evidence::Refused,
        Failure::Category(
            Category::NameResolution
            | Category::Connect
            | Category::TlsHandshake
            | Category::PoolExhausted,
        ) => Evidence::NotSent,
        Failure::Http(_) | Failure::Grpc(_) | Failure::Category(_) => Evidence::MaybeProcessed,
    }
}
