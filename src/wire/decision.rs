//! An answer to a `Decision`.
use super::{
    duration::{self, Span},
    pb,
};
use crate::budget::Receipt;
use crate::decider::{Answer, Outcome, Said};
use crate::engine::{Class, Delay, Retry, Rule, Step};

/// Writes the decision; the detail and the steps only if the caller wants to see them.
pub fn write(answer: &Answer<'_>, explain: bool) -> pb::Decision {
    pb::Decision {
        policy: answer.policy.to_owned(),
        policy_revision: answer.revision.to_owned(),
        budget: answer.budget.map(pb::BudgetState::from),
        ..nameless(answer, explain)
    }
}

/// The decision without its policy, revision and budget.
pub(super) fn nameless(answer: &Answer<'_>, explain: bool) -> pb::Decision {
    let mut decision = match &answer.outcome {
        Outcome::Retry(retry, receipt) => retry_decision(retry, receipt),
        Outcome::DoNotRetry(_) | Outcome::Outrun(..) => {
            pb::Decision { verdict: pb::Verdict::DoNotRetry.into(), ..Default::default() }
        }
    };
    decision.reason = reason(answer.outcome.reason()).into();
    decision.degraded = answer.degraded;
    decision.shadow = answer.shadow;
    decision.failure_class = class(answer.class).into();
    if explain {
        decision.detail = answer.outcome.reason().sentence().to_owned();
        decision.steps = steps(answer);
    }
    decision
}

/// The only place that says RETRY. It asks for the receipt: a retry that nobody paid for cannot
/// be written.
fn retry_decision(retry: &Retry<'_>, _paid: &Receipt) -> pb::Decision {
    let (delay_ms, source) = match retry.delay() {
        Delay::Backoff { delay_ms } => (delay_ms, pb::DelaySource::Backoff),
        Delay::ServerHint { delay_ms } => (delay_ms, pb::DelaySource::ServerHint),
    };
    pb::Decision {
        verdict: pb::Verdict::Retry.into(),
        delay: Some(duration::from_ms(delay_ms)),
        delay_source: source.into(),
        ..Default::default()
    }
}

fn steps(answer: &Answer<'_>) -> Vec<pb::Step> {
    let asked = answer.outcome.steps();
    let passed = match answer.outcome {
        Outcome::Retry(..) => asked.len(),
        Outcome::DoNotRetry(_) | Outcome::Outrun(..) => asked.len().saturating_sub(1),
    };
    let write = |(place, Step { rule, look }): (usize, &Step<'_>)| pb::Step {
        rule: reason(*rule).into(),
        saw: look.to_string(),
        objected: passed <= place,
    };
    asked.iter().enumerate().map(write).collect()
}

/// What a decision means to whoever asked. `None` if retryd writes no such decision.
pub fn said(decision: &pb::Decision) -> Option<Said> {
    let rule = Rule::ALL.into_iter().find(|rule| reason(*rule) == decision.reason())?;
    let delay_ms = decision.delay.as_ref().map(|delay| Span::parse(delay).map(Span::ms_ceil));
    let delay = match (rule, decision.verdict(), delay_ms, decision.delay_source()) {
        (Rule::Retryable, pb::Verdict::Retry, Some(Ok(delay_ms)), pb::DelaySource::Backoff) => {
            Some(Delay::Backoff { delay_ms })
        }
        (Rule::Retryable, pb::Verdict::Retry, Some(Ok(delay_ms)), pb::DelaySource::ServerHint) => {
            Some(Delay::ServerHint { delay_ms })
        }
        (Rule::Retryable, ..) => return None,
        (_, pb::Verdict::DoNotRetry, None, pb::DelaySource::Unspecified) => None,
        _ => return None,
    };
    Some(Said { reason: rule, delay, shadow: decision.shadow })
}

/// The contract's word for a rule.
fn reason(rule: Rule) -> pb::Reason {
    match rule {
        Rule::AttemptsExhausted => pb::Reason::AttemptsExhausted,
        Rule::BudgetExhausted => pb::Reason::BudgetExhausted,
        Rule::BodyNotReplayable => pb::Reason::BodyNotReplayable,
        Rule::FirstByteDelivered => pb::Reason::FirstByteDelivered,
        Rule::RuntimeDraining => pb::Reason::RuntimeDraining,
        Rule::DeadlineTooNear => pb::Reason::DeadlineTooNear,
        Rule::PermanentFailure => pb::Reason::PermanentFailure,
        Rule::IdempotencyKeyNotSent => pb::Reason::IdempotencyKeyNotSent,
        Rule::MaybeProcessed => pb::Reason::MaybeProcessed,
        Rule::ServerForbids => pb::Reason::ServerForbids,
        Rule::NotRetryable => pb::Reason::NotRetryable,
        Rule::HintTooLong => pb::Reason::HintTooLong,
        Rule::HintBeyondDeadline => pb::Reason::HintBeyondDeadline,
        Rule::BackoffBeyondDeadline => pb::Reason::BackoffBeyondDeadline,
        Rule::Retryable => pb::Reason::Retryable,
    }
}

fn class(class: Class) -> pb::FailureClass {
    match class {
        Class::Transient => pb::FailureClass::Transient,
        Class::Throttling => pb::FailureClass::Throttling,
        Class::Timeout => pb::FailureClass::Timeout,
    }
}
