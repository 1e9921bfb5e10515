//! WatchBudget: the state now and after each change, for slow readers the newest, until the end.
use std::time::Duration;

use retryd::wire::pb::{WatchBudgetRequest, WatchBudgetResponse};
use tokio::time::{sleep, timeout};
use tonic::{Code, Request, Streaming};

use crate::support::{Process, SOON, context, policy_file, report};

const POLICY: &str = "version: 1
budgets: [{name: b, scope: tenant, ratio: {percent: 100, interval: 1h, min_retry_rate: {count: 0, interval: 1h}}}]
policies: [{name: all, budgets: [b]}]
";

/// With 1,000 retries for the tenant `t`, which nothing refills while a test runs, and some for another.
async fn started(policy: &str, arguments: &[&str]) -> Process {
    let process =
        Process::start(&[&["--policy", &policy_file(policy, POLICY)], arguments].concat());
    report(&process, "t", 1_000).await;
    report(&process, "another", 1_000).await;
    process
}

async fn watch(process: &Process) -> Streaming<WatchBudgetResponse> {
    let asked = WatchBudgetRequest { tenant: "t".to_owned(), operation: "op".to_owned() };
    process.budgets().await.watch_budget(asked).await.unwrap().into_inner()
}

async fn next(states: &mut Streaming<WatchBudgetResponse>) -> u32 {
    let state = timeout(SOON, states.message()).await.expect("no state in time");
    state.unwrap().expect("the stream goes on").budgets[0].retries_available
}

#[tokio::test]
async fn a_watcher_sees_the_state_now_and_each_change() {
    let process = started("watch.yaml", &[]).await;
    let mut states = watch(&process).await;
    assert_eq!(next(&mut states).await, 1_000);
    let mut client = process.client().await;
    for left in [999, 998] {
        client.decide(context("another")).await.unwrap();
        // Time for a few looks, none of which has anything to tell.
        sleep(Duration::from_millis(350)).await;
        client.decide(context("t")).await.unwrap();
        assert_eq!(next(&mut states).await, left);
    }
}

#[tokio::test]
async fn many_changes_make_few_messages() {
    let process = started("watch-fast.yaml", &[]).await;
    let mut states = watch(&process).await;
    let mut client = process.client().await;
    for _ in 0..1_000 {
        client.decide(context("t")).await.unwrap();
    }
    let (mut seen, mut messages) = (u32::MAX, 0);
    while seen != 0 {
        let newer = next(&mut states).await;
        assert!(newer < seen, "{newer} after {seen}");
        (seen, messages) = (newer, messages + 1);
    }
    assert!(messages < 500, "{messages}");
}

#[tokio::test]
async fn a_drain_ends_it() {
    let process = started("watch-drain.yaml", &["--drain-delay", "100ms"]).await;
    let mut states = watch(&process).await;
    assert_eq!(next(&mut states).await, 1_000);
    process.signal("TERM");
    let ended = timeout(SOON, states.message()).await.expect("no end in time").unwrap_err();
    assert_eq!(ended.code(), Code::Unavailable);
    assert_eq!(ended.metadata().get("grpc-retry-pushback-ms").unwrap(), "-1");
}

#[tokio::test]
async fn the_callers_deadline_ends_it() {
    let process = started("watch-deadline.yaml", &[]).await;
    let asked = WatchBudgetRequest { tenant: "t".to_owned(), operation: "op".to_owned() };
    let mut asked = Request::new(asked);
    // Only said to the server: this client itself would wait for ever.
    asked.metadata_mut().insert("grpc-timeout", "300m".parse().unwrap());
    let mut states = process.budgets().await.watch_budget(asked).await.unwrap().into_inner();
    assert_eq!(next(&mut states).await, 1_000);
    let ended = timeout(SOON, states.message()).await.expect("no end in time").unwrap_err();
    assert_eq!(ended.code(), Code::DeadlineExceeded);
}
