//! A replica that dies, stands still, is cut off or ends as it should.
use std::time::{Duration, Instant};

use retryd::wire::pb::{self, streamed_decision::Outcome};
use tokio::time::sleep;

use crate::proxy::{Proxy, Way};
use crate::scene::{MACHINE, Scene, replicas};
use crate::servers::{Flavour, Server};
use crate::support::{Process, SOON, context, policy_file};

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_is_killed() {
    let server = Server::start(Flavour::Redis7);
    let mut scene = Scene::begin("killed-replica", [&server.url(); 3]).await;
    scene.take_out(1);
    scene.replicas[1].signal("KILL");
    scene.go_on(Duration::from_secs(3)).await;
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_stands_still_for_longer_than_its_leases() {
    let server = Server::start(Flavour::Valkey8);
    let scene = Scene::begin("still-replica", [&server.url(); 3]).await;
    for _ in 0..2 {
        scene.replicas[2].signal("STOP");
        scene.go_on(Duration::from_secs(2)).await;
        scene.replicas[2].signal("CONT");
        scene.go_on(Duration::from_secs(1)).await;
    }
    scene.end().await;
}

/// A floor that is full again while a replica stands still, and no less than its leases.
const FLOOR: &str = "version: 1
budgets:
  - {name: mine, scope: tenant, ratio: {percent: 0, min_retry_rate: {count: 30, interval: 3s}}}
policies: [{name: all, budgets: [mine]}]
";

/// Asks so often at once, and tells how many were granted.
async fn burst(process: &Process, questions: usize) -> usize {
    let questions = tokio_stream::iter(vec![context("a"); questions]);
    let mut answers = process.client().await.decide_stream(questions).await.unwrap().into_inner();
    let mut granted = 0;
    while let Some(answer) = answers.message().await.unwrap() {
        let Some(Outcome::Decision(decision)) = answer.outcome else { panic!("{answer:?}") };
        granted += usize::from(decision.verdict() == pb::Verdict::Retry);
    }
    granted
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_is_not_spent_after_its_time() {
    let _alone = MACHINE.write().await;
    let server = Server::start(Flavour::Redis7);
    let url = server.url();
    let all = replicas(&policy_file("replicas-lease.yaml", FLOOR), &[url.as_str(); 3]);
    let [a, b, still] = &all[..] else { panic!("three") };
    // After that each has its part of the floor.
    for _ in 0..6 {
        tokio::join!(burst(a, 1), burst(b, 1), burst(still, 1));
        sleep(Duration::from_millis(500)).await;
    }
    still.signal("STOP");
    for _ in 0..5 {
        sleep(Duration::from_millis(500)).await;
        tokio::join!(burst(a, 1), burst(b, 1));
    }
    sleep(Duration::from_millis(500)).await;
    let start = Instant::now();
    // What comes while it stands still is the first that it sees.
    let woken = async {
        sleep(Duration::from_millis(20)).await;
        still.signal("CONT");
    };
    let (of_a, of_b, of_still, ()) =
        tokio::join!(burst(a, 40), burst(b, 40), burst(still, 40), woken);
    let bound = 30.0 * (1.0 + start.elapsed().as_secs_f64() / 3.0) + 3.0;
    let granted = of_a + of_b + of_still;
    println!("{of_a} + {of_b} + {of_still} = {granted} of {bound:.1}");
    assert!(20 <= of_a + of_b, "they have what the other one had");
    assert!(granted as f64 <= bound, "{granted} of {bound}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_is_cut_off() {
    let server = Server::start(Flavour::Redis7);
    let proxy = Proxy::to(server.port).await;
    let url = server.url();
    let mut scene = Scene::begin("cut-off", [&proxy.url(), &url, &url]).await;
    proxy.set(Way::Nowhere);
    scene.lost(&[0]).await;
    scene.go_on(Duration::from_secs(3)).await;
    proxy.set(Way::Open);
    scene.found(&[0]).await;
    scene.end().await;
}

/// Nothing but a success refills it.
const BUCKET: &str = "version: 1
budgets:
  - {name: all, scope: global, token_bucket: {capacity: 90, costs: {transient: 1, throttling: 1, timeout: 1}}}
policies: [{name: all, budgets: [all]}]
";

/// Asks until nothing more comes for a while.
async fn spend(process: &Process, most: u32) -> u32 {
    let mut client = process.client().await;
    let (mut granted, mut refused) = (0, 0);
    while refused < 20 && granted < most {
        let decision = client.decide(context("a")).await.unwrap();
        if decision.get_ref().verdict() == pb::Verdict::Retry {
            (granted, refused) = (granted + 1, 0);
        } else {
            refused += 1;
            sleep(Duration::from_millis(50)).await;
        }
    }
    granted
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_ends_gives_back_what_it_holds() {
    let _alone = MACHINE.write().await;
    let server = Server::start(Flavour::Redis7);
    let url = server.url();
    let mut both = replicas(&policy_file("replicas-farewell.yaml", BUCKET), &[&url, &url]);
    let first = spend(&both[0], 10).await;
    assert_eq!(first, 10);
    both[0].signal("TERM");
    assert!(both[0].exit(SOON).success());
    let second = spend(&both[1], 1_000).await;
    // Each may be one retry ahead of what pays for it.
    assert!((79..=82).contains(&second), "{second} of 80");
}
