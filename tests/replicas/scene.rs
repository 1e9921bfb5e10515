//! Three replicas under load, a store that is lost and found, and what must hold meanwhile.
use std::{thread, time::Duration};

use tokio::sync::{RwLock, RwLockReadGuard};
use tokio::time::{Instant, sleep};
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};

use crate::bound::{Guarantee, LIMITS, entitled};
use crate::load::{Asked, Load, Tenant};
use crate::support::{Process, SOON, context, policy_file};

pub(crate) const REPLICAS: usize = 3;

/// How long a replica may be cut off before it says so.
const UNNOTICED: Duration = Duration::from_secs(1);

/// Written by those that need the machine for themselves.
pub(crate) static MACHINE: RwLock<()> = RwLock::const_new(());

/// A floor for each tenant besides a fifth of its requests.
pub(crate) const POLICY: &str = "version: 1
budgets: [{name: mine, scope: tenant, ratio: {percent: 20}}]
policies: [{name: all, budgets: [mine]}]
";

/// What a test of a fault asks, with connections to spare for a loaded machine.
const CONNECTIONS: usize = 12;

pub(crate) struct Scene {
    pub(crate) replicas: Vec<Process>,
    pub(crate) load: Load,
    tenants: Vec<Tenant>,
    losses: [u64; REPLICAS],
    taken_out: Option<usize>,
    found_at: Duration,
    has_local_share: bool,
    _beside_others: RwLockReadGuard<'static, ()>,
}

/// Starts one replica for each address of a store, all at once.
pub(crate) fn replicas(policy: &str, urls: &[&str]) -> Vec<Process> {
    thread::scope(|scope| {
        let start = |url| {
            let count = urls.len().to_string();
            move || {
                Process::start(&[
                    "--policy",
                    policy,
                    "--store",
                    url,
                    "--replicas",
                    &count,
                    "--drain-delay",
                    "0s",
                ])
            }
        };
        let starting: Vec<_> = urls.iter().map(|url| scope.spawn(start(*url))).collect();
        starting.into_iter().map(|process| process.join().unwrap()).collect()
    })
}

/// What callers of three kinds ask for: far too much, a little too much, and little.
fn tenants() -> Vec<Tenant> {
    vec![Tenant::new("hot", 60.0, 1), Tenant::new("warm", 20.0, 4), Tenant::new("cool", 4.0, 1)]
}

impl Scene {
    /// A fleet that shares one store and has done so for a while.
    pub(crate) async fn begin(name: &str, urls: [&str; REPLICAS]) -> Scene {
        Scene::with_policy(name, urls, POLICY).await
    }

    pub(crate) async fn with_policy(name: &str, urls: [&str; REPLICAS], policy: &str) -> Scene {
        let mut scene = Scene::without_store(name, urls, policy).await;
        scene.found(&[0, 1, 2]).await;
        scene.go_on(Duration::from_millis(1_500)).await;
        scene
    }

    /// The same before anybody has found the store.
    pub(crate) async fn without_store(name: &str, urls: [&str; REPLICAS], policy: &str) -> Scene {
        let beside_others = MACHINE.read().await;
        let replicas = replicas(&policy_file(&format!("replicas-{name}.yaml"), policy), &urls);
        let load = Load::start(&replicas, CONNECTIONS, tenants()).await;
        Scene {
            replicas,
            load,
            tenants: tenants(),
            losses: [0; REPLICAS],
            taken_out: None,
            found_at: Duration::ZERO,
            has_local_share: !policy.contains("deny"),
            _beside_others: beside_others,
        }
    }

    pub(crate) async fn go_on(&self, time: Duration) {
        sleep(time).await;
    }

    /// Waits until these replicas have noticed, and holds what they say of it.
    pub(crate) async fn lost(&mut self, which: &[usize]) {
        for &replica in which {
            self.says(replica, false).await;
            self.losses[replica] += 1;
        }
    }

    /// The same of replicas that have found the store again.
    pub(crate) async fn found(&mut self, which: &[usize]) {
        for &replica in which {
            self.says(replica, true).await;
            self.found_at = self.load.now();
        }
    }

    /// The same after a loss that may be over already.
    pub(crate) async fn found_after_loss(&mut self, which: &[usize]) {
        for &replica in which {
            self.replicas[replica].logged("the store is lost");
            self.losses[replica] += 1;
        }
        self.found(which).await;
    }

    /// Asks it no more, and forgives it what it does not answer.
    pub(crate) fn take_out(&mut self, replica: usize) {
        self.load.take_out(replica);
        self.taken_out = Some(replica);
    }

    async fn says(&self, replica: usize, is_reached: bool) {
        let process = &self.replicas[replica];
        let end = Instant::now() + SOON;
        let status = if is_reached { ServingStatus::Serving } else { ServingStatus::NotServing };
        while process.metric("retryd_store_up").await != u64::from(is_reached)
            || store_health(process).await != status
        {
            assert!(Instant::now() < end, "replica {replica} does not say {status:?}");
            sleep(Duration::from_millis(20)).await;
        }
        let store = if is_reached { "[+] store\n" } else { "[-] store" };
        let page = process.page("/readyz?verbose").await;
        assert!(page.starts_with("HTTP/1.1 200") && page.contains(store), "{page}");
        let page = process.page("/readyz").await;
        assert!(page.starts_with("HTTP/1.1 200") && page.contains("ready\n"), "{page}");
        let decision = process.client().await.decide(context("witness")).await.unwrap();
        assert_eq!(decision.get_ref().degraded, !is_reached, "replica {replica}");
    }

    /// Goes on for a while, stops the callers, and holds all that must be.
    pub(crate) async fn end(self) -> Vec<Asked> {
        self.go_on(Duration::from_millis(2_000)).await;
        let mut cut_off = Vec::new();
        for (replica, process) in self.replicas.iter().enumerate() {
            let outages = self.outages(process);
            if Some(replica) != self.taken_out {
                let losses = process.metric("retryd_store_losses_total").await;
                let expected = self.losses[replica];
                assert_eq!(outages.len() as u64, losses, "replica {replica}: one line each");
                // A machine that is busy with something else may look like one loss more.
                assert!((expected..=expected + 1).contains(&losses), "replica {replica}: {losses}");
            }
            cut_off.extend(outages);
        }
        let asked = self.load.end().await;
        let promise = Guarantee {
            limits: LIMITS,
            replicas: REPLICAS.try_into().unwrap(),
            cut_off,
            has_local_share: self.has_local_share,
        };
        for asked in &asked {
            let may_fail = Some(asked.replica) == self.taken_out;
            assert!(asked.outcome.is_ok() || may_fail, "{asked:?}");
        }
        for (tenant, Tenant { name, .. }) in self.tenants.iter().enumerate() {
            let its: Vec<_> = asked.iter().filter(|asked| asked.tenant == tenant).collect();
            let granted = its.iter().filter(|asked| asked.is_granted()).count();
            let excess = promise.worst_excess(&its);
            println!("{name}: {granted} of {} entitled, {excess:.1}", entitled(&LIMITS, &its));
            assert!(excess <= 0.0, "`{name}` had {excess} retries too many");
            let is_shared = |asked: &&&Asked| {
                self.found_at < asked.sent
                    && asked.is_granted()
                    && asked.outcome.is_ok_and(|outcome| !outcome.is_degraded)
            };
            assert!(its.iter().any(|asked| is_shared(&asked)), "`{name}` gets nothing");
        }
        println!("{}", Latencies(&asked));
        asked
    }
}

impl Scene {
    /// When a replica was cut off, by what it logs: one line when that begins and one when it ends.
    fn outages(&self, process: &Process) -> Vec<(Duration, Duration)> {
        let events = |words, is_loss| {
            let lines = process.lines_with(words).into_iter();
            lines.map(move |(at, _)| (at, is_loss))
        };
        let mut events: Vec<_> =
            events("the store is lost", true).chain(events("the store answers", false)).collect();
        events.sort();
        if events.first().is_some_and(|(_, is_loss)| !is_loss) {
            events.remove(0);
        }
        let outage = |pair: &[(std::time::Instant, bool)]| {
            let [(lost, true), (found, false)] = pair else { panic!("{pair:?}") };
            let since = |at| self.load.since_start(at);
            (since(*lost).saturating_sub(UNNOTICED), since(*found))
        };
        events.chunks(2).map(outage).collect()
    }
}

async fn store_health(process: &Process) -> ServingStatus {
    let channel = tonic::transport::Endpoint::new(format!("http://{}", process.calls)).unwrap();
    let mut client = HealthClient::new(channel.connect().await.unwrap());
    let asked = HealthCheckRequest { service: "retryd.store".to_owned() };
    client.check(asked).await.unwrap().get_ref().status()
}

/// How long answers took.
pub(crate) struct Latencies<'a>(pub(crate) &'a [Asked]);

impl std::fmt::Display for Latencies<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut took: Vec<_> = self.0.iter().map(|asked| asked.answered - asked.sent).collect();
        took.sort();
        let at = |part: usize| took[(took.len() - 1) * part / 1_000];
        let (median, p99, most) = (at(500), at(990), at(1_000));
        write!(f, "{} asks took {median:?}, {p99:?} (p99), {most:?} at most", took.len())
    }
}
