//! Many callers of many tenants: what three replicas grant is what one exact budget would.
use std::time::Duration;

use crate::bound::{Guarantee, LIMITS, entitled};
use crate::load::{Asked, Load, Tenant};
use crate::scene::{Latencies, MACHINE, POLICY, REPLICAS, replicas};
use crate::servers::{Flavour, Server};
use crate::support::{Process, policy_file};

const CONNECTIONS: usize = 64;
/// Above this the promise has a lower side, too.
const BUSY: f64 = 10.0;

/// Asks a second: of one that is hot, of some that are busy, and of each of the thousand others.
struct Rates {
    hot: f64,
    busy: u32,
    others: f64,
}

/// What a debug build on two cores keeps up with.
const SHORT: Rates = Rates { hot: 80.0, busy: 6, others: 0.05 };

impl Rates {
    fn tenants(&self, requests_per_ask: u64) -> Vec<Tenant> {
        let busy = (1..=self.busy).map(|place| (format!("busy-{place}"), BUSY + f64::from(place)));
        let others = (0..1_000).map(|place| (format!("other-{place}"), self.others));
        std::iter::once(("hot".to_owned(), self.hot))
            .chain(busy)
            .chain(others)
            .map(|(name, rate)| Tenant::new(&name, rate, requests_per_ask))
            .collect()
    }
}

/// A machine that is busy with something else starves the exchange. So what is admitted must be near
/// to what one budget would admit in one of so many runs, and the guarantee must hold in each.
const RUNS: usize = 3;

/// What comes before is left out: by then each replica has its part of each balance.
const WARM: Duration = Duration::from_secs(3);

/// `retries` is what few asks leave to chance.
async fn check(time: Duration, tenants: Vec<Tenant>, retries: f64) {
    let _alone = MACHINE.write().await;
    let mut apart = Vec::new();
    for _ in 0..RUNS {
        apart = run(time, &tenants, retries).await;
        if apart.is_empty() {
            return;
        }
        println!("{apart:#?}");
    }
    panic!("{apart:#?}");
}

/// Tells which busy tenants got less or more than one exact budget would have granted.
async fn run(time: Duration, tenants: &[Tenant], retries: f64) -> Vec<String> {
    let server = Server::start(Flavour::Redis7);
    let url = server.url();
    let policy = policy_file("replicas-accuracy.yaml", POLICY);
    let replicas = replicas(&policy, &[url.as_str(); REPLICAS]);
    let load = Load::start(&replicas, CONNECTIONS, tenants.to_vec()).await;
    tokio::time::sleep(time).await;
    let asked = load.end().await;
    println!("{}", Latencies(&asked));
    let lost = lost_part(&replicas).await;
    assert!(asked.iter().all(|asked| asked.outcome.is_ok()));

    let mut by_tenant: Vec<Vec<&Asked>> = vec![Vec::new(); tenants.len()];
    for asked in &asked {
        by_tenant[asked.tenant].push(asked);
    }
    let promise = Guarantee {
        limits: LIMITS,
        replicas: REPLICAS.try_into().unwrap(),
        cut_off: Vec::new(),
        has_local_share: true,
    };
    let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
    let mut apart = Vec::new();
    for (Tenant { name, asks_per_second, .. }, its) in tenants.iter().zip(&by_tenant) {
        let excess = promise.worst_excess(its);
        assert!(excess <= 0.0, "`{name}` had {excess} retries too many");
        if *asks_per_second <= BUSY {
            continue;
        }
        let granted =
            its.iter().filter(|asked| asked.is_granted() && WARM <= asked.sent).count() as f64;
        let before: Vec<_> = its.iter().copied().filter(|asked| asked.sent < WARM).collect();
        let entitled = (entitled(&LIMITS, its) - entitled(&LIMITS, &before)) as f64;
        (least, most) = (least.min(granted / entitled), most.max(granted / entitled));
        if granted < (0.95 - lost) * entitled - retries || 1.02 * entitled + retries < granted {
            apart.push(format!("`{name}`: {granted} of {entitled}, {} asked", its.len()));
        }
    }
    println!("admitted / entitled: {least:.3} to {most:.3}, exchanges lost: {lost:.3}");
    apart
}

/// The part of all exchanges that nobody heard the end of, and that carried something away with
/// them: none, on a machine that has time for them.
async fn lost_part(replicas: &[Process]) -> f64 {
    let mut counts = [0, 0];
    for replica in replicas {
        for (sum, outcome) in counts.iter_mut().zip(["answered", "unknown"]) {
            let line = format!("retryd_store_exchanges_total{{outcome=\"{outcome}\"}}");
            *sum += replica.metric(&line).await;
        }
    }
    let [answered, unknown] = counts.map(|count| count as f64);
    unknown / (answered + unknown)
}

#[tokio::test(flavor = "multi_thread")]
async fn three_replicas_grant_what_one_would_where_every_call_fails() {
    check(Duration::from_secs(14), SHORT.tenants(1), REPLICAS as f64).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn three_replicas_grant_what_one_would_where_a_quarter_fails() {
    check(Duration::from_secs(14), SHORT.tenants(4), REPLICAS as f64).await;
}

/// Prints figures: `cargo test --profile ci --test replicas -- --ignored --nocapture a_minute`.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes two minutes, and a machine of its own"]
async fn three_replicas_grant_what_one_would_for_a_minute() {
    let rates = Rates { hot: 500.0, busy: 20, others: 0.5 };
    for requests_per_ask in [1, 4] {
        check(Duration::from_secs(60), rates.tenants(requests_per_ask), 0.0).await;
    }
}
