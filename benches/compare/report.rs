//! A scenario's table, and the same as JSON.
use serde_json::{Map, Value, json};

use crate::{
    Kind, ROUNDS, Round, Scenario,
    driver::{By, Waits},
    figures::{self, Ratio},
};

/// A number of each round: shown as the median, or as ratios of the same round.
struct Column {
    title: &'static str,
    key: &'static str,
    digits: usize,
    of: fn(&Round) -> f64,
}

const CPU: Column = Column { title: "CPU us", key: "cpu_us", digits: 2, of: |it| it.cpu_us };
const PACE: Column =
    Column { title: "calls/s", key: "calls_per_s", digits: 0, of: |it| it.calls_per_s };
const WRITES: Column =
    Column { title: "writes", key: "writes_per_call", digits: 3, of: |it| it.writes };
const RESIDENT: Column =
    Column { title: "KiB", key: "resident_kib", digits: 0, of: |it| it.resident_kib };
const P50: Column = Column { title: "p50 us", key: "p50_us", digits: 0, of: |it| waits(it).p50_us };
const P99: Column = Column { title: "p99 us", key: "p99_us", digits: 0, of: |it| waits(it).p99_us };
const LATE: Column =
    Column { title: "late us", key: "late_p99_us", digits: 0, of: |it| waits(it).late_p99_us };

/// Were the client later, its own delays would be taken for the servers'.
const LATE_MAX_US: f64 = 1_000.0;
/// Of the calls that were due, in the time in which they were: with fewer, they pile up.
const KEPT_UP_MIN: f64 = 0.95;

pub(crate) fn report(scenario: &Scenario, rounds: &[Vec<Round>]) -> Value {
    let (shown, compared) = match scenario.by {
        By::Closed(_) | By::H2load(_) => (&[CPU, PACE, WRITES][..], &[CPU, PACE][..]),
        By::Open { .. } => (&[CPU, P50, P99, LATE, WRITES][..], &[CPU, P50, P99][..]),
    };
    println!(
        "\n{}: {}, {ROUNDS} rounds of {} calls, each against `{}` in the same round",
        scenario.name, scenario.by, scenario.calls, scenario.servers[0].0
    );
    let titles = shown.iter().map(|it| format!("{:>9}", it.title));
    let ratios = compared.iter().map(|it| format!("  {:<24}", it.title.trim_end_matches(" us")));
    let raw = scenario.servers.iter().position(|(_, kind)| *kind == Kind::Raw);
    let against_raw = raw.map_or("", |_| "  CPU against raw h2");
    println!("{:14}{}{against_raw}", "", titles.chain(ratios).collect::<String>());

    let column = |place: usize, of: &Column| rounds[place].iter().map(of.of).collect::<Vec<f64>>();
    let mut rows = Vec::new();
    for (place, (name, _)) in scenario.servers.iter().enumerate() {
        let mut row = Map::from_iter([("server".to_owned(), json!(name))]);
        print!("{name:14}");
        for of in shown {
            let median = figures::median(column(place, of));
            print!("{median:>9.*}", of.digits);
            row.insert(of.key.to_owned(), json!(median));
        }
        for of in compared {
            let ratio = Ratio::of(&column(place, of), &column(0, of));
            print!("  {:<24}", ratio.to_string());
            row.insert(format!("{}_ratio", of.key.trim_end_matches("_us")), ratio.json());
        }
        if let Some(raw) = raw {
            let ratio = Ratio::of(&column(place, &CPU), &column(raw, &CPU));
            print!("  {ratio}");
            row.insert("cpu_ratio_to_raw".to_owned(), ratio.json());
        }
        println!();
        row.insert(RESIDENT.key.to_owned(), json!(figures::median(column(place, &RESIDENT))));
        rows.push(row);
    }
    let mut void = Vec::new();
    if !Ratio::of(&column(1, &CPU), &column(0, &CPU)).holds_one() {
        void.push("the twin's interval does not hold 1");
    }
    if let By::Open { per_s, .. } = scenario.by {
        let all = |of| (0..rounds.len()).map(move |place| figures::median(column(place, of)));
        if all(&LATE).any(|late_us| LATE_MAX_US < late_us) {
            void.push("the client was late by itself");
        }
        if all(&PACE).any(|calls_per_s| calls_per_s < KEPT_UP_MIN * f64::from(per_s)) {
            void.push("a server could not keep up: it is saturated, or others want its core");
        }
    }
    for why in &void {
        println!("VOID: {why}");
    }
    json!({
        "scenario": scenario.name, "load": scenario.by.to_string(), "calls_a_round": scenario.calls,
        "void": !void.is_empty(), "why_void": void, "servers": rows,
    })
}

fn waits(round: &Round) -> &Waits {
    round.waits.as_ref().unwrap()
}
