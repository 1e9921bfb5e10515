//! What holds without an answer: the one retry that needs none, and what a throttle counts
//! (semantics 7 and 14).
use std::time::Duration;

use tonic::Code;

use crate::pb::{FailureCategory as Category, RetryContext, ServerHint, failure::Status};

/// What must be left of the deadline for the next attempt.
const ATTEMPT_BUDGET: Duration = Duration::from_millis(50);

/// How long to wait before the one retry that is allowed, though the question `ended` without an
/// answer. `backoff` is the random wait.
pub(crate) fn wait(
    context: &RetryContext,
    ended: Code,
    throttle_grants: bool,
    backoff: Duration,
) -> Option<Duration> {
    let silent = matches!(ended, Code::Unavailable | Code::DeadlineExceeded);
    if !(silent && throttle_grants && is_harmless(context)) {
        return None;
    }
    let wait = hint(context.hint.as_ref())?.max(backoff);
    let fits = match context.remaining_deadline {
        None => true,
        Some(left) => {
            let left = Duration::try_from(left).unwrap_or_default();
            wait.saturating_add(ATTEMPT_BUDGET) < left
        }
    };
    fits.then_some(wait)
}

/// The first failure of a call of which the server surely saw nothing.
fn is_harmless(context: &RetryContext) -> bool {
    let category = context.failure.as_ref().map(crate::pb::Failure::category);
    context.attempts_made == 1
        && context.body_replayable
        && !context.first_byte_delivered
        && !context.runtime_draining
        && matches!(
            category,
            Some(Category::NameResolution | Category::Connect | Category::StreamRefused)
        )
}

/// The longest hint, 0 without any. `None` where one forbids, or only retryd can read it.
fn hint(hint: Option<&ServerHint>) -> Option<Duration> {
    let Some(hint) = hint else { return Some(Duration::ZERO) };
    // A negative one is no time at all.
    let info = hint.retry_after.map_or(Duration::ZERO, |it| it.try_into().unwrap_or_default());
    let header = match retry_after(hint) {
        None => Duration::ZERO,
        Some(digits) if is_digits(digits) => {
            digits.parse().map_or(Duration::MAX, Duration::from_secs)
        }
        Some(_) => return None,
    };
    let pushback = match &hint.grpc_retry_pushback_ms {
        None => Duration::ZERO,
        Some(text) => pushback(text)?,
    };
    Some(up_to_millis(info).max(header).max(pushback))
}

/// Plain digits up to 2147483647. Everything else means "do not retry" (gRFC A6).
fn pushback(text: &str) -> Option<Duration> {
    let is_plain = is_digits(text) && (text == "0" || !text.starts_with('0'));
    let millis = text.parse::<i32>().ok().filter(|_| is_plain)?;
    Some(Duration::from_millis(millis.unsigned_abs().into()))
}

fn up_to_millis(wait: Duration) -> Duration {
    let nanos = wait.subsec_nanos().next_multiple_of(1_000_000);
    Duration::from_secs(wait.as_secs()).saturating_add(Duration::from_nanos(nanos.into()))
}

/// Whether a throttle counts this failure: the default `retry_on` of a policy, and what forbids.
pub(crate) fn counts(context: &RetryContext) -> bool {
    let Some(failure) = &context.failure else { return false };
    let pushback_given = context.hint.as_ref().and_then(|it| it.grpc_retry_pushback_ms.as_deref());
    if pushback_given.is_some_and(|text| pushback(text).is_none()) {
        return true;
    }
    match failure.category() {
        Category::Unspecified | Category::Status => match failure.status {
            Some(Status::HttpStatus(status)) => {
                matches!(status, 408 | 421 | 425 | 429 | 500 | 502 | 503 | 504)
            }
            Some(Status::GrpcCode(code)) => match Code::from(i32::try_from(code).unwrap_or(-1)) {
                Code::Unavailable => true,
                Code::ResourceExhausted => context.hint.as_ref().is_some_and(is_readable),
                _ => false,
            },
            None => false,
        },
        Category::NameResolution
        | Category::Connect
        | Category::TlsHandshake
        | Category::StreamRefused
        | Category::ConnectionReset
        | Category::AttemptTimeout => true,
        Category::PoolExhausted
        | Category::CertificateRejected
        | Category::ProtocolViolation
        | Category::RequestRejected
        | Category::MessageTooLarge
        | Category::ResponseUnreadable
        | Category::Unauthorized
        | Category::Cancelled
        | Category::Dropped => false,
    }
}

/// A hint that says when to come back. Of a Retry-After, only seconds are read here.
fn is_readable(hint: &ServerHint) -> bool {
    hint.retry_after.is_some()
        || hint.grpc_retry_pushback_ms.is_some()
        || retry_after(hint).is_some_and(is_digits)
}

/// The Retry-After header, if it says anything.
fn retry_after(hint: &ServerHint) -> Option<&str> {
    let text = hint.retry_after_header.as_deref()?.trim_matches([' ', '\t']);
    (!text.is_empty()).then_some(text)
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    //! `clients/scenarios/unasked.json` and `throttle.json`.
    use serde::Deserialize;
    use serde_json::{Map, Value};

    use super::*;
    use crate::testing::{from_json, scenarios};
    use crate::throttle::Throttle;

    #[derive(Deserialize)]
    struct Unasked {
        base: Map<String, Value>,
        cases: Vec<Case>,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Case {
        name: String,
        ended: String,
        tokens: Option<f64>,
        context: Map<String, Value>,
        expect: Expect,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Expect {
        retry: bool,
        least_ms: Option<u64>,
        most_ms: Option<u64>,
    }

    #[test]
    fn the_exception_is_as_the_scenarios_say() {
        let unasked: Unasked = scenarios("unasked.json");
        assert!(!unasked.cases.is_empty());
        for case in &unasked.cases {
            let mut json = unasked.base.clone();
            json.extend(case.context.clone());
            json.retain(|_, value| !value.is_null());
            let context: RetryContext = from_json("RetryContext", Value::Object(json));
            let ended = code(&case.ended);
            let waits = [1, 100].map(|backoff_ms| {
                let throttle = Throttle::with_tokens(case.tokens.unwrap_or(10.0));
                if counts(&context) {
                    throttle.failure();
                }
                let backoff = Duration::from_millis(backoff_ms);
                wait(&context, ended, throttle.grants(), backoff)
            });
            let wanted = [case.expect.least_ms, case.expect.most_ms];
            let wanted = wanted.map(|wait| wait.map(Duration::from_millis));
            assert_eq!(case.expect.retry, wanted[0].is_some(), "{}", case.name);
            assert_eq!(waits, wanted, "{}", case.name);
        }
        println!("unasked: {} cases", unasked.cases.len());
    }

    fn code(name: &str) -> Code {
        let all = (0..17).map(Code::from);
        let is_named = |code: &Code| format!("{code:?}").to_uppercase() == name.replace('_', "");
        all.into_iter().find(is_named).unwrap_or_else(|| panic!("no code {name}"))
    }

    #[derive(Deserialize)]
    struct Throttles {
        sequences: Vec<Sequence>,
        counts: Vec<Count>,
    }

    #[derive(Deserialize)]
    struct Sequence {
        name: String,
        steps: Vec<Step>,
    }

    #[derive(Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Step {
        Failures(u32),
        Successes(u32),
        Grants(bool),
    }

    #[derive(Deserialize)]
    struct Count {
        name: String,
        context: Value,
        counts: bool,
    }

    #[test]
    fn the_throttle_is_as_the_scenarios_say() {
        let throttles: Throttles = scenarios("throttle.json");
        assert!(!throttles.sequences.is_empty() && !throttles.counts.is_empty());
        for sequence in &throttles.sequences {
            let throttle = Throttle::default();
            for step in &sequence.steps {
                match step {
                    Step::Failures(times) => (0..*times).for_each(|_| throttle.failure()),
                    Step::Successes(times) => (0..*times).for_each(|_| throttle.success()),
                    Step::Grants(wanted) => {
                        assert_eq!(throttle.grants(), *wanted, "{}", sequence.name);
                    }
                }
            }
        }
        for count in throttles.counts {
            let context: RetryContext = from_json("RetryContext", count.context);
            assert_eq!(counts(&context), count.counts, "{}", count.name);
        }
        println!("throttle: {} sequences", throttles.sequences.len());
    }
}
