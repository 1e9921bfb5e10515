//! `retryd simulate`: small outages that can be worked out by hand, laws that hold in every outage,
//! and what the default one must show.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]
mod by_hand;
mod command;
mod default;
mod files;
mod laws;

use retryd::simulate::{Outcome, Report, Scenario, play};

/// A scenario from its file, which may leave out everything. Without a grid.
fn scenario(text: &str) -> Scenario {
    let text = format!("{text}\n{NO_GRID}");
    Scenario::parse("test.yaml", text.as_bytes()).unwrap()
}

const NO_GRID: &str = "grid: {work_percent: [], outage: [], calls_per_second: [], clients: [], \
    without_key_percent: []}";

fn played(scenario: &Scenario, seeds: &[u64]) -> Report {
    play(scenario, seeds, &|_, _| ()).unwrap()
}

/// What came of the first seed under the contestant of this name.
fn outcome<'a>(report: &'a Report, name: &str) -> &'a Outcome {
    let played = report.contestants.iter().find(|played| played.name == name);
    &played.unwrap_or_else(|| panic!("no contestant {name}")).outcomes[0]
}
