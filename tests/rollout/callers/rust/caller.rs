//! Calls Decide at a fixed rate until standard input ends: `caller [--wait-for-ready] ADDRESS RATE`. Prints `calling`
//! when it has had its first answer, and a tally at the end.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test's program may stop at what it does not expect")]
use std::{collections::BTreeMap, env, error::Error as _, io::Read as _, thread, time::Duration};

use retryd::wire::pb::{self, retry_service_client::RetryServiceClient};
use tokio::{sync::oneshot, task::JoinSet, time};
use tonic::{Request, Status, transport::Channel, transport::Endpoint};

const DEADLINE: Duration = Duration::from_secs(5);

#[tokio::main]
async fn main() {
    let mut arguments: Vec<_> = env::args().skip(1).collect();
    let rate: f64 = arguments.pop().expect("RATE").parse().expect("a number");
    let address = arguments.pop().expect("ADDRESS");
    let waits = arguments.iter().any(|option| option == "--wait-for-ready");
    let channel = Endpoint::from_shared(format!("http://{address}")).unwrap().connect_lazy();

    decide(channel.clone(), waits).await.expect("a first answer");
    println!("calling");
    let (ended, mut end) = oneshot::channel();
    thread::spawn(move || {
        std::io::stdin().read_to_end(&mut Vec::new()).ok();
        ended.send(()).ok();
    });
    let mut calls = JoinSet::new();
    let mut due = time::interval(Duration::from_secs_f64(1.0 / rate));
    loop {
        tokio::select! {
            _ = due.tick() => calls.spawn(decide(channel.clone(), waits)),
            _ = &mut end => break,
        };
    }
    let (count, mut failed) = (calls.len(), BTreeMap::<String, usize>::new());
    for status in calls.join_all().await.into_iter().filter_map(Result::err) {
        *failed.entry(format!("{:?}: {}", status.code(), status.message())).or_default() += 1;
    }
    println!("{}", serde_json::json!({ "calls": count, "failed": failed }));
}

async fn decide(channel: Channel, waits: bool) -> Result<(), Status> {
    let asked = async {
        loop {
            match RetryServiceClient::new(channel.clone()).decide(question()).await {
                // tonic cannot wait for ready, so this does: nothing was sent.
                Err(status) if waits && is_connect(&status) => time::sleep(Duration::from_millis(50)).await,
                answer => return answer.map(drop),
            }
        }
    };
    time::timeout(DEADLINE, asked).await.unwrap_or_else(|_| Err(Status::deadline_exceeded("no answer")))
}

fn question() -> Request<pb::RetryContext> {
    let failure = pb::Failure { status: Some(pb::failure::Status::GrpcCode(8)), ..Default::default() };
    Request::new(pb::RetryContext {
        tenant: "rollout".into(),
        operation: "rust".into(),
        attempts_made: 1,
        body_replayable: true,
        failure: Some(failure),
        ..Default::default()
    })
}

/// Whether no connection came about.
fn is_connect(status: &Status) -> bool {
    let mut source = status.source();
    while let Some(error) = source {
        if error.downcast_ref::<tonic::ConnectError>().is_some() {
            return true;
        }
        source = error.source();
    }
    false
}
