//! A store that answers, and refuses; and a budget that grants nothing without one.
use std::time::Duration;

use crate::scene::{POLICY, REPLICAS, Scene};
use crate::servers::{Flavour, Server};

const ALL: [usize; REPLICAS] = [0, 1, 2];

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_became_a_replica() {
    let server = Server::start(Flavour::Redis7);
    let master = Server::start(Flavour::Redis7);
    let mut scene = Scene::begin("readonly", [&server.url(); 3]).await;
    let () = server.ask(&["REPLICAOF", "127.0.0.1", &master.port.to_string()]);
    scene.lost(&ALL).await;
    let () = server.ask(&["REPLICAOF", "NO", "ONE"]);
    scene.found(&ALL).await;
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_is_full() {
    let server = Server::with(Flavour::Valkey8, &["--maxmemory-policy", "noeviction"]);
    let mut scene = Scene::begin("full", [&server.url(); 3]).await;
    let () = server.ask(&["CONFIG", "SET", "maxmemory", "1"]);
    scene.lost(&ALL).await;
    let () = server.ask(&["CONFIG", "SET", "maxmemory", "0"]);
    scene.found(&ALL).await;
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_that_denies_grants_what_was_earned_and_nothing_else() {
    let policy = POLICY.replace("scope: tenant,", "scope: tenant, on_store_loss: deny,");
    let mut server = Server::start(Flavour::Redis7);
    let mut scene = Scene::with_policy("deny", [&server.url(); 3], &policy).await;
    server.kill();
    scene.lost(&ALL).await;
    let lost_at = scene.load.now();
    scene.go_on(Duration::from_secs(4)).await;
    let until = scene.load.now();
    server.start_empty();
    scene.found(&ALL).await;
    let asked = scene.end().await;
    // What came in during the window before counts as well: by then it was spent or given away.
    let reports = |from: Duration, tenant| {
        let within = asked.iter().filter(move |asked| {
            asked.tenant == tenant && from <= asked.answered && asked.sent <= until
        });
        within.map(|asked| asked.requests).sum::<u64>()
    };
    for tenant in 0..3 {
        let within = |asked: &&_| {
            let asked: &crate::load::Asked = asked;
            asked.tenant == tenant && lost_at < asked.sent && asked.answered < until
        };
        let granted = asked.iter().filter(within).filter(|asked| asked.is_granted()).count();
        let before = lost_at.saturating_sub(Duration::from_secs(10));
        let earned = reports(before, tenant) * 20 / 100;
        assert!(granted as u64 <= earned, "{granted} of {earned}");
        let goes_on = reports(lost_at, tenant) * 20 / 100;
        assert!(goes_on / 2 <= granted as u64, "{granted} of {goes_on}");
    }
}
