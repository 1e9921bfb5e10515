//! Stage 4: what the failures that are left allow, and when.
use super::backoff;
use super::evidence::Repeatable;
use super::facts::{Facts, Wait};
use super::rule::{self, Denied, Rule, Step};
use super::rules::Jitter;

/// The answer yes. Its fields are private, so only this file can make one.
#[derive(Clone, Copy, Debug)]
pub struct Retry<'a> {
    facts: &'a Facts<'a>,
    delay: Delay,
}

impl<'a> Retry<'a> {
    /// How long to wait before the next attempt.
    pub fn delay(&self) -> Delay {
        self.delay
    }

    /// The rules that were asked: all of them, and none objected.
    pub fn steps(&self) -> impl Iterator<Item = Step<'a>> + use<'a> {
        rule::steps(self.facts, Rule::Retryable)
    }
}

/// A wait, and whose idea it was. At least 1 ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delay {
    /// The policy's backoff.
    Backoff {
        /// The wait in milliseconds.
        delay_ms: u64,
    },
    /// The server's hint, which is never cut.
    ServerHint {
        /// The wait in milliseconds.
        delay_ms: u64,
    },
}

impl Delay {
    /// The wait in milliseconds.
    pub fn ms(self) -> u64 {
        match self {
            Delay::Backoff { delay_ms } | Delay::ServerHint { delay_ms } => delay_ms,
        }
    }
}

pub(super) fn plan(repeatable: Repeatable<'_>) -> Result<Retry<'_>, Denied<'_>> {
    let (facts, failure) = repeatable.into_parts();
    let hint_ms = match facts.hint.wait {
        Wait::Forbidden => return Err(Denied::by(Rule::ServerForbids, facts)),
        Wait::Unsaid => 0,
        Wait::AtLeast(hint_ms) => hint_ms,
    };
    if !failure.is_retryable(facts.failure.is_listed(), facts.hint) {
        return Err(Denied::by(Rule::NotRetryable, facts));
    }
    if facts.rules.hint_ms_max < hint_ms {
        return Err(Denied::by(Rule::HintTooLong, facts));
    }
    let backoff_ms = backoff::wait_ms(&facts.rules.backoff, facts.attempts_made, facts.draw);
    let delay_ms_max = facts.delay_ms_max();
    let delay = if backoff_ms < hint_ms {
        if delay_ms_max < hint_ms {
            return Err(Denied::by(Rule::HintBeyondDeadline, facts));
        }
        Delay::ServerHint { delay_ms: spread(facts, hint_ms, backoff_ms).min(delay_ms_max) }
    } else {
        if delay_ms_max < backoff_ms {
            return Err(Denied::by(Rule::BackoffBeyondDeadline, facts));
        }
        Delay::Backoff { delay_ms: backoff_ms }
    };
    Ok(Retry { facts, delay })
}

/// All callers who were told one moment would come back in one instant: jitter only adds.
fn spread(facts: &Facts<'_>, hint_ms: u64, backoff_ms: u64) -> u64 {
    match facts.rules.backoff.jitter {
        Jitter::None => hint_ms,
        Jitter::Full | Jitter::Equal => hint_ms.saturating_add(backoff_ms),
    }
}
