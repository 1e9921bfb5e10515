//! What is taken along of a decision that is logged. Its line is made from it later, elsewhere.
use std::mem::size_of;

use prost::Message as _;

use super::line::{Asked, Budgets, Line, Word};
use crate::budget::Budget;
use crate::clock::Now;
use crate::decider::Answer;
use crate::engine::Coverage;
use crate::wire::{decision, pb};

/// One decision, cloned out of the hands of whoever answers.
#[derive(Debug)]
pub(super) struct Entry {
    now: Now,
    draw: u32,
    said: Word,
    by: Option<(Box<str>, u32)>,
    asked: Vec<Budget>,
    context: pb::RetryContext,
    decision: pb::Decision,
    shadow: Option<pb::Decision>,
}

impl Entry {
    pub(super) fn of(
        context: &pb::RetryContext,
        now: Now,
        answer: &Answer<'_>,
        shadow: Option<&Answer<'_>>,
    ) -> Entry {
        let (said, by) = match answer.coverage {
            Coverage::Unbudgeted => (Word::Unbudgeted, None),
            Coverage::Covered(purse) => (Word::Covered, Some(purse)),
            Coverage::Remembered(purse) => (Word::Remembered, Some(purse)),
            Coverage::Exhausted(purse) => (Word::Exhausted, Some(purse)),
        };
        Entry {
            now,
            draw: answer.draw,
            said,
            by: by.map(|purse| (purse.budget.into(), purse.available)),
            asked: answer.policies.payers_of(answer.ruling).cloned().collect(),
            context: context.clone(),
            // Without the steps: whoever has the line can have them told again.
            decision: decision::write(answer, false),
            shadow: shadow.map(|shadow| decision::write(shadow, false)),
        }
    }

    /// About what it takes in memory. What differs is what the caller has sent.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Entry>() + self.context.encoded_len()
    }

    pub(super) fn into_line(self) -> Line {
        let (by, available) = self.by.map_or((String::new(), 0), |(by, left)| (by.into(), left));
        let asked = self.asked.iter().map(Asked::of).collect();
        Line {
            unix_ms: self.now.unix_ms,
            monotonic_ms: self.now.monotonic_ms,
            draw: self.draw,
            budgets: Budgets { said: self.said, by, available, asked },
            context: self.context,
            unknown_enums: None,
            decision: self.decision,
            shadow: self.shadow,
        }
    }
}
