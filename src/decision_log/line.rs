//! One line of the log, as it is written and as it is read.
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::one_line;
use crate::budget::Budget;
use crate::wire::pb;

/// A decision, and everything that it was made from. Messages are proto-JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Line {
    /// When it was decided: what a date in a hint was measured from.
    pub unix_ms: u64,
    /// The same on the clock that budgets go by, which begins with the process.
    pub monotonic_ms: u64,
    /// What jitter drew.
    pub draw: u32,
    /// What the budgets said.
    pub budgets: Budgets,
    /// What was asked.
    pub context: pb::RetryContext,
    /// Numbers in the context that proto-JSON has no name for. [`Line::read`] puts them back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) unknown_enums: Option<UnknownEnums>,
    /// What was answered, without its explanation.
    pub decision: pb::Decision,
    /// What the policies beside the ones in force said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shadow: Option<pb::Decision>,
}

/// What the budgets of the policy said to one more retry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Budgets {
    /// The answer of all of them.
    pub said: Word,
    /// The one that refused, or else the one with the fewest retries left.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
    /// What it had left, before it paid.
    #[serde(default)]
    pub available: u32,
    /// Every budget of the policy, in its order. They were asked up to the one that refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<Asked>,
}

/// An answer of budgets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Word {
    /// The policy names none.
    Unbudgeted,
    /// Each would grant one more.
    Covered,
    /// Paid when the same attempt was asked about before.
    Remembered,
    /// One would not grant one more.
    Exhausted,
}

/// A budget as it was when it was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// Its name in the policy file.
    pub name: String,
    /// Stands for its scope, its model and its sizes: the same digest, the same budget.
    pub digest: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UnknownEnums {
    #[serde(default, skip_serializing_if = "is_zero")]
    category: i32,
    #[serde(default, skip_serializing_if = "is_zero")]
    evidence: i32,
}

impl Asked {
    /// The budget as it is.
    pub(super) fn of(budget: &Budget) -> Asked {
        const DIGEST_BYTES: usize = 4;
        let Budget { name, scope, limits, on_store_loss } = budget;
        // A version of retryd that knows more of a budget writes another text. Then it counts as
        // another budget, which is the safe side.
        let digest = Sha256::digest(format!("{scope:?} {limits:?} {on_store_loss:?}"));
        let digits = digest.iter().take(DIGEST_BYTES).map(|byte| format!("{byte:02x}"));
        Asked { name: name.to_string(), digest: digits.collect() }
    }
}

impl Line {
    /// Reads a line.
    ///
    /// # Errors
    ///
    /// Says where it is no line of a decision log.
    pub fn read(bytes: &[u8]) -> Result<Line, serde_json::Error> {
        let mut line: Line = serde_json::from_slice(bytes)?;
        if let Some(UnknownEnums { category, evidence }) = line.unknown_enums.take() {
            if let (Some(failure), true) = (&mut line.context.failure, category != 0) {
                failure.category = category;
            }
            if evidence != 0 {
                line.context.evidence = evidence;
            }
        }
        Ok(line)
    }

    /// Writes the line, and its end, to the end of `out`.
    pub(super) fn write(mut self, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        self.unknown_enums = self.take_unknown_enums();
        one_line::write(&self, out)?;
        out.push(b'\n');
        Ok(())
    }

    /// Takes what proto-JSON has no name for out of the context.
    fn take_unknown_enums(&mut self) -> Option<UnknownEnums> {
        let mut unknown = UnknownEnums::default();
        let context = &mut self.context;
        if let Some(failure) = &mut context.failure
            && pb::FailureCategory::try_from(failure.category).is_err()
        {
            unknown.category = std::mem::take(&mut failure.category);
        }
        if pb::Evidence::try_from(context.evidence).is_err() {
            unknown.evidence = std::mem::take(&mut context.evidence);
        }
        (unknown != UnknownEnums::default()).then_some(unknown)
    }
}

fn is_zero(number: &i32) -> bool {
    *number == 0
}
