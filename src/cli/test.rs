//! `retryd test`: cases in YAML beside a policy, each with the decision that it must get.
//!
//! ```text
//! find ──> load: file (the shape), message (contexts and expectations, checked) ──> Suite
//!      ──> play: one fresh service a case ──> report, junit
//! ```
mod check;
mod expect;
mod file;
mod find;
mod junit;
mod load;
mod message;
mod play;
mod report;
mod words;
mod wrong;

use std::{
    fs,
    io::{self, Write as _},
    path::PathBuf,
};

use anyhow::Context as _;
use clap::Args;

use self::{load::Suite, play::play, report::Played};
use super::{BAD, FINE, NO};
use crate::policy::Rejected;

#[derive(Debug, Args)]
pub(super) struct Test {
    /// Folders with files `*.test.yaml`, or such files
    #[arg(required = true, value_name = "DIR")]
    paths: Vec<PathBuf>,
    /// Only cases whose name has this text
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// Write the results as JUnit XML, too
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
}

impl Test {
    pub(super) fn run(self) -> anyhow::Result<u8> {
        let Some(mut suites) = load_all(&self.paths)? else { return Ok(BAD) };
        if let Some(text) = &self.filter {
            for suite in &mut suites {
                suite.cases.retain(|case| case.name.contains(text));
            }
            suites.retain(|suite| !suite.cases.is_empty());
            anyhow::ensure!(!suites.is_empty(), "no case has `{text}` in its name");
        }
        let played: Vec<Played<'_>> = suites.iter().map(play_all).collect();

        let mut text = Vec::new();
        report::write(&mut text, &played)?;
        // First the file: whoever reads the report may go away.
        if let Some(path) = &self.junit {
            let xml = junit::xml(&played)?;
            fs::write(path, xml).with_context(|| format!("cannot write `{}`", path.display()))?;
        }
        super::unless_closed(io::stdout().write_all(&text))?;
        let failed = played.iter().any(|suite| 0 < suite.failed());
        Ok(if failed { NO } else { FINE })
    }
}

/// The cases of every file. `None`: a file is wrong, and everything that is has been told.
fn load_all(paths: &[PathBuf]) -> anyhow::Result<Option<Vec<Suite>>> {
    let mut suites = Vec::new();
    let mut wrong: Vec<Rejected> = Vec::new();
    for path in find::test_files(paths)? {
        match load::load(&path) {
            Ok(suite) => suites.push(suite),
            // Several files may name the same policy.
            Err(rejected) if wrong.contains(&rejected) => {}
            Err(rejected) => wrong.push(rejected),
        }
    }
    for rejected in &wrong {
        super::complain(rejected);
    }
    Ok(wrong.is_empty().then_some(suites))
}

fn play_all(suite: &Suite) -> Played<'_> {
    let outcomes = suite.cases.iter().map(|case| (case, play(&suite.policies, case)));
    Played { suite, outcomes: outcomes.collect() }
}
