//! What each rule looks at, and how an explanation says it.
use core::fmt;

use super::backoff;
use super::blockers::{self, Gauge};
use super::facts::{Coverage, Evidence, Facts, Hint, Idempotency, Purse, Wait};
use super::failure::Failure;
use super::rule::Rule;
use super::rules::Jitter;

/// The value that a rule looked at. Equal looks, equal answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look<'a> {
    /// A blocker's gauge.
    Gauge(Rule, Gauge<'a>),
    /// The failure, and whether it is permanent.
    Permanence {
        /// What is judged.
        failure: Failure,
        /// No repeat can help.
        permanent: bool,
    },
    /// What is known about a second run.
    Repeat(Evidence, Idempotency),
    /// The server's hint.
    Hint(Hint),
    /// The failure, whether `retry_on` lists it, and the hint that came with it.
    Listed {
        /// What is judged.
        failure: Failure,
        /// `retry_on` names it.
        listed: bool,
        /// The hint that came with it.
        hint: Hint,
    },
    /// The hint and the longest one allowed.
    HintLimit {
        /// The hint.
        hint: Hint,
        /// The policy's `max_hint`.
        limit_ms: u64,
    },
    /// The drawn backoff, the hint, and the longest delay that fits the deadline.
    Fit {
        /// The drawn backoff.
        backoff_ms: u64,
        /// Whether a longer hint is spread by the backoff.
        jitter: Jitter,
        /// The hint.
        hint: Hint,
        /// The longest delay that fits; `None` without a deadline.
        fits_ms_max: Option<u64>,
    },
}

impl<'a> Look<'a> {
    pub(super) fn of(rule: Rule, facts: &Facts<'a>) -> Look<'a> {
        let failure = facts.failure.failure();
        match rule {
            Rule::AttemptsExhausted
            | Rule::BudgetExhausted
            | Rule::BodyNotReplayable
            | Rule::FirstByteDelivered
            | Rule::RuntimeDraining
            | Rule::DeadlineTooNear => {
                Look::Gauge(rule, blockers::gauge(rule, facts).unwrap_or(Gauge::Flag(false)))
            }
            Rule::PermanentFailure => {
                Look::Permanence { failure, permanent: facts.failure.is_permanent() }
            }
            Rule::IdempotencyKeyNotSent | Rule::MaybeProcessed => {
                Look::Repeat(facts.evidence(), facts.idempotency)
            }
            Rule::ServerForbids => Look::Hint(facts.hint),
            Rule::NotRetryable => {
                Look::Listed { failure, listed: facts.failure.is_listed(), hint: facts.hint }
            }
            Rule::HintTooLong => {
                Look::HintLimit { hint: facts.hint, limit_ms: facts.rules.hint_ms_max }
            }
            Rule::HintBeyondDeadline | Rule::BackoffBeyondDeadline | Rule::Retryable => Look::Fit {
                backoff_ms: backoff::wait_ms(&facts.rules.backoff, facts.attempts_made, facts.draw),
                jitter: facts.rules.backoff.jitter,
                hint: facts.hint,
                fits_ms_max: facts.remaining_ms.map(|_| facts.delay_ms_max()),
            },
        }
    }
}

impl fmt::Display for Look<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Look::Gauge(rule, gauge) => write_gauge(f, *rule, *gauge),
            Look::Permanence { failure, permanent: true } => write!(f, "{failure}, permanent"),
            Look::Permanence { failure, permanent: false } => {
                write!(f, "{failure}, not permanent")
            }
            Look::Repeat(evidence, idempotency) => write!(f, "{evidence}, {idempotency}"),
            Look::Hint(hint) => write!(f, "{hint}"),
            Look::Listed { failure, listed: true, hint } => {
                write!(f, "{failure}, in retry_on, {hint}")
            }
            Look::Listed { failure, listed: false, hint } => {
                write!(f, "{failure}, not in retry_on, {hint}")
            }
            Look::HintLimit { hint, limit_ms } => write!(f, "{hint}, max_hint {limit_ms} ms"),
            Look::Fit { backoff_ms, jitter, hint, fits_ms_max } => {
                write!(f, "backoff {backoff_ms} ms, {hint}")?;
                // Only a hint that is longer than the backoff is spread.
                match (hint.wait, jitter) {
                    (Wait::AtLeast(hint_ms), Jitter::Full | Jitter::Equal)
                        if *backoff_ms < hint_ms =>
                    {
                        f.write_str(" spread by the backoff")?;
                    }
                    (Wait::Unsaid | Wait::AtLeast(_) | Wait::Forbidden, _) => {}
                }
                match fits_ms_max {
                    Some(fits_ms_max) => write!(f, ", at most {fits_ms_max} ms fit"),
                    None => f.write_str(", no deadline"),
                }
            }
        }
    }
}

fn write_gauge(f: &mut fmt::Formatter<'_>, rule: Rule, gauge: Gauge<'_>) -> fmt::Result {
    match (rule, gauge) {
        (_, Gauge::UsedUp { used, limit }) => write!(f, "attempts_made {used} of max {limit}"),
        (_, Gauge::Budget(coverage)) => write!(f, "{coverage}"),
        (_, Gauge::Left { have_ms: None, need_ms }) => {
            write!(f, "no deadline, min_attempt_budget {need_ms} ms")
        }
        (_, Gauge::Left { have_ms: Some(have_ms), need_ms }) => {
            write!(f, "remaining {have_ms} ms, min_attempt_budget {need_ms} ms")
        }
        (Rule::BodyNotReplayable, Gauge::Flag(raised)) => write!(f, "body_replayable {}", !raised),
        (Rule::FirstByteDelivered, Gauge::Flag(raised)) => {
            write!(f, "first_byte_delivered {raised}")
        }
        (_, Gauge::Flag(raised)) => write!(f, "runtime_draining {raised}"),
    }
}

impl fmt::Display for Coverage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Coverage::Unbudgeted => f.write_str("no budgets"),
            Coverage::Covered(Purse { budget, available }) => {
                write!(f, "budget {budget} has {available} retries available")
            }
            // It may have none left: this attempt needs no more.
            Coverage::Remembered(Purse { budget, available }) => write!(
                f,
                "paid when asked before; budget {budget} has {available} retries available"
            ),
            // Not the number: after a costly failure, a bucket with one left may refuse.
            Coverage::Exhausted(Purse { budget, .. }) => {
                write!(f, "budget {budget} would not grant one more retry")
            }
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Http(status) => write!(f, "HTTP {}", status.get()),
            Failure::Grpc(code) => write!(f, "gRPC {}", code.name()),
            Failure::Category(category) => f.write_str(category.name()),
        }
    }
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Evidence::NotSent => "evidence NOT_SENT",
            Evidence::Refused => "evidence REFUSED",
            Evidence::MaybeProcessed => "evidence MAYBE_PROCESSED",
            Evidence::Processed => "evidence PROCESSED",
        })
    }
}

impl fmt::Display for Idempotency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Idempotency { declared, key_registered, key_sent } = self;
        write!(f, "declared {declared}, key_registered {key_registered}, key_sent {key_sent}")
    }
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.wait {
            Wait::Unsaid => f.write_str("no hint")?,
            Wait::AtLeast(hint_ms) => write!(f, "hint {hint_ms} ms")?,
            Wait::Forbidden => f.write_str("pushback forbids")?,
        }
        if self.malformed { f.write_str(" (a malformed Retry-After was ignored)") } else { Ok(()) }
    }
}
