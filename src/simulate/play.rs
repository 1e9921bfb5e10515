//! Every contestant by every seed, and at every point of the grid.
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use parking_lot::Mutex;

use super::contestants::{ENTRIES, Entry};
use super::entitled::Entitled;
use super::report::{Cell, Outcome, Played, Report};
use super::scenario::Scenario;
use super::world;
use crate::policy::{Policies, Rejected};

/// Plays `scenario` by each of `seeds`, and its grid by the first of them. `progress` is told after each
/// run how many are done, and of how many.
///
/// # Errors
///
/// If the policies of the scenario are refused, as [`Policies::parse`] does.
pub fn play(
    scenario: &Scenario,
    seeds: &[u64],
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Report, Rejected> {
    let policies = Policies::parse("retryd.policy", scenario.retryd.policy.as_bytes())?;
    let points = points(scenario);
    let mut runs = Vec::new();
    for entry in ENTRIES {
        runs.extend(seeds.iter().map(|seed| Run { entry, scenario, seed: *seed }));
    }
    for point in seeds.first().into_iter().flat_map(|seed| points.iter().map(move |it| (it, *seed)))
    {
        let (scenario, seed) = point;
        runs.extend(ENTRIES.iter().map(|entry| Run { entry, scenario, seed }));
    }

    let mut outcomes = all(&runs, &policies, progress).into_iter();
    let contestants = ENTRIES.iter().map(|entry| Played {
        name: entry.name.to_owned(),
        title: entry.title.to_owned(),
        source: entry.source.to_owned(),
        outcomes: outcomes.by_ref().take(seeds.len()).collect(),
    });
    let contestants = contestants.collect();
    let rest = runs.iter().skip(ENTRIES.len() * seeds.len());
    let grid = rest.zip(outcomes).map(|(run, outcome)| cell(run, outcome)).collect();
    Ok(Report { scenario: scenario.clone(), seeds: seeds.to_vec(), contestants, grid })
}

/// One contestant, one scenario, one seed.
struct Run<'a> {
    entry: &'a Entry,
    scenario: &'a Scenario,
    seed: u64,
}

impl Run<'_> {
    fn play(&self, policies: &Policies) -> Outcome {
        let mut contestant = (self.entry.enter)(self.scenario, policies, self.seed);
        world::play(self.scenario, self.seed, &mut *contestant, Entitled::new(policies))
    }
}

/// Plays all runs, on every processor. Their order is that of `runs`, whichever ends first.
fn all(
    runs: &[Run<'_>],
    policies: &Policies,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Vec<Outcome> {
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let outcomes = Mutex::new(Vec::with_capacity(runs.len()));
    let work = || {
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(run) = runs.get(place) else { break };
            let outcome = run.play(policies);
            outcomes.lock().push((place, outcome));
            progress(done.fetch_add(1, Ordering::Relaxed) + 1, runs.len());
        }
    };
    let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    thread::scope(|scope| {
        (0..threads).for_each(|_| {
            scope.spawn(work);
        });
    });
    let mut outcomes = outcomes.into_inner();
    outcomes.sort_by_key(|(place, _)| *place);
    outcomes.into_iter().map(|(_, outcome)| outcome).collect()
}

/// The scenario with the other values of its grid, each with each. None if the grid is empty.
fn points(scenario: &Scenario) -> Vec<Scenario> {
    let grid = &scenario.grid;
    let lengths =
        [grid.calls_per_second.len(), grid.outage_ms.len(), grid.without_key_percent.len()];
    if lengths == [0; 3] {
        return Vec::new();
    }
    let mut points = Vec::new();
    for calls_per_second in or_else(&grid.calls_per_second, scenario.clients.calls_per_second) {
        for length_ms in or_else(&grid.outage_ms, scenario.outage.length_ms) {
            for percent in or_else(&grid.without_key_percent, scenario.clients.without_key_percent)
            {
                let mut point = scenario.clone();
                point.clients.calls_per_second = calls_per_second;
                point.clients.without_key_percent = percent;
                point.outage.length_ms = length_ms;
                points.push(point);
            }
        }
    }
    points
}

fn or_else<T: Copy>(values: &[T], own: T) -> Vec<T> {
    if values.is_empty() { vec![own] } else { values.to_vec() }
}

fn cell(run: &Run<'_>, outcome: Outcome) -> Cell {
    Cell {
        contestant: run.entry.name.to_owned(),
        calls_per_second: run.scenario.clients.calls_per_second,
        outage_ms: run.scenario.outage.length_ms,
        without_key_percent: run.scenario.clients.without_key_percent,
        amplification: outcome.amplification,
        success: outcome.success,
        recovery_s: outcome.recovery_s,
        accuracy: outcome.accuracy,
        processed_again: outcome.processed_again,
    }
}
