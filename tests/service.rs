//! The services without a server: a deadline that has passed, and a stream that is never idle.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
use std::{future::poll_fn, pin::Pin, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_core::Stream as _;
use http_body_util::Full;
use prost::Message as _;
use retryd::admin::metrics::Metrics;
use retryd::budget::Memory;
use retryd::clock::{Clock, Dice, Now};
use retryd::decider::Decider;
use retryd::policy::Policies;
use retryd::server::Deadline;
use retryd::service::Retryd;
use retryd::wire::codec::ContractCodec;
use retryd::wire::pb::{self, retry_service_server::RetryService};
use tokio_util::sync::CancellationToken;
use tonic::{Code, Request, Status, Streaming, codec::Codec as _};
use tonic_types::StatusExt as _;

const START: Now = Now { monotonic_ms: 1_000, unix_ms: 0 };

struct Service {
    retryd: Retryd<Memory>,
    clock: Clock,
    stopping: CancellationToken,
}

fn service() -> Service {
    let policies = Policies::embedded();
    let (store, metrics) = (Memory::new(policies.budgets()), Arc::new(Metrics::new()));
    let (clock, stopping) = (Clock::standing_at(START), CancellationToken::new());
    let decider = Decider::new(policies, store, clock.clone(), Dice::fair(), Arc::clone(&metrics));
    Service { retryd: Retryd::new(Arc::new(decider), metrics, stopping.clone()), clock, stopping }
}

impl Service {
    fn available(&self) -> u32 {
        let asked = pb::GetBudgetRequest { tenant: "t".to_owned(), operation: "op".to_owned() };
        self.retryd.get_budget(&asked).unwrap().budgets.first().unwrap().retries_available
    }
}

fn context() -> pb::RetryContext {
    pb::RetryContext {
        tenant: "t".to_owned(),
        operation: "op".to_owned(),
        attempts_made: 1,
        body_replayable: true,
        failure: Some(pb::Failure { category: 3, status: None }),
        ..Default::default()
    }
}

fn with_deadline<T>(message: T, timeout_ms: u64) -> Request<T> {
    let mut request = Request::new(message);
    let deadline = Deadline::after(Duration::from_millis(timeout_ms), START);
    request.extensions_mut().insert(deadline);
    request
}

fn questions(count: usize) -> Streaming<pb::RetryContext> {
    let message = context().encode_to_vec();
    let mut framed = vec![0];
    framed.extend_from_slice(&u32::try_from(message.len()).unwrap().to_be_bytes());
    framed.extend_from_slice(&message);
    let body = Full::new(Bytes::from(framed.repeat(count)));
    let mut codec = ContractCodec::<pb::StreamedDecision, pb::RetryContext>::default();
    Streaming::new_request(codec.decoder(), body, None, None)
}

#[tokio::test]
async fn a_question_whose_deadline_has_passed_is_dropped_uncharged() {
    let service = service();
    service.clock.advance(Duration::from_millis(20));
    let in_time = decide(&service, with_deadline(context(), 20)).await.unwrap();
    assert_eq!(in_time.verdict(), pb::Verdict::Retry);
    assert_eq!(service.available(), 9);
    let late = decide(&service, with_deadline(context(), 19)).await.unwrap_err();
    assert_eq!(late.code(), Code::DeadlineExceeded);
    assert_eq!(service.available(), 9);
}

#[tokio::test]
async fn a_stream_stops_deciding_at_its_deadline() {
    let service = service();
    let mut answers = service.open(with_deadline(questions(100), 20)).await;
    assert!(next(&mut answers).await.unwrap().is_ok());
    service.clock.advance(Duration::from_millis(21));
    let late = next(&mut answers).await.unwrap().unwrap_err();
    assert_eq!(late.code(), Code::DeadlineExceeded);
    assert!(next(&mut answers).await.is_none());
    assert_eq!(service.available(), 9);
}

#[tokio::test]
async fn a_stream_that_is_never_idle_ends_when_retryd_stops() {
    let service = service();
    let mut answers = service.open(Request::new(questions(1_000))).await;
    for _ in 0..300 {
        assert!(next(&mut answers).await.unwrap().is_ok());
    }
    service.stopping.cancel();
    let stopped = next(&mut answers).await.unwrap().unwrap_err();
    assert_eq!(stopped.code(), Code::Unavailable);
    assert_eq!(stopped.get_error_details().error_info().unwrap().reason, "STOPPING");
    assert_eq!(stopped.metadata().get("grpc-retry-pushback-ms").unwrap(), "-1");
    assert!(next(&mut answers).await.is_none());
}

async fn decide(
    service: &Service,
    request: Request<pb::RetryContext>,
) -> Result<pb::Decision, Status> {
    // As the server calls it, and not the method of the same name.
    RetryService::decide(&service.retryd, request).await.map(tonic::Response::into_inner)
}

type Answers = Pin<Box<retryd::service::DecideStream<Memory>>>;

async fn next(answers: &mut Answers) -> Option<Result<pb::StreamedDecision, Status>> {
    poll_fn(|cx| answers.as_mut().poll_next(cx)).await
}

impl Service {
    async fn open(&self, request: Request<Streaming<pb::RetryContext>>) -> Answers {
        Box::pin(self.retryd.decide_stream(request).await.unwrap().into_inner())
    }
}
