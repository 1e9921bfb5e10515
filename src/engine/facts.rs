//! Everything a rule may look at. Plain data: no clock, no randomness, no IO, no wire types.
use super::judged::Judged;
use super::rules::Rules;

/// One failed attempt, as far as the rules look at it.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The rules of the policy that answers.
    pub rules: &'a Rules,
    /// Attempts already sent, the failed one included.
    pub attempts_made: u32,
    /// What the budgets of the policy say to one more retry.
    pub budget: Coverage<'a>,
    /// The request body can be sent again from its start.
    pub body_replayable: bool,
    /// At least one byte of a response has reached the application.
    pub first_byte_delivered: bool,
    /// The caller's own runtime is shutting down.
    pub runtime_draining: bool,
    /// Time left until the caller's deadline: 0 if it has passed, `None` if the caller has none.
    pub remaining_ms: Option<u64>,
    /// The failure, judged by the rules. See [`Judged::by`].
    pub failure: Judged,
    /// What the caller knows about the server's side. `None` is derived from the failure.
    pub evidence: Option<Evidence>,
    /// What makes a second run harmless.
    pub idempotency: Idempotency,
    /// The server's word about when, or whether, to come back.
    pub hint: Hint,
    /// A uniform draw in `0..=u32::MAX`, taken by the caller of the engine.
    pub draw: u32,
}

impl Facts<'_> {
    /// The evidence that was given, or else derived from the failure.
    pub fn evidence(&self) -> Evidence {
        self.evidence.unwrap_or(self.failure.evidence())
    }

    /// Whether a throttle takes a token for this failure (gRFC A6): the rules on permanent
    /// failures and on `retry_on` would let it pass, or the server forbids a retry.
    pub fn counts(&self) -> bool {
        self.hint.wait == Wait::Forbidden || self.failure.is_retryable(self.hint)
    }

    /// The longest delay that leaves more than the minimum attempt budget before the deadline.
    pub(super) fn delay_ms_max(&self) -> u64 {
        match self.remaining_ms {
            None => u64::MAX,
            Some(remaining_ms) => {
                remaining_ms.saturating_sub(self.rules.min_attempt_budget_ms).saturating_sub(1)
            }
        }
    }
}

/// What is known about the server's side of the failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// No byte of the request left the caller.
    NotSent,
    /// The server said that it did no work.
    Refused,
    /// Nothing proves that the server did no work.
    MaybeProcessed,
    /// The server did the work, or a part of it.
    Processed,
}

/// What makes a second run of the operation harmless.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Idempotency {
    /// The operation may be repeated by its contract.
    pub declared: bool,
    /// The operation honours an idempotency key.
    pub key_registered: bool,
    /// The key really travelled with every attempt so far.
    pub key_sent: bool,
}

/// The server's hint, already parsed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hint {
    /// What the hint asks for.
    pub wait: Wait,
    /// A `Retry-After` value came along that could not be read. It only shows in the explanation.
    pub malformed: bool,
}

/// What the server asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wait {
    /// No readable hint.
    #[default]
    Unsaid,
    /// At least this long, in milliseconds.
    AtLeast(u64),
    /// Not at all: a `grpc-retry-pushback-ms` that is negative or unreadable (gRFC A6).
    Forbidden,
}

/// What the budgets of the policy say to one more retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coverage<'a> {
    /// The policy names no budget.
    Unbudgeted,
    /// Every budget would grant one more. Names the one with the fewest retries left.
    Covered(Purse<'a>),
    /// Budgets have paid when the same attempt was asked about before, and none of the others
    /// refuses. Names the one with the fewest retries left.
    Remembered(Purse<'a>),
    /// A budget would not grant one more: this one.
    Exhausted(Purse<'a>),
}

/// One budget as an explanation shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Purse<'a> {
    /// The budget's name.
    pub budget: &'a str,
    /// Whole retries that it would grant now.
    pub available: u32,
}
