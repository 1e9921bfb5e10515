//! Which decisions would change: by reason, with examples.
use std::{
    collections::BTreeMap,
    fmt,
    io::{self, Write},
};

use serde::Serialize;

use crate::decider::Said;
use crate::decision_log::{Again, Line};
use crate::engine::{Delay, Rule};
use crate::policy::quoted;

/// Examples of each change.
const EXAMPLES_MAX: usize = 3;

/// What became of the lines so far. As large as there are reasons, not lines.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) same: u64,
    /// They hang on a budget of which the log knows nothing.
    not_known: Change,
    pub(super) unreadable: u64,
    changes: BTreeMap<(Word, Word), Change>,
}

/// What an answer is called in the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Word {
    rule: Rule,
    shadow: bool,
}

#[derive(Debug, Default, Serialize)]
struct Change {
    count: u64,
    examples: Vec<Example>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Example {
    line: u64,
    tenant: String,
    operation: String,
    policy_then: String,
    policy_now: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    delay_ms_then: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delay_ms_now: Option<u64>,
}

impl Report {
    pub(super) fn add(&mut self, number: u64, line: &Line, again: &Again<'_>) {
        let change = match again.now {
            Some(now) if now == again.then => {
                self.same += 1;
                return;
            }
            Some(now) => self.changes.entry((Word::of(again.then), Word::of(now))).or_default(),
            None => &mut self.not_known,
        };
        change.count += 1;
        if change.examples.len() < EXAMPLES_MAX {
            let ms = |said: Said| said.delay.map(Delay::ms);
            change.examples.push(Example {
                line: number,
                tenant: line.context.tenant.clone(),
                operation: line.context.operation.clone(),
                policy_then: line.decision.policy.clone(),
                policy_now: again.policy.to_owned(),
                delay_ms_then: ms(again.then),
                delay_ms_now: again.now.and_then(ms),
            });
        }
    }

    /// Lines that could be read.
    pub(super) fn decided(&self) -> u64 {
        self.same + self.changed() + self.not_known.count
    }

    pub(super) fn lines(&self) -> u64 {
        self.decided() + self.unreadable
    }

    fn changed(&self) -> u64 {
        self.changes.values().map(|change| change.count).sum()
    }

    /// The changes, the most frequent first.
    fn by_count(&self) -> Vec<(&(Word, Word), &Change)> {
        let mut changes: Vec<_> = self.changes.iter().collect();
        changes.sort_by_key(|(_, change)| std::cmp::Reverse(change.count));
        changes
    }

    pub(super) fn write_table(
        &self,
        out: &mut impl Write,
        policy: &dyn fmt::Display,
        revision: &str,
    ) -> io::Result<()> {
        writeln!(out, "{} decisions, anew by {policy}, revision {revision}", self.decided())?;
        writeln!(out, "{:>9}  the same", self.same)?;
        writeln!(out, "{:>9}  changed", self.changed())?;
        writeln!(
            out,
            "{:>9}  not known: they hang on a budget that the log does not know so",
            self.not_known.count
        )?;
        if 0 < self.unreadable {
            writeln!(out, "{:>9}  lines could not be read", self.unreadable)?;
        }
        for ((then, now), change) in self.by_count() {
            let what = if then == now { ", after another delay" } else { "" };
            writeln!(out, "\n{:>9}  {then} -> {now}{what}", change.count)?;
            change.examples.iter().try_for_each(|example| writeln!(out, "{example}"))?;
        }
        if 0 < self.not_known.count {
            writeln!(out, "\n{:>9}  not known", self.not_known.count)?;
            self.not_known.examples.iter().try_for_each(|example| writeln!(out, "{example}"))?;
        }
        Ok(())
    }

    pub(super) fn write_json(&self, out: &mut impl Write) -> io::Result<()> {
        let changes: Vec<_> = self.by_count().into_iter().map(|((then, now), change)| {
            serde_json::json!({"then": then.to_string(), "now": now.to_string(), "count": change.count, "examples": change.examples})
        }).collect();
        let report = serde_json::json!({
            "decisions": self.decided(),
            "same": self.same,
            "changed": self.changed(),
            "notKnown": self.not_known,
            "unreadable": self.unreadable,
            "changes": changes,
        });
        writeln!(out, "{report}")
    }
}

impl Word {
    fn of(said: Said) -> Word {
        Word { rule: said.reason, shadow: said.shadow }
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.rule.name())?;
        f.write_str(if self.shadow { " (shadow)" } else { "" })
    }
}

impl fmt::Display for Example {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Example { line, tenant, operation, policy_then, policy_now, .. } = self;
        write!(f, "           line {line}: {tenant} {operation}, policy {}", quoted(policy_then))?;
        if policy_then != policy_now {
            write!(f, " -> {}", quoted(policy_now))?;
        }
        match (self.delay_ms_then, self.delay_ms_now) {
            (Some(then), Some(now)) if then != now => write!(f, ", {then} ms -> {now} ms"),
            _ => Ok(()),
        }
    }
}
