//! The names of the rules, the order of asking, and the answer no.
use super::blockers::Gauge;
use super::facts::{Coverage, Facts};
use super::look::Look;

/// Every rule, in the order of asking. The one that decided is the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Rule {
    /// No attempt is left.
    AttemptsExhausted,
    /// A budget of the policy would not grant one more retry.
    BudgetExhausted,
    /// The request body cannot be sent again.
    BodyNotReplayable,
    /// A part of the response has reached the application.
    FirstByteDelivered,
    /// The caller's runtime is shutting down.
    RuntimeDraining,
    /// The deadline leaves no room for an attempt.
    DeadlineTooNear,
    /// No repeat can help.
    PermanentFailure,
    /// It may have been processed, and the key that would protect a repeat was not sent.
    IdempotencyKeyNotSent,
    /// It may have been processed, and nothing makes a repeat safe.
    MaybeProcessed,
    /// The server pushed back with "do not retry" (gRFC A6).
    ServerForbids,
    /// The policy does not list the failure.
    NotRetryable,
    /// The hint is longer than the policy's longest wait.
    HintTooLong,
    /// The hint does not fit the deadline.
    HintBeyondDeadline,
    /// The backoff does not fit the deadline.
    BackoffBeyondDeadline,
    /// No rule objected.
    Retryable,
}

impl Rule {
    /// Every rule, in the order of asking.
    pub const ALL: [Rule; 15] = [
        Rule::AttemptsExhausted,
        Rule::BudgetExhausted,
        Rule::BodyNotReplayable,
        Rule::FirstByteDelivered,
        Rule::RuntimeDraining,
        Rule::DeadlineTooNear,
        Rule::PermanentFailure,
        Rule::IdempotencyKeyNotSent,
        Rule::MaybeProcessed,
        Rule::ServerForbids,
        Rule::NotRetryable,
        Rule::HintTooLong,
        Rule::HintBeyondDeadline,
        Rule::BackoffBeyondDeadline,
        Rule::Retryable,
    ];

    /// The rule's name in the contract, in metrics and in documents.
    pub const fn name(self) -> &'static str {
        match self {
            Rule::AttemptsExhausted => "ATTEMPTS_EXHAUSTED",
            Rule::BudgetExhausted => "BUDGET_EXHAUSTED",
            Rule::BodyNotReplayable => "BODY_NOT_REPLAYABLE",
            Rule::FirstByteDelivered => "FIRST_BYTE_DELIVERED",
            Rule::RuntimeDraining => "RUNTIME_DRAINING",
            Rule::DeadlineTooNear => "DEADLINE_TOO_NEAR",
            Rule::PermanentFailure => "PERMANENT_FAILURE",
            Rule::IdempotencyKeyNotSent => "IDEMPOTENCY_KEY_NOT_SENT",
            Rule::MaybeProcessed => "MAYBE_PROCESSED",
            Rule::ServerForbids => "SERVER_FORBIDS",
            Rule::NotRetryable => "NOT_RETRYABLE",
            Rule::HintTooLong => "HINT_TOO_LONG",
            Rule::HintBeyondDeadline => "HINT_BEYOND_DEADLINE",
            Rule::BackoffBeyondDeadline => "BACKOFF_BEYOND_DEADLINE",
            Rule::Retryable => "RETRYABLE",
        }
    }

    /// One sentence for people, as `Decision.detail` carries it.
    pub const fn sentence(self) -> &'static str {
        match self {
            Rule::AttemptsExhausted => "All attempts that the policy allows have been made.",
            Rule::BudgetExhausted => "A retry budget has nothing left for one more retry.",
            Rule::BodyNotReplayable => "The request body cannot be sent again from its start.",
            Rule::FirstByteDelivered => "A part of the response has reached the application.",
            Rule::RuntimeDraining => "The caller's own runtime is shutting down.",
            Rule::DeadlineTooNear => "The deadline leaves no time for another attempt.",
            Rule::PermanentFailure => "The failure is permanent: no repeat can help.",
            Rule::IdempotencyKeyNotSent => {
                "The attempt may have been processed, and its idempotency key was not sent."
            }
            Rule::MaybeProcessed => {
                "The attempt may have been processed, and nothing makes a repeat safe."
            }
            Rule::ServerForbids => "The server's pushback forbids a retry.",
            Rule::NotRetryable => "The policy does not list this failure as retryable.",
            Rule::HintTooLong => "The server asks for a longer wait than the policy allows.",
            Rule::HintBeyondDeadline => "The wait that the server asks for misses the deadline.",
            Rule::BackoffBeyondDeadline => "The backoff misses the deadline.",
            Rule::Retryable => "No rule objected.",
        }
    }
}

/// One line of an explanation: a rule, and what it looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step<'a> {
    /// The rule that was asked.
    pub rule: Rule,
    /// What it looked at.
    pub look: Look<'a>,
}

impl<'a> Step<'a> {
    /// The budgets, asked once more when they were to be charged: another caller was faster.
    pub fn budget_exhausted(coverage: Coverage<'a>) -> Step<'a> {
        let rule = Rule::BudgetExhausted;
        Step { rule, look: Look::Gauge(rule, Gauge::Budget(coverage)) }
    }
}

/// The rules asked up to and including `last`. Every one before `last` let the attempt pass.
pub(super) fn steps<'a>(
    facts: &'a Facts<'a>,
    last: Rule,
) -> impl Iterator<Item = Step<'a>> + use<'a> {
    Rule::ALL
        .into_iter()
        .take_while(move |rule| *rule <= last)
        .map(move |rule| Step { rule, look: Look::of(rule, facts) })
}

/// The answer no, and the rule that gave it.
#[derive(Clone, Copy, Debug)]
pub struct Denied<'a> {
    facts: &'a Facts<'a>,
    rule: Rule,
}

impl<'a> Denied<'a> {
    pub(super) fn by(rule: Rule, facts: &'a Facts<'a>) -> Denied<'a> {
        Denied { facts, rule }
    }

    /// The rule that objected.
    pub fn rule(&self) -> Rule {
        self.rule
    }

    /// The rules that were asked. The last one objected.
    pub fn steps(&self) -> impl Iterator<Item = Step<'a>> + use<'a> {
        steps(self.facts, self.rule)
    }
}
