//! Stage 2: failures that no repeat can heal.
use super::blockers::Unblocked;
use super::facts::{Facts, Hint, Wait};
use super::failure::{Category, Failure, GrpcCode, HttpStatus};
use super::rule::{Denied, Rule};

/// Proof that the failure may heal, narrowed to the failures that can.
pub(super) struct Transient<'a> {
    facts: &'a Facts<'a>,
    failure: TransientFailure,
}

impl<'a> Transient<'a> {
    pub(super) fn into_parts(self) -> (&'a Facts<'a>, TransientFailure) {
        (self.facts, self.failure)
    }
}

pub(super) fn clear(unblocked: Unblocked<'_>) -> Result<Transient<'_>, Denied<'_>> {
    let facts = unblocked.facts();
    match facts.failure.transient() {
        Some(failure) => Ok(Transient { facts, failure }),
        None => Err(Denied::by(Rule::PermanentFailure, facts)),
    }
}

/// The failures left after this stage. Later stages cannot even name a permanent one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TransientFailure {
    Http(HttpStatus),
    Unknown,
    DeadlineExceeded,
    NotFound,
    ResourceExhausted,
    Aborted,
    Internal,
    Unavailable,
    NameResolution,
    Connect,
    TlsHandshake,
    PoolExhausted,
    StreamRefused,
    ConnectionReset,
    AttemptTimeout,
}

impl TransientFailure {
    /// A failure that `retry_on` lists is retryable. Only RESOURCE_EXHAUSTED needs a hint as well:
    /// without one the same code means "message too large" or "quota gone".
    pub(super) fn is_retryable(self, listed: bool, hint: Hint) -> bool {
        match self {
            TransientFailure::ResourceExhausted => listed && hint.wait != Wait::Unsaid,
            TransientFailure::Http(_)
            | TransientFailure::Unknown
            | TransientFailure::DeadlineExceeded
            | TransientFailure::NotFound
            | TransientFailure::Aborted
            | TransientFailure::Internal
            | TransientFailure::Unavailable
            | TransientFailure::NameResolution
            | TransientFailure::Connect
            | TransientFailure::TlsHandshake
            | TransientFailure::PoolExhausted
            | TransientFailure::StreamRefused
            | TransientFailure::ConnectionReset
            | TransientFailure::AttemptTimeout => listed,
        }
    }
}

/// The failure, if it is one that may heal.
pub(super) fn transient(failure: Failure) -> Option<TransientFailure> {
    match failure {
        Failure::Http(status) => transient_status(status),
        Failure::Grpc(code) => transient_code(code),
        Failure::Category(category) => transient_category(category),
    }
}

/// What the request itself asked for, or lacks, is the same the second time (RFC 9110 §15).
fn transient_status(status: HttpStatus) -> Option<TransientFailure> {
    match status.get() {
        ..400 => None,
        400 | 401 | 403 | 405 | 406 | 410 | 411 | 413 | 414 | 415 | 416 | 417 | 422 | 426 | 428
        | 431 | 451 => None,
        501 | 505 | 506 | 508 | 510 | 511 => None,
        _ => Some(TransientFailure::Http(status)),
    }
}

fn transient_code(code: GrpcCode) -> Option<TransientFailure> {
    match code {
        GrpcCode::Unknown => Some(TransientFailure::Unknown),
        GrpcCode::DeadlineExceeded => Some(TransientFailure::DeadlineExceeded),
        GrpcCode::NotFound => Some(TransientFailure::NotFound),
        GrpcCode::ResourceExhausted => Some(TransientFailure::ResourceExhausted),
        GrpcCode::Aborted => Some(TransientFailure::Aborted),
        GrpcCode::Internal => Some(TransientFailure::Internal),
        GrpcCode::Unavailable => Some(TransientFailure::Unavailable),
        GrpcCode::Cancelled
        | GrpcCode::InvalidArgument
        | GrpcCode::AlreadyExists
        | GrpcCode::PermissionDenied
        | GrpcCode::FailedPrecondition
        | GrpcCode::OutOfRange
        | GrpcCode::Unimplemented
        | GrpcCode::DataLoss
        | GrpcCode::Unauthenticated => None,
    }
}

fn transient_category(category: Category) -> Option<TransientFailure> {
    match category {
        Category::NameResolution => Some(TransientFailure::NameResolution),
        Category::Connect => Some(TransientFailure::Connect),
        Category::TlsHandshake => Some(TransientFailure::TlsHandshake),
        Category::PoolExhausted => Some(TransientFailure::PoolExhausted),
        Category::StreamRefused => Some(TransientFailure::StreamRefused),
        Category::ConnectionReset => Some(TransientFailure::ConnectionReset),
        Category::AttemptTimeout => Some(TransientFailure::AttemptTimeout),
        Category::CertificateRejected
        | Category::ProtocolViolation
        | Category::RequestRejected
        | Category::MessageTooLarge
        | Category::ResponseUnreadable
        | Category::Unauthorized
        | Category::Cancelled
        | Category::Dropped
        | Category::UnknownPermanent => None,
    }
}
