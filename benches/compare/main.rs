//! What a call costs, beside servers that decide nothing.
//!
//! `benches/compare/run` builds and runs it; `cargo bench --profile ci --bench compare` is quicker to build. Arguments choose
//! scenarios by name. Only ratios mean something, and only while the twin's interval holds 1: otherwise the scenario is void.
//! benches/README.md tells more.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a bench that fails must end")]
#![allow(clippy::panic, reason = "a bench that fails must end")]
#![allow(clippy::indexing_slicing, clippy::disallowed_methods, reason = "a bench measures")]
mod client;
mod costs;
mod driver;
mod figures;
mod frames;
mod h2load;
mod open_loop;
mod process;
mod question;
mod raw;
mod report;
mod schedule;
mod spread;
mod stock;
mod told;

use std::env;

use retryd::wire::pb;
use serde_json::json;

use self::{
    client::{Client, Load},
    costs::{Around, Scraper},
    driver::{By, Driver, Waits},
    process::{Cores, Extra, Kind, Process},
};

/// Short rounds, so that what disturbs one server disturbs its neighbours in time as well.
const ROUNDS: usize = 31;
const CONNECTIONS: usize = 4;
const IN_FLIGHT: usize = 25;
const TENANTS: usize = 100;

/// A load, and what is measured under it.
struct Scenario {
    name: &'static str,
    by: By,
    cores: Cores,
    servers: &'static [(&'static str, Kind)],
    calls: usize,
}

const ALL: &[(&str, Kind)] = &[
    ("stock", Kind::Stock),
    ("stock again", Kind::Stock),
    ("raw h2", Kind::Raw),
    ("retryd", Kind::Retryd),
];
const STREAM: &[(&str, Kind)] =
    &[("stock", Kind::Stock), ("stock again", Kind::Stock), ("retryd stream", Kind::Stream)];
/// What each thing costs that can be on or off, by itself.
const COSTS: &[(&str, Kind)] = &[
    ("retryd", Kind::Retryd),
    ("retryd again", Kind::Retryd),
    ("scrapes", Kind::With(Extra::Scrapes)),
    ("decision log", Kind::With(Extra::DecisionLog)),
    ("TLS", Kind::With(Extra::Tls)),
    ("traces, 0 %", Kind::With(Extra::NoTraces)),
    ("traces, 1 %", Kind::With(Extra::Traces)),
];
const BUSY: Load = Load { connections: CONNECTIONS, in_flight: IN_FLIGHT };
const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "one-core",
        by: By::Closed(BUSY),
        cores: Cores::One,
        servers: ALL,
        calls: 10_000,
    },
    Scenario {
        name: "two-workers",
        by: By::Closed(BUSY),
        cores: Cores::Two,
        servers: ALL,
        calls: 10_000,
    },
    Scenario {
        name: "lone-call",
        by: By::Closed(Load { connections: 1, in_flight: 1 }),
        cores: Cores::One,
        servers: ALL,
        calls: 2_000,
    },
    Scenario {
        name: "stream",
        by: By::Closed(Load { connections: 1, in_flight: 100 }),
        cores: Cores::One,
        servers: STREAM,
        calls: 10_000,
    },
    Scenario {
        name: "open-loop",
        by: By::Open { connections: CONNECTIONS, per_s: 20_000 },
        cores: Cores::One,
        servers: ALL,
        calls: 5_000,
    },
    Scenario {
        name: "costs",
        by: By::Closed(BUSY),
        cores: Cores::One,
        servers: COSTS,
        // About a second, so that a round has its scrape.
        calls: 100_000,
    },
    Scenario {
        name: "h2load",
        by: By::H2load(BUSY),
        cores: Cores::One,
        servers: ALL,
        calls: 10_000,
    },
];

/// A server, and who asks it.
struct Running {
    process: Process,
    driver: Driver,
    scraper: Option<Scraper>,
}

/// One round of one server.
struct Round {
    cpu_us: f64,
    calls_per_s: f64,
    writes: f64,
    resident_kib: f64,
    /// Where the load is not as fast as the answers.
    waits: Option<Waits>,
}

fn main() {
    let arguments: Vec<String> = env::args().skip(1).filter(|it| !it.starts_with("--")).collect();
    match arguments.first().map(String::as_str) {
        Some("serve-stock") => return stock::serve(),
        Some("serve-raw") => return raw::serve(),
        Some("serve-collector") => return raw::answer(&[]),
        _ => {}
    }
    process::pin_client();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    if arguments == ["train"] {
        return runtime.block_on(train());
    }
    let chosen =
        |it: &&Scenario| arguments.is_empty() || arguments.iter().any(|name| name == it.name);
    let scenarios: Vec<&Scenario> = SCENARIOS.iter().filter(chosen).collect();
    if scenarios.iter().any(|it| matches!(it.by, By::H2load(_))) {
        h2load::prepare();
    }
    let mut report = Vec::new();
    for scenario in scenarios {
        report.push(runtime.block_on(scenario.run()));
    }
    let is_void = report.iter().any(|it| it["void"] == true);
    let path = concat!(env!("CARGO_TARGET_TMPDIR"), "/compare.json");
    let report =
        json!({ "scenarios": report, "rounds": ROUNDS, "load_average": figures::load_average() });
    std::fs::write(path, serde_json::to_string_pretty(&report).unwrap()).unwrap();
    println!("\nload average {}; written to {path}", figures::load_average());
    if is_void {
        eprintln!("void: see above");
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
        let has_extras = self.servers.iter().any(|(_, kind)| matches!(kind, Kind::With(_)));
        let around = has_extras.then(Around::start);
        let mut servers = Vec::new();
        for (_, kind) in self.servers {
            servers.push(self.start(*kind, around.as_ref(), &questions).await);
        }
        let mut rounds: Vec<Vec<Round>> = self.servers.iter().map(|_| Vec::new()).collect();
        for turn in 0..=ROUNDS {
            let mut order: Vec<usize> = (0..servers.len()).collect();
            fastrand::shuffle(&mut order);
            for place in order {
                let round = self.round(&mut servers[place]).await;
                // The first is to get warm.
                if turn != 0 {
                    rounds[place].push(round);
                }
            }
        }
        for ((_, kind), running) in self.servers.iter().zip(&servers) {
            if let (Kind::With(extra), Some(around)) = (kind, &around) {
                around.check(*extra, &running.process).await;
            }
        }
        report::report(self, &rounds)
    }

    async fn start(
        &self,
        kind: Kind,
        around: Option<&Around>,
        questions: &[pb::RetryContext],
    ) -> Running {
        let process = Process::start_with(kind, self.cores, |command| {
            if let (Kind::With(extra), Some(around)) = (kind, around) {
                around.set(extra, command);
            }
        });
        let driver = match (kind, self.by, around) {
            (Kind::With(Extra::Tls), By::Closed(load), Some(around)) => {
                Driver::Closed(around.client(process.address, load, questions).await)
            }
            _ => {
                process.check_an_answer().await;
                self.by.connect(&process, kind == Kind::Stream, questions).await
            }
        };
        let scraper = (kind == Kind::With(Extra::Scrapes)).then(|| Scraper::of(&process));
        Running { process, driver, scraper }
    }

    async fn round(&self, running: &mut Running) -> Round {
        let Running { process, driver, scraper } = running;
        let before = process.spent();
        let load = driver.calls(self.calls, process);
        let made = match scraper {
            Some(scraper) => scraper.during(load).await,
            None => load.await,
        };
        let after = process.spent();
        let calls = self.calls as f64;
        Round {
            cpu_us: (after.cpu_ns - before.cpu_ns) as f64 / 1e3 / calls,
            calls_per_s: made.calls_per_s,
            writes: (after.writes - before.writes) as f64 / calls,
            resident_kib: after.resident_kib as f64,
            waits: made.waits,
        }
    }
}
