//! What the span of a call says of its decision.
use crate::decider::{Answer, Outcome};
use crate::traces::CallSpan;

/// Tells the span, if the call is traced.
pub(super) fn tell(span: Option<&CallSpan>, answer: &Answer<'_>) {
    let Some(span) = span else { return };
    let verdict = match answer.outcome {
        Outcome::Retry(..) => "RETRY",
        Outcome::DoNotRetry(_) | Outcome::Outrun(..) => "DO_NOT_RETRY",
    };
    span.decided(verdict, answer.outcome.reason().name(), answer.policy);
}
