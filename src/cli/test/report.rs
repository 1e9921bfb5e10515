//! The results for people.
use std::{
    fmt,
    io::{self, Write},
};

use super::expect::Difference;
use super::load::{Case, Suite};
use super::play::Outcome;
use super::words::visible;

/// A file whose cases have been played.
#[derive(Debug)]
pub(super) struct Played<'a> {
    pub(super) suite: &'a Suite,
    pub(super) outcomes: Vec<(&'a Case, Outcome)>,
}

impl Played<'_> {
    pub(super) fn failed(&self) -> usize {
        self.outcomes.iter().filter(|(_, outcome)| !outcome.differences.is_empty()).count()
    }

    fn passed(&self) -> usize {
        self.outcomes.len() - self.failed()
    }
}

/// A line for each file, what differs of each case that failed, and the sum.
pub(super) fn write(out: &mut impl Write, played: &[Played<'_>]) -> io::Result<()> {
    for file in played {
        let path = visible(&file.suite.path);
        writeln!(out, "{path}: {}", counts(file.passed(), file.failed()))?;
        for (case, outcome) in &file.outcomes {
            if !outcome.differences.is_empty() {
                write!(out, "\nFAILED {path}:{}: {}\n{outcome}", case.line, case.name)?;
            }
        }
    }
    let passed = played.iter().map(Played::passed).sum();
    let failed = played.iter().map(Played::failed).sum();
    writeln!(out, "\n{}", counts(passed, failed))
}

fn counts(passed: usize, failed: usize) -> String {
    if failed == 0 {
        format!("{passed} passed")
    } else {
        format!("{passed} passed, {failed} failed")
    }
}

/// What differs, one value a line, and the rule that said no.
impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for difference in &self.differences {
            let Difference { path, expected, got } = difference;
            writeln!(f, "  {path}: expected {expected}, got {got}")?;
        }
        if let Some(step) = &self.objection {
            let rule = step.rule().as_str_name().trim_start_matches("REASON_");
            writeln!(f, "  {rule} saw: {}", visible(&step.saw))?;
        }
        Ok(())
    }
}
