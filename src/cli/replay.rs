//! `retryd replay`: a decision log, decided anew by another policy file.
mod lines;
mod report;

use std::{
    fs::File,
    io::{self, BufRead, BufReader},
    path::PathBuf,
};

use anyhow::Context as _;
use clap::Args;

use self::{
    lines::{Lines, Text},
    report::Report,
};
use super::{BAD, FINE, NO, decide::Format};
use crate::decision_log::{self, Line};
use crate::policy::{Policies, quoted};

/// Unreadable lines that are told one by one.
const TOLD_MAX: u64 = 10;

#[derive(Debug, Args)]
pub(super) struct Replay {
    /// A decision log, as `serve --decision-log` writes it; `-` reads from the standard input
    log: PathBuf,
    /// The policy file to decide by
    #[arg(long, value_name = "FILE")]
    policy: PathBuf,
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl Replay {
    pub(super) fn run(self) -> anyhow::Result<u8> {
        // `callers` and `operators` play no part: what is in the log was let in.
        let replay = decision_log::Replay::new(Policies::load(&self.policy)?);
        let name = self.log.display();
        let report = if self.log.as_os_str() == "-" {
            play(&replay, io::stdin().lock())
        } else {
            File::open(&self.log).and_then(|file| play(&replay, BufReader::new(file)))
        };
        let report = report.with_context(|| format!("cannot read `{name}`"))?;
        anyhow::ensure!(0 < report.lines(), "`{name}` holds no decision");

        let mut out = io::stdout().lock();
        let written = if self.format.is_table(&out) {
            report.write_table(&mut out, &self.policy.display(), replay.policies().revision())
        } else {
            report.write_json(&mut out)
        };
        super::unless_closed(written)?;
        Ok(match &report {
            report if 0 < report.unreadable => BAD,
            // What is not known is no proof that all stays the same.
            report if report.same < report.decided() => NO,
            _ => FINE,
        })
    }
}

/// Decides every line anew. However long the log is, one line of it is in memory at a time.
fn play(replay: &decision_log::Replay, log: impl BufRead) -> io::Result<Report> {
    let mut report = Report::default();
    let mut lines = Lines::of(log);
    while let Some((number, text)) = lines.next()? {
        let decided = match text {
            Text::Line(bytes) => again(replay, bytes, number, &mut report),
            Text::TooLong => Err("longer than a decision can be".to_owned()),
        };
        if let Err(why) = decided {
            report.unreadable += 1;
            if report.unreadable <= TOLD_MAX {
                super::complain(&format_args!("line {number}: {why}"));
            }
        }
    }
    if TOLD_MAX < report.unreadable {
        super::complain(&format_args!(
            "{} more lines cannot be read",
            report.unreadable - TOLD_MAX
        ));
    }
    Ok(report)
}

fn again(
    replay: &decision_log::Replay,
    bytes: &[u8],
    number: u64,
    report: &mut Report,
) -> Result<(), String> {
    // The error may quote what the line holds, which is nobody's terminal's business.
    let line = Line::read(bytes)
        .map_err(|error| format!("no line of a decision log: {}", quoted(&error.to_string())))?;
    let again = replay.again(&line).map_err(|error| error.to_string())?;
    report.add(number, &line, &again);
    Ok(())
}
