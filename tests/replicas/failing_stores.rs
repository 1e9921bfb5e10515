//! A store that dies, stands still, moves or lies about the time.
use std::{
    fs::File,
    io::Write as _,
    process::Command,
    time::{Duration, Instant},
};

use tempfile::TempDir;

use crate::load::{Load, Tenant};
use crate::proxy::{Proxy, Way};
use crate::scene::{MACHINE, POLICY, REPLICAS, Scene, replicas};
use crate::servers::{Cluster, Flavour, Guard, Moving, Sentinels, Server};
use crate::support::policy_file;

const ALL: [usize; REPLICAS] = [0, 1, 2];

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_is_killed_and_comes_back_empty() {
    let mut server = Server::start(Flavour::Redis7);
    let mut scene = Scene::begin("killed", [&server.url(); 3]).await;
    server.kill();
    scene.lost(&ALL).await;
    scene.go_on(ms(1_000)).await;
    server.start_empty();
    scene.found(&ALL).await;
    scene.end().await;
}

/// A pool that began full again each time would mint ten retries each time.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_forgets_everything_and_goes_on() {
    let server = Server::start(Flavour::Redis7);
    let scene = Scene::begin("forgets", [&server.url(); 3]).await;
    for _ in 0..5 {
        let () = server.ask(&["FLUSHALL"]);
        scene.go_on(ms(500)).await;
    }
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b48_a_store_that_stands_still_for_ten_seconds() {
    let server = Server::start(Flavour::Valkey8);
    let mut scene = Scene::begin("still", [&server.url(); 3]).await;
    let since = Instant::now();
    server.freeze();
    scene.lost(&ALL).await;
    scene.go_on(ms(10_000).saturating_sub(since.elapsed())).await;
    server.thaw();
    scene.found(&ALL).await;
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b45_a_store_that_forgets_the_script() {
    let server = Server::start(Flavour::Redis7);
    let scene = Scene::begin("flushed", [&server.url(); 3]).await;
    for _ in 0..5 {
        let () = server.ask(&["SCRIPT", "FLUSH"]);
        scene.go_on(ms(200)).await;
    }
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b45_another_master_takes_over() {
    let mut group = Sentinels::start(Flavour::Valkey8, Guard::Nobody);
    let mut scene = Scene::begin("failover", [&group.url(); 3]).await;
    group.fail_over();
    scene.found_after_loss(&ALL).await;
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b47_slots_move_under_load() {
    let cluster = Cluster::start(Flavour::Redis7);
    let scene = Scene::begin("moved", [&cluster.url(); 3]).await;
    let keys = cluster.keys();
    assert!(3 < keys.len(), "{keys:?}");
    for key in keys {
        let holds = |node: &&Server| node.keys().contains(&key);
        let (from, others): (Vec<_>, Vec<_>) = cluster.nodes.iter().partition(holds);
        let moving = Moving::begin(from[0], others[0], &key);
        moving.end();
    }
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b48_a_way_that_leads_nowhere() {
    let server = Server::start(Flavour::Redis7);
    let proxy = Proxy::to(server.port).await;
    let mut scene = Scene::begin("nowhere", [&proxy.url(); 3]).await;
    proxy.set(Way::Nowhere);
    scene.lost(&ALL).await;
    scene.go_on(ms(2_000)).await;
    proxy.set(Way::Open);
    scene.found(&ALL).await;
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_takes_two_hundred_milliseconds() {
    let server = Server::start(Flavour::Redis7);
    let proxy = Proxy::to(server.port).await;
    let mut scene = Scene::begin("slow", [&proxy.url(); 3]).await;
    proxy.set(Way::Slow(ms(100)));
    scene.lost(&ALL).await;
    scene.go_on(ms(2_000)).await;
    proxy.set(Way::Open);
    scene.found(&ALL).await;
    scene.end().await;
}

/// Exchanges of a hundred balances at once would need longer than a call has, every time.
#[tokio::test(flavor = "multi_thread")]
async fn a_way_that_is_too_narrow_for_many_exchanges_at_once() {
    let _beside_others = MACHINE.read().await;
    let server = Server::start(Flavour::Redis7);
    let proxy = Proxy::to(server.port).await;
    let policy = policy_file("replicas-narrow.yaml", POLICY);
    let replica = replicas(&policy, &[&proxy.url()]);
    proxy.set(Way::Narrow(400));
    let tenants = (0..200).map(|place| Tenant::new(&format!("tenant-{place}"), 1.0, 1));
    let load = Load::start(&replica, 4, tenants.collect()).await;
    tokio::time::sleep(ms(6_000)).await;
    load.end().await;
    let count = async |outcome| {
        let line = format!("retryd_store_exchanges_total{{outcome=\"{outcome}\"}}");
        replica[0].metric(&line).await
    };
    let (answered, unknown) = (count("answered").await, count("unknown").await);
    println!("{answered} answered, {unknown} unknown");
    assert!(unknown < answered, "{answered} answered, {unknown} unknown");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_goes_back_an_hour() {
    let clock = Clock::make();
    let server = Server::with_environment(Flavour::Redis7, clock.environment());
    let scene = Scene::begin("clock", [&server.url(); 3]).await;
    let seconds = || server.ask::<Vec<i64>>(&["TIME"])[0];
    let before = seconds();
    clock.set(-3_600);
    assert!(seconds() < before - 3_500);
    scene.go_on(ms(3_000)).await;
    clock.set(0);
    assert!(before <= seconds());
    scene.end().await;
}

/// What makes a process go by another clock.
struct Clock {
    folder: TempDir,
}

impl Clock {
    fn make() -> Clock {
        let clock = Clock { folder: tempfile::tempdir().unwrap() };
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/replicas/clock.c");
        let library = clock.path("clock.so");
        let made = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-o", &library, source])
            .status()
            .expect("cc; `tests/run tools` installs it");
        assert!(made.success());
        clock.set(0);
        clock
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    fn environment(&self) -> Vec<(String, String)> {
        let variables = [("LD_PRELOAD", "clock.so"), ("CLOCK_AHEAD_FILE", "ahead")];
        variables.map(|(name, file)| (name.to_owned(), self.path(file))).to_vec()
    }

    /// The process has the file mapped, so it stays the same one.
    fn set(&self, seconds: i64) {
        let mut file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(self.path("ahead"))
            .unwrap();
        file.write_all(&seconds.to_ne_bytes()).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_starts_at_once_and_the_store_comes_last() {
    let mut server = Server::start(Flavour::Redis7);
    server.kill();
    let mut scene = Scene::without_store("at-once", [&server.url(); 3], POLICY).await;
    scene.lost(&ALL).await;
    server.start_empty();
    scene.found(&ALL).await;
    scene.end().await;
}
