//! `retryd simulate`: an outage on a virtual clock, under every way to retry.
mod charts;
mod figures;
mod grid;
mod page;
mod parameters;
mod pictures;
mod progress;
mod shown;
mod table;
#[cfg(test)]
mod tests;

use std::{
    fs::File,
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use clap::Args;

use self::shown::Shown;
use super::FINE;
use crate::simulate::{Report, Scenario, play};

/// Seeds of one run.
const SEEDS_MAX: u64 = 1_000;

#[derive(Debug, Args)]
pub(super) struct Simulate {
    /// The parameters of the outage; absent: those of src/simulate/default.yaml. A key that is absent keeps its default
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
    #[command(flatten)]
    shown: Shown,
}

impl Simulate {
    pub(super) fn run(self) -> anyhow::Result<u8> {
        let scenario = match &self.scenario {
            Some(path) => Scenario::load(path)?,
            None => Scenario::default(),
        };
        let seeds = if self.seed.is_empty() { (1..=self.seeds).collect() } else { self.seed };
        let bar = progress::bar()?;
        let report = play(&scenario, &seeds, &|done, of| progress::tell(&bar, done, of))?;
        bar.finish_and_clear();
        if let Some(path) = &self.json {
            if path.as_os_str() == "-" {
                super::unless_closed(write_json(&report, io::stdout().lock()))?;
                return Ok(FINE);
            }
            to_file(&report, path).with_context(|| format!("cannot write `{}`", path.display()))?;
        }
        self.shown.show(&report)?;
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
