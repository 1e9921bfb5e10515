//! `RetryContext` to [`Question`]: parsed once, every violation reported.
use super::duration::Span;
use super::hint::{self, Reading};
use super::refusal::{Refusal, Violations};
use super::{name, pb, usage};
use crate::decider::Question;
use crate::engine::{Category, Evidence, Failure, GrpcCode, Hint, HttpStatus, Idempotency, Wait};

/// Parses a context. `unix_now_ms` is what a date is measured from where the response had none.
///
/// # Errors
///
/// [`Refusal::ContextInvalid`] names every wrong field.
pub fn parse<'a>(
    context: &'a pb::RetryContext,
    unix_now_ms: u64,
    oddities: &mut Oddities,
) -> Result<Question<'a>, Refusal> {
    let mut violations = Violations::default();
    let tenant = violations.check("tenant", name::tenant(&context.tenant));
    let operation = violations.check("operation", name::operation(&context.operation));
    let attempts_made = violations.check("attempts_made", name::positive(context.attempts_made));
    let remaining_ms =
        violations.check("remaining_deadline", remaining_ms(context.remaining_deadline.as_ref()));
    let failure = failure(&mut violations, oddities, context.failure.as_ref());
    let hint = hint(&mut violations, oddities, context.hint.as_ref(), unix_now_ms);
    let usage = usage::usage(&mut violations, context.usage.as_ref());
    let call_id = violations.check("call_id", name::id(&context.call_id));
    let evidence = evidence(oddities, context.evidence);
    let question = || {
        Some(Question {
            tenant: tenant?,
            operation: operation?,
            attempts_made: attempts_made?,
            remaining_ms: remaining_ms?,
            body_replayable: context.body_replayable,
            first_byte_delivered: context.first_byte_delivered,
            runtime_draining: context.runtime_draining,
            idempotency: idempotency(context.idempotency.as_ref()),
            failure: failure?,
            evidence,
            hint: hint?,
            usage: usage?,
            call_id: call_id?,
            explain: context.explain,
            dry_run: context.dry_run,
        })
    };
    violations.or(question())
}

/// Things in a message that are no error, and that an operator wants to know of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Oddities {
    /// Enum numbers that this version does not know.
    pub unknown_enums: u64,
    /// Hints and dates that could not be read.
    pub malformed_hints: u64,
}

fn remaining_ms(remaining: Option<&pbjson_types::Duration>) -> Result<Option<u64>, &'static str> {
    remaining.map(Span::parse).transpose().map(|span| span.map(Span::ms_floor))
}

fn idempotency(idempotency: Option<&pb::Idempotency>) -> Idempotency {
    let Some(given) = idempotency else { return Idempotency::default() };
    Idempotency {
        declared: given.declared,
        key_registered: given.key_registered,
        key_sent: given.key_sent,
    }
}

/// Unknown numbers read as the unsafe side: maybe processed.
fn evidence(oddities: &mut Oddities, number: i32) -> Option<Evidence> {
    match pb::Evidence::try_from(number) {
        Ok(pb::Evidence::Unspecified) => None,
        Ok(pb::Evidence::NotSent) => Some(Evidence::NotSent),
        Ok(pb::Evidence::Refused) => Some(Evidence::Refused),
        Ok(pb::Evidence::MaybeProcessed) => Some(Evidence::MaybeProcessed),
        Ok(pb::Evidence::Processed) => Some(Evidence::Processed),
        Err(_) => {
            oddities.unknown_enums += 1;
            Some(Evidence::MaybeProcessed)
        }
    }
}

/// A category of its own is judged alone; else the status is. A status is checked in any case.
fn failure(
    violations: &mut Violations,
    oddities: &mut Oddities,
    failure: Option<&pb::Failure>,
) -> Option<Failure> {
    let status = match failure.and_then(|failure| failure.status.as_ref()) {
        None => Err("required: a category of its own, or a status"),
        Some(pb::failure::Status::HttpStatus(number)) => {
            let status = violations.check("failure.http_status", http_status(*number));
            Ok(status.map(Failure::Http))
        }
        Some(pb::failure::Status::GrpcCode(number)) => {
            let code = violations.check("failure.grpc_code", grpc_code(*number));
            Ok(code.map(Failure::Grpc))
        }
    };
    match category(oddities, failure.map_or(0, |failure| failure.category)) {
        Some(category) => Some(Failure::Category(category)),
        None => violations.check("failure", status)?,
    }
}

fn http_status(number: u32) -> Result<HttpStatus, &'static str> {
    u16::try_from(number).ok().and_then(HttpStatus::new).ok_or("must be 100 to 599")
}

fn grpc_code(number: u32) -> Result<GrpcCode, &'static str> {
    GrpcCode::ALL
        .into_iter()
        .find(|code| *code as u32 == number)
        .ok_or("must be 1 to 16: a gRPC status code other than OK")
}

fn category(oddities: &mut Oddities, number: i32) -> Option<Category> {
    use pb::FailureCategory as Wire;
    /// From here on every number is permanent, the unknown ones too.
    const PERMANENT_MIN: i32 = 20;
    let Ok(category) = Wire::try_from(number) else {
        oddities.unknown_enums += 1;
        return (PERMANENT_MIN <= number).then_some(Category::UnknownPermanent);
    };
    match category {
        Wire::Unspecified | Wire::Status => None,
        Wire::NameResolution => Some(Category::NameResolution),
        Wire::Connect => Some(Category::Connect),
        Wire::TlsHandshake => Some(Category::TlsHandshake),
        Wire::PoolExhausted => Some(Category::PoolExhausted),
        Wire::StreamRefused => Some(Category::StreamRefused),
        Wire::ConnectionReset => Some(Category::ConnectionReset),
        Wire::AttemptTimeout => Some(Category::AttemptTimeout),
        Wire::CertificateRejected => Some(Category::CertificateRejected),
        Wire::ProtocolViolation => Some(Category::ProtocolViolation),
        Wire::RequestRejected => Some(Category::RequestRejected),
        Wire::MessageTooLarge => Some(Category::MessageTooLarge),
        Wire::ResponseUnreadable => Some(Category::ResponseUnreadable),
        Wire::Unauthorized => Some(Category::Unauthorized),
        Wire::Cancelled => Some(Category::Cancelled),
        Wire::Dropped => Some(Category::Dropped),
    }
}

/// Every form that the response carried, as one word.
fn hint(
    violations: &mut Violations,
    oddities: &mut Oddities,
    hint: Option<&pb::ServerHint>,
    unix_now_ms: u64,
) -> Option<Hint> {
    let Some(given) = hint else { return Some(Hint::default()) };
    let base_unix_ms = match hint::date(&given.date_header) {
        Reading::Ms(unix_ms) => unix_ms,
        Reading::Absent => unix_now_ms,
        Reading::Malformed => {
            oddities.malformed_hints += 1;
            unix_now_ms
        }
    };
    let mut malformed = false;
    let header = match hint::retry_after(given.retry_after_header(), base_unix_ms) {
        Reading::Ms(ms) => Wait::AtLeast(ms),
        Reading::Absent => Wait::Unsaid,
        Reading::Malformed => {
            oddities.malformed_hints += 1;
            malformed = true;
            Wait::Unsaid
        }
    };
    let pushback = given.grpc_retry_pushback_ms.as_deref().map_or(Wait::Unsaid, hint::pushback);
    let parsed = given.retry_after.as_ref().map(Span::parse).transpose();
    let parsed = violations.check("hint.retry_after", parsed)?;
    let parsed = parsed.map_or(Wait::Unsaid, |span| Wait::AtLeast(span.ms_ceil()));
    Some(Hint { wait: hint::combine(hint::combine(header, pushback), parsed), malformed })
}
