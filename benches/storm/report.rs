//! One row a storm, and the same as JSON.
use std::{fmt, process::ExitCode, time::Duration};

use serde_json::{Value, json};

use crate::{
    Storm,
    figures::{self, Ratio},
    spread::Spread,
};

/// Were the client later, its own delays would be taken for the servers'.
const LATE_P99_MAX: Duration = Duration::from_millis(1);

pub(crate) struct Row {
    server: &'static str,
    calls: usize,
    storm: Storm,
    times: Spread,
    late: Spread,
}

impl Row {
    pub(crate) fn of(server: &'static str, mut storm: Storm) -> Row {
        let times = Spread::of(std::mem::take(&mut storm.outcome.times));
        let late = Spread::of(std::mem::take(&mut storm.outcome.late));
        let calls = storm.outcome.retry + storm.outcome.exhausted + storm.outcome.errors;
        Row { server, calls, storm, times, late }
    }

    fn cpu_us(&self) -> f64 {
        self.storm.cpu_ns as f64 / 1e3 / self.calls as f64
    }

    /// Of its core.
    fn busy(&self) -> f64 {
        self.storm.cpu_ns as f64 / 1e9 / self.storm.took.as_secs_f64()
    }

    fn is_late(&self) -> bool {
        LATE_P99_MAX < self.late.per_mille(990)
    }

    fn json(&self) -> Value {
        let Storm { outcome, resident_kib, .. } = &self.storm;
        json!({
            "server": self.server, "calls": self.calls, "errors": outcome.errors, "first_error": outcome.first_error,
            "retry": outcome.retry, "do_not_retry": outcome.exhausted,
            "p50_ms": ms(&self.times, 500), "p90_ms": ms(&self.times, 900), "p99_ms": ms(&self.times, 990),
            "p999_ms": ms(&self.times, 999), "most_ms": ms(&self.times, 1_000),
            "late_p99_ms": ms(&self.late, 990), "late_most_ms": ms(&self.late, 1_000), "void": self.is_late(),
            "cpu_us": self.cpu_us(), "busy": self.busy(), "resident_kib": resident_kib,
        })
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Storm { outcome, resident_kib, .. } = &self.storm;
        write!(f, "{:8} {:>7} {:>6}", self.server, self.calls, outcome.errors)?;
        write!(f, " {:>7} {:>9}", outcome.retry, outcome.exhausted)?;
        for per_mille in [500, 900, 990, 999, 1_000] {
            write!(f, " {:>8.2}", ms(&self.times, per_mille))?;
        }
        write!(f, " {:>6.2} {:>7.2} {:>5.2}", ms(&self.late, 990), self.cpu_us(), self.busy())?;
        let [before, after] = resident_kib.map(|kib| kib as f64 / 1_024.0);
        write!(f, "  {before:>6.1}, {after:.1}")?;
        if self.is_late() {
            write!(f, "  VOID: the client could not keep up")?;
        }
        if let Some(error) = &outcome.first_error {
            write!(f, "\n         {error}")?;
        }
        Ok(())
    }
}

/// The titles of a row's columns.
pub(crate) fn head() -> String {
    let counts =
        format!("{:8} {:>7} {:>6} {:>7} {:>9}", "", "calls", "errors", "RETRY", "exhausted");
    let times = ["p50", "p90", "p99", "p99.9", "most"].map(|it| format!(" {it:>8}")).concat();
    format!("{counts}{times} {:>6} {:>7} {:>5}  MiB before, after", "late", "CPU us", "busy")
}

/// Prints what the rows come to: a status of 1 for errors, 2 for a run that is void.
pub(crate) fn conclude(rows: &[Vec<Row>]) -> ExitCode {
    println!("\nCPU against `stock` in the same round:");
    let cpu_us = |place: usize| rows[place].iter().map(Row::cpu_us).collect::<Vec<f64>>();
    let mut ratios = Vec::new();
    for (place, own) in rows.iter().enumerate().skip(1) {
        let ratio = Ratio::of(&cpu_us(place), &cpu_us(0));
        println!("{:8} {ratio}", own[0].server);
        ratios.push(json!({ "server": own[0].server, "cpu_ratio": ratio.json() }));
    }
    let path = concat!(env!("CARGO_TARGET_TMPDIR"), "/storm.json");
    let storms: Vec<Value> = rows.iter().flatten().map(Row::json).collect();
    let load_average = figures::load_average();
    println!("load average {load_average}; written to {path}");
    let report = json!({ "storms": storms, "ratios": ratios, "load_average": load_average });
    std::fs::write(path, serde_json::to_string_pretty(&report).unwrap()).unwrap();
    if rows.iter().flatten().any(|row| row.storm.outcome.errors != 0) {
        eprintln!("failed: calls without a right answer");
        return ExitCode::from(1);
    }
    if rows.iter().flatten().any(Row::is_late) {
        eprintln!("void: the client could not keep up");
        return ExitCode::from(2);
    }
    ExitCode::SUCCESS
}

fn ms(spread: &Spread, per_mille: usize) -> f64 {
    spread.per_mille(per_mille).as_secs_f64() * 1e3
}
