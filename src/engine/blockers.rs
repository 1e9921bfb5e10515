//! Stage 1: six rules that forbid a retry whatever failed.
use super::facts::{Coverage, Facts, Purse};
use super::rule::{Denied, Rule};

/// Proof that all six blockers were asked and none of them objected.
pub(super) struct Unblocked<'a>(&'a Facts<'a>);

impl<'a> Unblocked<'a> {
    pub(super) fn facts(&self) -> &'a Facts<'a> {
        self.0
    }
}

pub(super) fn clear<'a>(facts: &'a Facts<'a>) -> Result<Unblocked<'a>, Denied<'a>> {
    match BLOCKERS.iter().find(|Blocker(_, read)| read(facts).blocks()) {
        Some(Blocker(rule, _)) => Err(Denied::by(*rule, facts)),
        None => Ok(Unblocked(facts)),
    }
}

/// A rule and the gauge it reads. A gauge has no word for "retry".
struct Blocker(Rule, for<'a> fn(&Facts<'a>) -> Gauge<'a>);

const BLOCKERS: [Blocker; 6] = [
    Blocker(Rule::AttemptsExhausted, |f| Gauge::used_up(f.attempts_made, f.rules.attempts_max)),
    Blocker(Rule::BudgetExhausted, |f| Gauge::Budget(f.budget)),
    Blocker(Rule::BodyNotReplayable, |f| Gauge::Flag(!f.body_replayable)),
    Blocker(Rule::FirstByteDelivered, |f| Gauge::Flag(f.first_byte_delivered)),
    Blocker(Rule::RuntimeDraining, |f| Gauge::Flag(f.runtime_draining)),
    Blocker(Rule::DeadlineTooNear, |f| Gauge::left(f.remaining_ms, f.rules.min_attempt_budget_ms)),
];

// The rows follow the order of asking. Checked when this file compiles.
#[expect(clippy::indexing_slicing, reason = "out of range would not compile")]
const _: () = {
    let mut row = 0;
    while row < BLOCKERS.len() {
        assert!(BLOCKERS[row].0 as usize == row);
        row += 1;
    }
};

/// What a blocker reads. The reading alone says whether it blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gauge<'a> {
    /// Blocks if raised.
    Flag(bool),
    /// Blocks at the limit.
    UsedUp {
        /// Attempts made.
        used: u32,
        /// Attempts allowed.
        limit: u32,
    },
    /// Blocks if a budget would not grant one more retry.
    Budget(Coverage<'a>),
    /// Blocks if there is a deadline and no more is left than an attempt needs.
    Left {
        /// Time left until the deadline, if there is one.
        have_ms: Option<u64>,
        /// The minimum attempt budget.
        need_ms: u64,
    },
}

impl Gauge<'_> {
    const fn used_up(used: u32, limit: u32) -> Self {
        Gauge::UsedUp { used, limit }
    }

    const fn left(have_ms: Option<u64>, need_ms: u64) -> Self {
        Gauge::Left { have_ms, need_ms }
    }

    fn blocks(self) -> bool {
        match self {
            Gauge::Flag(raised) => raised,
            Gauge::UsedUp { used, limit } => limit <= used,
            Gauge::Budget(Coverage::Exhausted(Purse { .. })) => true,
            Gauge::Budget(
                Coverage::Unbudgeted | Coverage::Covered(_) | Coverage::Remembered(_),
            ) => false,
            Gauge::Left { have_ms, need_ms } => have_ms.is_some_and(|have_ms| have_ms <= need_ms),
        }
    }
}

/// What the blocker `rule` reads; `None` for a rule of a later stage.
pub(super) fn gauge<'a>(rule: Rule, facts: &Facts<'a>) -> Option<Gauge<'a>> {
    let Blocker(_, read) = BLOCKERS.get(rule as usize)?;
    Some(read(facts))
}
