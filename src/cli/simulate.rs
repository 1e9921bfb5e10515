//! `retryd simulate`: an outage on a virtual clock, under every way to retry.
use std::{
    fs::File,
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use clap::Args;

use super::FINE;
use crate::simulate::{Outcome, Report, Scenario, play};

/// Seeds of one run.
const SEEDS_MAX: u64 = 1_000;

#[derive(Debug, Args)]
pub(super) struct Simulate {
    /// The parameters of the outage; absent: those of the README. A key that is absent keeps its default
    #[arg(long, value_name = "FILE")]
    scenario: Option<PathBuf>,
    /// A seed to play; may be given more than once
    #[arg(long, value_name = "N", conflicts_with = "seeds")]
    seed: Vec<u64>,
    /// Play the seeds from 1 to N
    #[arg(long, value_name = "N", default_value_t = 10)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=SEEDS_MAX))]
    seeds: u64,
    /// Write everything that was found as JSON; `-` writes to the standard output, and nothing else
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

impl Simulate {
    pub(super) fn run(self) -> anyhow::Result<u8> {
        let scenario = match &self.scenario {
            Some(path) => Scenario::load(path)?,
            None => Scenario::default(),
        };
        let seeds = if self.seed.is_empty() { (1..=self.seeds).collect() } else { self.seed };
        let report = play(&scenario, &seeds, &|_, _| ())?;
        if let Some(path) = &self.json {
            if path.as_os_str() == "-" {
                super::unless_closed(write_json(&report, io::stdout().lock()))?;
                return Ok(FINE);
            }
            to_file(&report, path).with_context(|| format!("cannot write `{}`", path.display()))?;
        }
        super::unless_closed(write_summary(&report, &mut io::stdout().lock()))?;
        Ok(FINE)
    }
}

fn to_file(report: &Report, path: &Path) -> io::Result<()> {
    write_json(report, File::create(path)?)
}

fn write_json(report: &Report, out: impl Write) -> io::Result<()> {
    let mut out = BufWriter::new(out);
    serde_json::to_writer(&mut out, report)?;
    writeln!(out)?;
    out.flush()
}

/// One line a contestant, of the first seed.
fn write_summary(report: &Report, out: &mut impl Write) -> io::Result<()> {
    for played in &report.contestants {
        let Some(Outcome { amplification, success, recovery_s, accuracy, processed_again, .. }) =
            played.outcomes.first()
        else {
            continue;
        };
        let recovery =
            recovery_s.map_or("stays down".to_owned(), |s| format!("recovers in {s:.0} s"));
        let accuracy = accuracy.map_or(String::new(), |it| format!(", accuracy {it:.3}"));
        writeln!(
            out,
            "{}: {amplification:.3} attempts a call, {:.1} % succeed, {recovery}, \
             {processed_again} done twice{accuracy}",
            played.title,
            success * 100.0,
        )?;
    }
    Ok(())
}
