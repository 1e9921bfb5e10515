//! A scenario file, read and checked: every error of value is told.
use std::{ops::RangeInclusive, path::Path};

use super::file::{self, File};
use super::play::points_of;
use super::scenario::{Clients, Grid, Outage, Recovered, Retryd, Scenario, Service, Spread};
use crate::policy::{
    self, Policies, Problem, Reader, Rejected,
    yaml::{self, Scalar, place},
};

const SECOND_MS: u64 = 1_000;
const HOUR_MS: u64 = 3_600_000;
const SPREADS: [(&str, Spread); 2] = [("random", Spread::Random), ("even", Spread::Even)];
/// Points of the grid.
const POINTS_MAX: usize = 1_000;
const PERCENT: RangeInclusive<u32> = 0..=100;
const WORK: RangeInclusive<u32> = 1..=100_000;
const RATE: RangeInclusive<u32> = 1..=100_000;
const CLIENTS: RangeInclusive<u32> = 1..=10_000;
/// Calls of one run. Until it ends it keeps each call (32 bytes) and each attempt (16), so that the longest
/// takes 1 GB or 2 with naive retries; each core plays a run of its own.
const CALLS_MAX: u64 = 10_000_000;

impl Scenario {
    /// Reads the scenario at `path`.
    ///
    /// # Errors
    ///
    /// [`Rejected`] tells why the file cannot be read, or everything that is wrong with it.
    pub fn load(path: &Path) -> Result<Scenario, Rejected> {
        Scenario::parse(&path.display().to_string(), &policy::bytes(path)?)
    }

    /// Reads the bytes of a scenario file. `name` is what errors call it.
    ///
    /// # Errors
    ///
    /// [`Rejected`] tells everything that is wrong with it.
    pub fn parse(name: &str, bytes: &[u8]) -> Result<Scenario, Rejected> {
        let source = policy::text(name, bytes)?;
        let rejected = |problems: Vec<Problem>| Rejected::new(name, source, problems);
        let file: File = yaml::read(source).map_err(|problem| rejected(vec![problem]))?;
        let mut reader = Reader::new(source);
        let scenario = scenario(&mut reader, &file);
        if reader.problems.is_empty() { Ok(scenario) } else { Err(rejected(reader.problems)) }
    }
}

fn scenario(reader: &mut Reader<'_>, file: &File) -> Scenario {
    let absent = Scenario::default();
    let duration_ms =
        Section(reader, "").duration("duration", &file.duration, SECOND_MS, absent.duration_ms);
    let scenario = Scenario {
        duration_ms,
        clients: clients(Section(reader, "clients."), &file.clients, absent.clients),
        service: service(Section(reader, "service."), &file.service, absent.service),
        outage: outage(Section(reader, "outage."), &file.outage, absent.outage),
        recovered: recovered(Section(reader, "recovered."), &file.recovered, absent.recovered),
        retryd: retryd(Section(reader, "retryd."), &file.retryd, absent.retryd),
        grid: grid(Section(reader, "grid."), &file.grid, absent.grid),
    };
    fits(reader, &scenario);
    scenario
}

#[rustfmt::skip]
fn clients(mut keys: Section<'_, '_>, file: &file::Clients, absent: Clients) -> Clients {
    Clients {
        count: keys.whole("count", &file.count, CLIENTS, absent.count),
        calls_per_second: keys.whole("calls_per_second", &file.calls_per_second, RATE, absent.calls_per_second),
        spread: keys.spread(&file.spread, absent.spread),
        attempt_timeout_ms: keys.duration("attempt_timeout", &file.attempt_timeout, 1, absent.attempt_timeout_ms),
        deadline_ms: keys.duration("deadline", &file.deadline, 1, absent.deadline_ms),
        without_key_percent: keys.whole("without_key_percent", &file.without_key_percent, PERCENT, absent.without_key_percent),
    }
}

#[rustfmt::skip]
fn service(mut keys: Section<'_, '_>, file: &file::Service, absent: Service) -> Service {
    Service {
        workers: keys.whole("workers", &file.workers, 1..=100_000, absent.workers),
        work_ms: keys.duration("work", &file.work, 1, absent.work_ms),
        spread: keys.spread(&file.spread, absent.spread),
        queue: keys.whole("queue", &file.queue, 0..=1_000_000, absent.queue),
        failing_percent: keys.whole("failing_percent", &file.failing_percent, PERCENT, absent.failing_percent),
        given_up_work_percent: keys.whole("given_up_work_percent", &file.given_up_work_percent, 0..=1_000, absent.given_up_work_percent),
    }
}

#[rustfmt::skip]
fn outage(mut keys: Section<'_, '_>, file: &file::Outage, absent: Outage) -> Outage {
    Outage {
        from_ms: keys.duration("from", &file.from, 0, absent.from_ms),
        length_ms: keys.duration("length", &file.length, 0, absent.length_ms),
        work_percent: keys.whole("work_percent", &file.work_percent, WORK, absent.work_percent),
        failing_percent: keys.whole("failing_percent", &file.failing_percent, PERCENT, absent.failing_percent),
    }
}

#[rustfmt::skip]
fn recovered(mut keys: Section<'_, '_>, file: &file::Recovered, absent: Recovered) -> Recovered {
    Recovered {
        success_percent: keys.whole("success_percent", &file.success_percent, 1..=100, absent.success_percent),
        for_ms: keys.duration("for", &file.long, SECOND_MS, absent.for_ms),
    }
}

#[rustfmt::skip]
fn retryd(mut keys: Section<'_, '_>, file: &file::Retryd, absent: Retryd) -> Retryd {
    Retryd {
        question_ms: keys.duration("question", &file.question, 0, absent.question_ms),
        replicas: keys.whole("replicas", &file.replicas, 1..=100, absent.replicas),
        store_lost_from_ms: keys.duration("store_lost_from", &file.store_lost_from, 0, absent.store_lost_from_ms),
        store_lost_ms: keys.duration("store_lost", &file.store_lost, 0, absent.store_lost_ms),
        policy: file.policy.as_ref().map_or(absent.policy, |text| policies(keys.0, text)),
    }
}

/// The text of a policy file that is one.
fn policies(reader: &mut Reader<'_>, value: &Scalar) -> String {
    let Some(text) = reader.text("retryd.policy", value).map(str::to_owned) else {
        return String::new();
    };
    if let Err(rejected) = Policies::parse("retryd.policy", text.as_bytes()) {
        for problem in rejected.problems() {
            let line = problem.place.map(|place| format!(", line {} of it", place.line));
            let message =
                format!("`retryd.policy`{}: {}", line.unwrap_or_default(), problem.message);
            reader.refuse(place(value), message);
        }
    }
    text
}

#[rustfmt::skip]
fn grid(mut keys: Section<'_, '_>, file: &file::Grid, absent: Grid) -> Grid {
    Grid {
        work_percent: keys.wholes("work_percent", &file.work_percent, WORK, absent.work_percent),
        outage_ms: keys.durations("outage", &file.outage, absent.outage_ms),
        calls_per_second: keys.wholes("calls_per_second", &file.calls_per_second, RATE, absent.calls_per_second),
        clients: keys.wholes("clients", &file.clients, CLIENTS, absent.clients),
        without_key_percent: keys.wholes("without_key_percent", &file.without_key_percent, PERCENT, absent.without_key_percent),
    }
}

/// Reads the keys of one section, which its errors name with what is before the key.
struct Section<'r, 'a>(&'r mut Reader<'a>, &'static str);

impl Section<'_, '_> {
    fn whole(
        &mut self,
        key: &str,
        value: &Option<Scalar>,
        range: RangeInclusive<u32>,
        absent: u32,
    ) -> u32 {
        self.0.whole(&format!("{}{key}", self.1), value.as_ref(), range, absent)
    }

    /// At least `min_ms`, at most an hour.
    fn duration(&mut self, key: &str, value: &Option<Scalar>, min_ms: u64, absent_ms: u64) -> u64 {
        let key = format!("{}{key}", self.1);
        self.0.duration_ms(&key, value.as_ref(), min_ms..=HOUR_MS, absent_ms)
    }

    fn spread(&mut self, value: &Option<Scalar>, absent: Spread) -> Spread {
        self.0.word(&format!("{}spread", self.1), value.as_ref(), &SPREADS, absent)
    }

    fn wholes(
        &mut self,
        key: &str,
        values: &Option<Vec<Scalar>>,
        range: RangeInclusive<u32>,
        absent: Vec<u32>,
    ) -> Vec<u32> {
        let Some(values) = values else { return absent };
        let key = format!("{}{key}", self.1);
        values.iter().map(|value| self.0.whole(&key, Some(value), range.clone(), 0)).collect()
    }

    fn durations(
        &mut self,
        key: &str,
        values: &Option<Vec<Scalar>>,
        absent_ms: Vec<u64>,
    ) -> Vec<u64> {
        let Some(values) = values else { return absent_ms };
        let key = format!("{}{key}", self.1);
        values.iter().map(|it| self.0.duration_ms(&key, Some(it), 0..=HOUR_MS, 0)).collect()
    }
}

/// What holds between keys. The file as a whole is wrong, and no one place in it.
fn fits(reader: &mut Reader<'_>, scenario: &Scenario) {
    let Scenario { duration_ms, clients, outage, recovered, grid, .. } = scenario;
    let mut refuse = |message: String| reader.problems.push(Problem { place: None, message });
    if clients.deadline_ms < clients.attempt_timeout_ms {
        refuse("`clients.deadline` is shorter than `clients.attempt_timeout`".to_owned());
    }
    let longest_ms = grid.outage_ms.iter().copied().fold(outage.length_ms, u64::max);
    if *duration_ms < outage.from_ms + longest_ms + recovered.for_ms {
        refuse(
            "`duration` is too short to see whether all is well again: it must hold `outage.from`, the \
             longest outage, of the grid too, and `recovered.for`"
                .to_owned(),
        );
    }
    let highest = grid.calls_per_second.iter().copied().fold(clients.calls_per_second, u32::max);
    let points = points_of(grid);
    if POINTS_MAX < points {
        refuse(format!("`grid` has {points} points; at most {POINTS_MAX} are played"));
    }
    if CALLS_MAX < u64::from(highest) * duration_ms / 1_000 {
        refuse(format!("there are more than {CALLS_MAX} calls in `duration`, of the grid too"));
    }
}
