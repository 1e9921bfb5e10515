//! A storm: within a second every call begins to fail, and the fleet asks 50,000 times a second, mostly for tenants that have no
//! balance yet.
//!
//! `benches/storm/run` builds and runs it; `cargo bench --profile ci --bench storm` is quicker to build. It fails when a call has no
//! right answer. Latencies are told, and mean something only where nobody else wants the cores. benches/README.md tells more.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a bench that fails must end")]
#![allow(clippy::panic, reason = "a bench that fails must end")]
#![allow(clippy::indexing_slicing, clippy::disallowed_methods, reason = "a bench measures")]
#[path = "../compare/figures.rs"]
#[expect(dead_code, reason = "benches/compare uses the rest")]
mod figures;
#[path = "../compare/frames.rs"]
mod frames;
#[path = "../compare/open_loop.rs"]
mod open_loop;
#[path = "../compare/process.rs"]
#[expect(dead_code, reason = "benches/compare uses the rest")]
mod process;
#[path = "../compare/question.rs"]
mod question;
#[path = "../compare/raw.rs"]
mod raw;
mod report;
#[path = "../compare/schedule.rs"]
mod schedule;
#[path = "../compare/spread.rs"]
mod spread;
#[path = "../compare/stock.rs"]
mod stock;

use std::{
    env,
    process::ExitCode,
    thread,
    time::{Duration, Instant},
};

use retryd::wire::pb;

use self::{
    open_loop::{Call, OpenLoop, Outcome},
    process::{Cores, Kind, Process},
    report::Row,
};

const ROUNDS: u64 = 3;
const PER_S: u32 = 50_000;
const HEALTHY: Duration = Duration::from_secs(1);
const RAMP: Duration = Duration::from_secs(1);
const STEADY: Duration = Duration::from_secs(5);
const CONNECTIONS: usize = 8;
/// All are asked for within the first seconds, one after the other.
const COLD_TENANTS: usize = 100_000;
/// Each tenth call is of one of these, whose budgets cannot pay for it all.
const HOT_TENANTS: usize = 10;
const HOT_EVERY: usize = 10;
const SERVERS: [(&str, Kind); 3] =
    [("stock", Kind::Stock), ("raw h2", Kind::Raw), ("retryd", Kind::Retryd)];

/// What became of one server.
struct Storm {
    outcome: Outcome,
    took: Duration,
    cpu_ns: u64,
    resident_kib: [u64; 2],
}

fn main() -> ExitCode {
    match env::args().nth(1).as_deref() {
        Some("serve-stock") => stock::serve(),
        Some("serve-raw") => raw::serve(),
        _ => return storms(),
    }
    ExitCode::SUCCESS
}

fn storms() -> ExitCode {
    process::pin_client();
    let questions: Vec<Vec<u8>> = (0..COLD_TENANTS + HOT_TENANTS).map(question).collect();
    println!(
        "{ROUNDS} storms for each server, {CONNECTIONS} connections, to {PER_S} calls a second within {RAMP:?} and for {STEADY:?} more;\n\
         ms from when a call was due, \"late\" of it by the client (p99)\n\n{}",
        report::head()
    );
    let mut rows: Vec<Vec<Row>> = SERVERS.map(|_| Vec::new()).into();
    for round in 0..ROUNDS {
        let calls = calls(round);
        let mut order: Vec<usize> = (0..SERVERS.len()).collect();
        fastrand::shuffle(&mut order);
        for place in order {
            let (name, kind) = SERVERS[place];
            let row = Row::of(name, storm(kind, &calls, &questions));
            println!("{row}");
            rows[place].push(row);
        }
    }
    report::conclude(&rows)
}

/// A server that has seen nothing yet is at rest, and then it is not.
fn storm(kind: Kind, calls: &[Call], questions: &[Vec<u8>]) -> Storm {
    let process = Process::start(kind, Cores::One);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(process.check_an_answer());
    let mut client = OpenLoop::connect(process.address, CONNECTIONS);
    thread::sleep(HEALTHY);
    let before = process.spent();
    let begun = Instant::now();
    let outcome = client.run(calls, questions);
    let took = begun.elapsed();
    let after = process.spent();
    Storm {
        outcome,
        took,
        // Of a server that has ended nothing is known.
        cpu_ns: after.cpu_ns.saturating_sub(before.cpu_ns),
        resident_kib: [before.resident_kib, after.resident_kib],
    }
}

/// The same for each server in a round.
fn calls(seed: u64) -> Vec<Call> {
    let in_all = (RAMP / 2 + STEADY).as_millis() * u128::from(PER_S) / 1_000;
    let due = schedule::due(PER_S, RAMP, usize::try_from(in_all).unwrap(), seed);
    let (mut hot, mut cold) =
        ((COLD_TENANTS..COLD_TENANTS + HOT_TENANTS).cycle(), (0..COLD_TENANTS).cycle());
    let call = |(call, due): (usize, Duration)| {
        let tenant = if call.is_multiple_of(HOT_EVERY) { hot.next() } else { cold.next() };
        Call { due, question: tenant.unwrap() }
    };
    due.into_iter().enumerate().map(call).collect()
}

/// Reports one call, as a fleet does that reports all of them.
fn question(tenant: usize) -> Vec<u8> {
    question::framed(&pb::RetryContext {
        tenant: format!("storm-{tenant}"),
        usage: Some(pb::Usage { requests: 1, ..Default::default() }),
        ..question::of_tenant(0)
    })
}
