//! Every contestant by every seed, and at every point of the grid.
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use parking_lot::Mutex;

use super::contestants::{ENTRIES, Entry};
use super::entitled::Entitled;
use super::report::{Cell, Outcome, Played, Report};
use super::scenario::{Grid, Scenario};
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

/// How many points a grid has: each value with each of the other lists, none if all are empty.
pub(super) fn points_of(grid: &Grid) -> usize {
    let Grid { work_percent, outage_ms, calls_per_second, clients, without_key_percent } = grid;
    let lengths = [
        work_percent.len(),
        outage_ms.len(),
        calls_per_second.len(),
        clients.len(),
        without_key_percent.len(),
    ];
    let product =
        lengths.iter().fold(1_usize, |product, length| product.saturating_mul((*length).max(1)));
    if lengths.iter().all(|length| *length == 0) { 0 } else { product }
}

/// The scenario with the other values of its grid, each with each. The first list changes slowest.
fn points(scenario: &Scenario) -> Vec<Scenario> {
    let grid = &scenario.grid;
    if points_of(grid) == 0 {
        return Vec::new();
    }
    let points = vec![scenario.clone()];
    let points = with_each(points, &grid.work_percent, |it, value| it.outage.work_percent = value);
    let points = with_each(points, &grid.outage_ms, |it, value| it.outage.length_ms = value);
    let points =
        with_each(points, &grid.calls_per_second, |it, value| it.clients.calls_per_second = value);
    let points = with_each(points, &grid.clients, |it, value| it.clients.count = value);
    with_each(points, &grid.without_key_percent, |it, value| {
        it.clients.without_key_percent = value;
    })
}

/// Every point with every value; as it is without values.
fn with_each<T: Copy>(
    points: Vec<Scenario>,
    values: &[T],
    set: impl Fn(&mut Scenario, T),
) -> Vec<Scenario> {
    if values.is_empty() {
        return points;
    }
    let mut all = Vec::with_capacity(points.len() * values.len());
    for point in points {
        for value in values {
            let mut point = point.clone();
            set(&mut point, *value);
            all.push(point);
        }
    }
    all
}

fn cell(run: &Run<'_>, outcome: Outcome) -> Cell {
    Cell {
        contestant: run.entry.name.to_owned(),
        work_percent: run.scenario.outage.work_percent,
        outage_ms: run.scenario.outage.length_ms,
        calls_per_second: run.scenario.clients.calls_per_second,
        clients: run.scenario.clients.count,
        without_key_percent: run.scenario.clients.without_key_percent,
        amplification: outcome.amplification,
        success: outcome.success,
        recovery_s: outcome.recovery_s,
        accuracy: outcome.accuracy,
        processed_again: outcome.processed_again,
    }
}
