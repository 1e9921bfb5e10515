//! What a call costs, beside servers that decide nothing.
//!
//! `benches/compare/run` builds and runs it; `cargo bench --profile ci --bench compare` is quicker to build. Arguments choose
//! scenarios by name. Only ratios mean something, and only while the twin's interval holds 1: otherwise the scenario is void.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a bench that fails must end")]
#![allow(clippy::panic, reason = "a bench that fails must end")]
#![allow(clippy::indexing_slicing, clippy::disallowed_methods, reason = "a bench measures")]
mod client;
mod figures;
mod frames;
mod process;
mod question;
mod raw;
mod stock;

use std::{env, time::Instant};

use retryd::wire::pb;
use serde_json::json;

use self::{
    client::{Client, Load},
    figures::Ratio,
    process::{Cores, Process},
};

/// Short rounds, so that what disturbs one server disturbs its neighbours in time as well.
const ROUNDS: usize = 31;
const CONNECTIONS: usize = 4;
const IN_FLIGHT: usize = 25;
const TENANTS: usize = 100;

/// A load, and what is measured under it.
struct Scenario {
    name: &'static str,
    load: Load,
    cores: Cores,
    servers: &'static [(&'static str, Kind)],
    calls: usize,
}

/// What answers.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// A stock tonic server that answers a constant: what others are held against.
    Stock,
    /// An h2 server that answers a constant, and batches its writes.
    Raw,
    Retryd,
    /// The same, asked over DecideStream.
    Stream,
}

const ALL: &[(&str, Kind)] = &[
    ("stock", Kind::Stock),
    ("stock again", Kind::Stock),
    ("raw h2", Kind::Raw),
    ("retryd", Kind::Retryd),
];
const STREAM: &[(&str, Kind)] =
    &[("stock", Kind::Stock), ("stock again", Kind::Stock), ("retryd stream", Kind::Stream)];
const BUSY: Load = Load { connections: CONNECTIONS, in_flight: IN_FLIGHT };
const SCENARIOS: &[Scenario] = &[
    Scenario { name: "one-core", load: BUSY, cores: Cores::One, servers: ALL, calls: 10_000 },
    Scenario { name: "two-workers", load: BUSY, cores: Cores::Two, servers: ALL, calls: 10_000 },
    Scenario {
        name: "lone-call",
        load: Load { connections: 1, in_flight: 1 },
        cores: Cores::One,
        servers: ALL,
        calls: 2_000,
    },
    Scenario { name: "stream", load: BUSY, cores: Cores::One, servers: STREAM, calls: 10_000 },
];

/// One round of one server.
struct Round {
    cpu_us: f64,
    calls_per_s: f64,
    writes: f64,
}

fn main() {
    let arguments: Vec<String> = env::args().skip(1).filter(|it| !it.starts_with("--")).collect();
    match arguments.first().map(String::as_str) {
        Some("serve-stock") => return stock::serve(),
        Some("serve-raw") => return raw::serve(),
        _ => {}
    }
    process::pin_client();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    if arguments == ["train"] {
        return runtime.block_on(train());
    }
    let chosen =
        |it: &&Scenario| arguments.is_empty() || arguments.iter().any(|name| name == it.name);
    let mut report = Vec::new();
    for scenario in SCENARIOS.iter().filter(chosen) {
        report.push(runtime.block_on(scenario.run()));
    }
    let is_void = report.iter().any(|it| it["void"] == true);
    let path = concat!(env!("CARGO_TARGET_TMPDIR"), "/compare.json");
    let report =
        json!({ "scenarios": report, "rounds": ROUNDS, "load_average": figures::load_average() });
    std::fs::write(path, serde_json::to_string_pretty(&report).unwrap()).unwrap();
    println!("\nload average {}; written to {path}", figures::load_average());
    if is_void {
        eprintln!("void: two servers that are the same seem to differ");
        std::process::exit(1);
    }
}

/// Makes calls of each kind, for a build that learns from them; see deploy/pgo.sh.
async fn train() {
    let process = Process::start(Kind::Retryd, Cores::Two);
    process.check_an_answer().await;
    let questions: Vec<pb::RetryContext> = (0..TENANTS).map(question::of_tenant).collect();
    let lone = Load { connections: 1, in_flight: 1 };
    for (load, streamed, calls) in
        [(BUSY, false, 200_000), (BUSY, true, 50_000), (lone, false, 10_000)]
    {
        Client::connect(process.address, load, streamed, &questions).await.calls(calls).await;
    }
    process.stop();
}

impl Scenario {
    async fn run(&self) -> serde_json::Value {
        let questions: Vec<pb::RetryContext> = (0..TENANTS).map(question::of_tenant).collect();
        let mut servers = Vec::new();
        for (_, kind) in self.servers {
            let process = Process::start(*kind, self.cores);
            process.check_an_answer().await;
            let streamed = *kind == Kind::Stream;
            let client = Client::connect(process.address, self.load, streamed, &questions).await;
            servers.push((process, client));
        }
        let mut rounds: Vec<Vec<Round>> = self.servers.iter().map(|_| Vec::new()).collect();
        for turn in 0..=ROUNDS {
            let mut order: Vec<usize> = (0..servers.len()).collect();
            fastrand::shuffle(&mut order);
            for place in order {
                let (process, client) = &mut servers[place];
                let round = self.round(process, client).await;
                // The first is to get warm.
                if turn != 0 {
                    rounds[place].push(round);
                }
            }
        }
        self.report(&rounds)
    }

    async fn round(&self, process: &Process, client: &mut Client) -> Round {
        let before = process.spent();
        let begun = Instant::now();
        client.calls(self.calls).await;
        let elapsed = begun.elapsed().as_secs_f64();
        let after = process.spent();
        let calls = self.calls as f64;
        Round {
            cpu_us: (after.cpu_ns - before.cpu_ns) as f64 / 1e3 / calls,
            calls_per_s: calls / elapsed,
            writes: (after.writes - before.writes) as f64 / calls,
        }
    }

    fn report(&self, rounds: &[Vec<Round>]) -> serde_json::Value {
        let Load { connections, in_flight } = self.load;
        println!(
            "\n{}: {connections} connections x {in_flight}, {ROUNDS} rounds of {} calls, each against `stock` in the same round",
            self.name, self.calls
        );
        println!(
            "{:14} {:>8} {:>9} {:>7}  {:<26} {:<26} {:<26}",
            "", "CPU us", "calls/s", "writes", "CPU", "calls/s", "CPU against raw h2"
        );
        let cpu = |place: usize| rounds[place].iter().map(|it| it.cpu_us).collect::<Vec<f64>>();
        let pace =
            |place: usize| rounds[place].iter().map(|it| it.calls_per_s).collect::<Vec<f64>>();
        let raw = self.servers.iter().position(|(_, kind)| *kind == Kind::Raw);
        let mut rows = Vec::new();
        for (place, (name, _)) in self.servers.iter().enumerate() {
            let writes = figures::median(rounds[place].iter().map(|it| it.writes).collect());
            let (cpu_us, calls_per_s) = (figures::median(cpu(place)), figures::median(pace(place)));
            let of_cpu = Ratio::of(&cpu(place), &cpu(0));
            let of_pace = Ratio::of(&pace(place), &pace(0));
            let of_raw = raw.map(|raw| Ratio::of(&cpu(place), &cpu(raw)));
            let shown_raw = of_raw.as_ref().map(Ratio::to_string).unwrap_or_default();
            println!(
                "{name:14} {cpu_us:>8.2} {calls_per_s:>9.0} {writes:>7.3}  {:<26} {:<26} {shown_raw}",
                of_cpu.to_string(),
                of_pace.to_string(),
            );
            rows.push(json!({
                "server": name, "cpu_us": cpu_us, "calls_per_s": calls_per_s, "writes_per_call": writes,
                "cpu_ratio": of_cpu.json(), "pace_ratio": of_pace.json(),
                "cpu_ratio_to_raw": of_raw.as_ref().map(Ratio::json),
            }));
        }
        let twin = Ratio::of(&cpu(1), &cpu(0));
        let void = !twin.holds_one();
        if void {
            println!("VOID: the twin's interval does not hold 1");
        }
        json!({
            "scenario": self.name, "connections": connections, "in_flight": in_flight,
            "calls_a_round": self.calls, "void": void, "servers": rows,
        })
    }
}

/// What the others answer: as long as an answer of retryd.
fn constant() -> pb::Decision {
    pb::Decision {
        verdict: pb::Verdict::Retry.into(),
        reason: pb::Reason::Retryable.into(),
        delay: Some(pbjson_types::Duration { seconds: 0, nanos: 61_000_000 }),
        delay_source: pb::DelaySource::Backoff.into(),
        policy: "default".to_owned(),
        policy_revision: "embedded".to_owned(),
        budget: Some(pb::BudgetState {
            budget: "per-tenant".to_owned(),
            retries_available: 100,
            retries_capacity: 20,
        }),
        failure_class: pb::FailureClass::Transient.into(),
        ..Default::default()
    }
}
