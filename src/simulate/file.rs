//! A scenario file: which keys stand where, and what their values may be.
use std::{ops::RangeInclusive, path::Path};

use serde::Deserialize;

use super::scenario::{Clients, Grid, Outage, Recovered, Retryd, Scenario, Service, Spread};
use crate::policy::{
    self, Policies, Problem, Reader, Rejected,
    yaml::{self, Scalar, given, place},
};

const HOUR_MS: u64 = 3_600_000;
const SPREADS: [(&str, Spread); 2] = [("random", Spread::Random), ("even", Spread::Even)];
/// Points of the grid.
const POINTS_MAX: usize = 1_000;
const PERCENT: RangeInclusive<u32> = 0..=100;
const WORK_PERCENT: RangeInclusive<u32> = 1..=100_000;
const CALLS_A_SECOND: RangeInclusive<u32> = 1..=100_000;
const CLIENTS: RangeInclusive<u32> = 1..=10_000;
/// Calls of one run: as much as a machine has memory for.
const CALLS_MAX: u64 = 10_000_000;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    #[serde(deserialize_with = "given")]
    duration: Option<Scalar>,
    clients: ClientsWritten,
    service: ServiceWritten,
    outage: OutageWritten,
    recovered: RecoveredWritten,
    retryd: RetrydWritten,
    grid: GridWritten,
}

/// A section of the file: every key may be absent.
macro_rules! section {
    ($name:ident { $($key:ident),+ $(,)? }) => {
        #[derive(Debug, Default, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        struct $name {
            $(#[serde(deserialize_with = "given")]
            $key: Option<Scalar>,)+
        }
    };
}

section!(ClientsWritten {
    count,
    calls_per_second,
    spread,
    attempt_timeout,
    deadline,
    without_key_percent,
});
section!(ServiceWritten { workers, work, spread, queue, failing_percent, given_up_work_percent });
section!(OutageWritten { from, length, work_percent, failing_percent });
section!(RetrydWritten { question, replicas, store_lost_from, store_lost, policy });

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RecoveredWritten {
    #[serde(deserialize_with = "given")]
    success_percent: Option<Scalar>,
    #[serde(rename = "for", deserialize_with = "given")]
    long: Option<Scalar>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct GridWritten {
    #[serde(deserialize_with = "given")]
    work_percent: Option<Vec<Scalar>>,
    #[serde(deserialize_with = "given")]
    outage: Option<Vec<Scalar>>,
    #[serde(deserialize_with = "given")]
    calls_per_second: Option<Vec<Scalar>>,
    #[serde(deserialize_with = "given")]
    clients: Option<Vec<Scalar>>,
    #[serde(deserialize_with = "given")]
    without_key_percent: Option<Vec<Scalar>>,
}

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
    let scenario = Scenario {
        duration_ms: reader.duration_ms(
            "duration",
            file.duration.as_ref(),
            1_000..=HOUR_MS,
            absent.duration_ms,
        ),
        clients: clients(reader, &file.clients, absent.clients),
        service: service(reader, &file.service, absent.service),
        outage: outage(reader, &file.outage, absent.outage),
        recovered: recovered(reader, &file.recovered, absent.recovered),
        retryd: retryd(reader, &file.retryd, absent.retryd),
        grid: grid(reader, &file.grid, absent.grid),
    };
    fits(reader, &scenario);
    scenario
}

fn clients(reader: &mut Reader<'_>, written: &ClientsWritten, absent: Clients) -> Clients {
    let ClientsWritten { count, calls_per_second, spread, attempt_timeout, deadline, .. } = written;
    let mut whole = |key, value: &Option<Scalar>, range, absent| {
        reader.whole(key, value.as_ref(), range, absent)
    };
    Clients {
        count: whole("clients.count", count, CLIENTS, absent.count),
        calls_per_second: whole(
            "clients.calls_per_second",
            calls_per_second,
            CALLS_A_SECOND,
            absent.calls_per_second,
        ),
        without_key_percent: whole(
            "clients.without_key_percent",
            &written.without_key_percent,
            PERCENT,
            absent.without_key_percent,
        ),
        spread: reader.word("clients.spread", spread.as_ref(), &SPREADS, absent.spread),
        attempt_timeout_ms: reader.duration_ms(
            "clients.attempt_timeout",
            attempt_timeout.as_ref(),
            1..=HOUR_MS,
            absent.attempt_timeout_ms,
        ),
        deadline_ms: reader.duration_ms(
            "clients.deadline",
            deadline.as_ref(),
            1..=HOUR_MS,
            absent.deadline_ms,
        ),
    }
}

fn service(reader: &mut Reader<'_>, written: &ServiceWritten, absent: Service) -> Service {
    let mut whole = |key, value: &Option<Scalar>, range, absent| {
        reader.whole(key, value.as_ref(), range, absent)
    };
    Service {
        workers: whole("service.workers", &written.workers, 1..=100_000, absent.workers),
        queue: whole("service.queue", &written.queue, 0..=1_000_000, absent.queue),
        failing_percent: whole(
            "service.failing_percent",
            &written.failing_percent,
            PERCENT,
            absent.failing_percent,
        ),
        given_up_work_percent: whole(
            "service.given_up_work_percent",
            &written.given_up_work_percent,
            0..=1_000,
            absent.given_up_work_percent,
        ),
        work_ms: reader.duration_ms(
            "service.work",
            written.work.as_ref(),
            1..=60_000,
            absent.work_ms,
        ),
        spread: reader.word("service.spread", written.spread.as_ref(), &SPREADS, absent.spread),
    }
}

fn outage(reader: &mut Reader<'_>, written: &OutageWritten, absent: Outage) -> Outage {
    let OutageWritten { from, length, work_percent, failing_percent } = written;
    let hour = 0..=HOUR_MS;
    Outage {
        from_ms: reader.duration_ms("outage.from", from.as_ref(), hour.clone(), absent.from_ms),
        length_ms: reader.duration_ms("outage.length", length.as_ref(), hour, absent.length_ms),
        work_percent: reader.whole(
            "outage.work_percent",
            work_percent.as_ref(),
            WORK_PERCENT,
            absent.work_percent,
        ),
        failing_percent: reader.whole(
            "outage.failing_percent",
            failing_percent.as_ref(),
            PERCENT,
            absent.failing_percent,
        ),
    }
}

fn recovered(reader: &mut Reader<'_>, written: &RecoveredWritten, absent: Recovered) -> Recovered {
    let RecoveredWritten { success_percent, long } = written;
    let key = "recovered.success_percent";
    Recovered {
        success_percent: reader.whole(
            key,
            success_percent.as_ref(),
            1..=100,
            absent.success_percent,
        ),
        for_ms: reader.duration_ms("recovered.for", long.as_ref(), 1_000..=HOUR_MS, absent.for_ms),
    }
}

fn retryd(reader: &mut Reader<'_>, written: &RetrydWritten, absent: Retryd) -> Retryd {
    let RetrydWritten { question, replicas, store_lost_from, store_lost, policy } = written;
    let mut duration_ms = |key, value: &Option<Scalar>, max_ms, absent_ms| {
        reader.duration_ms(key, value.as_ref(), 0..=max_ms, absent_ms)
    };
    Retryd {
        question_ms: duration_ms("retryd.question", question, 1_000, absent.question_ms),
        store_lost_from_ms: duration_ms(
            "retryd.store_lost_from",
            store_lost_from,
            HOUR_MS,
            absent.store_lost_from_ms,
        ),
        store_lost_ms: duration_ms("retryd.store_lost", store_lost, HOUR_MS, absent.store_lost_ms),
        replicas: reader.whole("retryd.replicas", replicas.as_ref(), 1..=100, absent.replicas),
        policy: policy.as_ref().map_or(absent.policy, |value| policies(reader, value)),
    }
}

/// The text of a policy file that is one.
fn policies(reader: &mut Reader<'_>, value: &Scalar) -> String {
    let text = reader.text("retryd.policy", value).unwrap_or_default().to_owned();
    if let Err(rejected) = Policies::parse("retryd.policy", text.as_bytes()) {
        for problem in rejected.problems() {
            let line = problem.place.map_or(0, |place| place.line);
            let message = format!("`retryd.policy`, line {line} of it: {}", problem.message);
            reader.refuse(place(value), message);
        }
    }
    text
}

fn grid(reader: &mut Reader<'_>, written: &GridWritten, absent: Grid) -> Grid {
    let mut whole = |key, values: &Option<Vec<Scalar>>, range: RangeInclusive<u32>, absent| {
        let read = |value: &Scalar| reader.whole(key, Some(value), range.clone(), 0);
        values.as_deref().map_or(absent, |values| values.iter().map(read).collect())
    };
    let grid = Grid {
        work_percent: whole(
            "grid.work_percent",
            &written.work_percent,
            WORK_PERCENT,
            absent.work_percent,
        ),
        calls_per_second: whole(
            "grid.calls_per_second",
            &written.calls_per_second,
            CALLS_A_SECOND,
            absent.calls_per_second,
        ),
        clients: whole("grid.clients", &written.clients, CLIENTS, absent.clients),
        without_key_percent: whole(
            "grid.without_key_percent",
            &written.without_key_percent,
            PERCENT,
            absent.without_key_percent,
        ),
        outage_ms: written.outage.as_deref().map_or(absent.outage_ms, |values| {
            let read = |value| reader.duration_ms("grid.outage", Some(value), 0..=HOUR_MS, 0);
            values.iter().map(read).collect()
        }),
    };
    let points = super::play::points_of(&grid);
    if POINTS_MAX < points {
        let message = format!("`grid` has {points} points; at most {POINTS_MAX} are played");
        reader.problems.push(Problem { place: None, message });
    }
    grid
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
    if CALLS_MAX < u64::from(highest) * duration_ms / 1_000 {
        refuse(format!("there are more than {CALLS_MAX} calls in `duration`, of the grid too"));
    }
}
