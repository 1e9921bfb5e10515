//! How near what all replicas grant together comes to one exact budget, while little fails.
use retryd::budget::{Budget, Limits, OnStoreLoss, Scope, bucket, ratio};

use super::plan::{CALM_MS, Network, Place, Plan, Shape, Traffic};
use super::simulation::play;

/// What callers do, and which part of what one exact budget grants must be granted.
struct Row {
    about: &'static str,
    replicas: usize,
    limits: Limits,
    seconds: u64,
    /// Requests of a second, and how many of a hundred fail.
    rate: f64,
    failing: u32,
    shape: Shape,
    reports: Place,
    asks: Place,
    at_least: f64,
    at_most: f64,
}

const fn ratio(count: u32, interval_ms: u64) -> Limits {
    let floor = ratio::Floor { count, interval_ms };
    Limits::Ratio(ratio::Limits { percent: 20, interval_ms: 10_000, floor })
}

const USUAL: Row = Row {
    about: "",
    replicas: 3,
    limits: ratio(10, 1_000),
    seconds: 20,
    rate: 400.0,
    failing: 100,
    shape: Shape::Steady,
    reports: Place::Anywhere,
    asks: Place::Anywhere,
    at_least: 0.95,
    at_most: 1.02,
};

const FIRST: Place = Place::At(0);
const SECOND: Place = Place::At(1);

#[rustfmt::skip]
const ROWS: &[Row] = &[
    Row { about: "a storm", ..USUAL },
    Row { about: "a storm on ten", replicas: 10, ..USUAL },
    Row { about: "a tenth fails", failing: 10, ..USUAL },
    Row { about: "a quarter fails", failing: 25, ..USUAL },
    Row { about: "a quarter fails on ten", replicas: 10, failing: 25, ..USUAL },
    Row { about: "reported at one, asked at another", reports: FIRST, asks: SECOND, ..USUAL },
    Row { about: "the same of ten", replicas: 10, reports: FIRST, asks: SECOND, ..USUAL },
    Row { about: "reported at one, asked anywhere", reports: FIRST, failing: 25, ..USUAL },
    Row { about: "20 a second", rate: 20.0, ..USUAL },
    Row { about: "20 a second on ten", replicas: 10, rate: 20.0, ..USUAL },
    Row { about: "20 a second, half fail", rate: 20.0, failing: 50, ..USUAL },
    Row { about: "2 a second", rate: 2.0, ..USUAL },
    Row { about: "2 a second on ten", replicas: 10, rate: 2.0, ..USUAL },
    Row { about: "20 a second at one", rate: 20.0, reports: FIRST, asks: FIRST, ..USUAL },
    Row { about: "60 at once, on credit too", rate: 20.0, shape: BURSTS, at_most: 1.15, ..USUAL },
    Row { about: "a large floor", limits: ratio(100, 1_000), ..USUAL },
    Row { about: "no floor", limits: ratio(0, 1_000), rate: 20.0, ..USUAL },
    Row { about: "no floor, one ask in 2 s", limits: ratio(0, 1_000), ..RARE },
    Row { about: "no floor, one ask in 2 s, on ten", limits: ratio(0, 1_000), replicas: 10, ..RARE },
    Row { about: "a token an hour, one ask in 2 s", limits: ratio(1, 3_600_000), ..RARE },
    Row { about: "a token an hour, on ten", limits: ratio(1, 3_600_000), replicas: 10, ..RARE },
    Row { about: "a token bucket", limits: BUCKET, rate: 50.0, failing: 50, ..USUAL },
    Row { about: "a token bucket on ten", replicas: 10, limits: BUCKET, rate: 50.0, failing: 50, ..USUAL },
];

/// Ten minutes, or chance decides.
const RARE: Row = Row { rate: 0.5, seconds: 600, at_least: 0.6, ..USUAL };
const BURSTS: Shape = Shape::Bursts { period_ms: 3_000 };
const BUCKET: Limits =
    Limits::TokenBucket(bucket::Limits { capacity: 500, costs: bucket::Costs::AWS_2026 });

#[test]
fn replicas_grant_nearly_what_one_budget_does() {
    let mut wrong = Vec::new();
    for (number, row) in ROWS.iter().enumerate() {
        let played = play(&row.plan(number as u64), true);
        played.histories.iter().for_each(|history| history.check().unwrap());
        let (granted, exact) = played.granted[0];
        let accuracy = granted as f64 / exact as f64;
        println!("{:40} {:2} {granted:6} of {exact:6}: {accuracy:.3}", row.about, row.replicas);
        // Each may be one retry ahead.
        let ahead = (granted as f64 - row.replicas as f64) / exact as f64;
        if accuracy < row.at_least || row.at_most < ahead {
            wrong.push(format!("{} on {}: {accuracy:.3}", row.about, row.replicas));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

impl Row {
    fn plan(&self, seed: u64) -> Plan {
        let budget = Budget {
            name: "budget-0".into(),
            scope: Scope::Tenant,
            limits: self.limits,
            on_store_loss: OnStoreLoss::LocalShare,
        };
        let traffic = Traffic {
            rate: self.rate,
            failing: self.failing,
            shape: self.shape,
            reports: self.reports,
            asks: self.asks,
            released: 0,
            greedy: 0,
        };
        Plan {
            seed,
            replicas: self.replicas,
            step_ms: 10,
            until_ms: self.seconds * 1_000 + CALM_MS,
            network: Network { latency_ms: (0, 2), lost: 0 },
            budgets: vec![(budget, traffic)],
            faults: Vec::new(),
        }
    }
}
