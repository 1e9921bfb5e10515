//! Calls Decide at a fixed rate until standard input ends: `caller [--wait-for-ready] ADDRESS RATE`. Prints `calling`
//! when it has had its first answer, and a tally at the end.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a program of a test may stop at what it does not expect, and reads the clock for itself"
)]
use std::{
    env,
    error::Error,
    io::Read as _,
    iter::successors,
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use retryd::wire::pb::{self, retry_service_client::RetryServiceClient};
use serde::Serialize;
use tokio::{sync::oneshot, task::JoinSet, time};
use tonic::{Request, Status, transport::Channel, transport::Endpoint};

const DEADLINE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(50);

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
    let count = calls.len();
    let failed: Vec<_> = calls.join_all().await.into_iter().filter_map(Result::err).collect();
    println!("{}", serde_json::json!({ "calls": count, "failed": failed }));
}

#[derive(Debug, Serialize)]
struct Failed {
    text: String,
    began_ms: u128,
    ended_ms: u128,
}

/// Asks once; and as long as nothing was sent, again. Other clients do so by themselves: at once when a
/// connection ends before the turn of the call has come, and after a while if they wait for ready.
async fn decide(channel: Channel, waits: bool) -> Result<(), Failed> {
    let began_ms = now_ms();
    let asked = async {
        loop {
            match RetryServiceClient::new(channel.clone()).decide(question()).await {
                Err(status) if is_unwritten(&status) => {}
                Err(status) if waits && has_no_connection(&status) => time::sleep(PAUSE).await,
                answer => return answer.map(drop),
            }
        }
    };
    let answer = time::timeout(DEADLINE, asked).await;
    let answer = answer.unwrap_or_else(|_| Err(Status::deadline_exceeded("no answer")));
    answer.map_err(|status| {
        let told: Vec<_> = causes(&status).map(ToString::to_string).collect();
        Failed { text: told.join(": "), began_ms, ended_ms: now_ms() }
    })
}

fn now_ms() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()
}

fn question() -> Request<pb::RetryContext> {
    let failure =
        pb::Failure { status: Some(pb::failure::Status::GrpcCode(8)), ..Default::default() };
    Request::new(pb::RetryContext {
        tenant: "rollout".into(),
        operation: "rust".into(),
        attempts_made: 1,
        body_replayable: true,
        failure: Some(failure),
        ..Default::default()
    })
}

/// hyper says this of requests only that it has not begun to write.
fn is_unwritten(status: &Status) -> bool {
    let is_canceled = hyper::Error::is_canceled;
    causes(status).any(|cause| cause.downcast_ref().is_some_and(is_canceled))
}

fn has_no_connection(status: &Status) -> bool {
    causes(status).any(|cause| cause.is::<tonic::ConnectError>())
}

fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    successors(Some(error), |&error| error.source())
}
