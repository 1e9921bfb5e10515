//! The services without a server: a deadline that has passed, and streams, however their questions come.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
use std::{future::poll_fn, pin::Pin, sync::Arc, task::Poll, time::Duration};

use bytes::{Buf as _, Bytes};
use http_body::{Body as _, Frame};
use http_body_util::StreamBody;
use prost::Message as _;
use retryd::admin::metrics::Metrics;
use retryd::budget::Memory;
use retryd::clock::{Clock, Dice, Now};
use retryd::decider::Decider;
use retryd::policy::Policies;
use retryd::server::{Deadline, Peer};
use retryd::service::{DecideStream, Retryd};
use retryd::wire::codec;
use retryd::wire::pb::{self, retry_service_server::RetryService, streamed_decision::Outcome};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio_stream::{StreamExt as _, wrappers::UnboundedReceiverStream};
use tokio_util::sync::CancellationToken;
use tonic::{Code, Request, Status, body::Body};
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

fn question() -> Bytes {
    codec::framed(&context())
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
    let (feed, mut answers) = service.open(Some(20));
    feed.send(question()).unwrap();
    assert_eq!(answers.next().await, Part::Answers(1));
    service.clock.advance(Duration::from_millis(21));
    feed.send(question()).unwrap();
    assert_eq!(answers.ending().await.code(), Code::DeadlineExceeded);
    assert_eq!(service.available(), 9);
}

#[tokio::test]
async fn a_stream_that_is_never_idle_lets_others_run_and_ends_when_retryd_stops() {
    let service = service();
    let (feed, mut answers) = service.open(None);
    feed.send(question().repeat(1_000).into()).unwrap();
    assert_eq!(answers.next().await, Part::Answers(128));
    let polled = poll_fn(|cx| Poll::Ready(answers.0.as_mut().poll_frame(cx))).await;
    assert!(polled.is_pending(), "it goes on without a pause");
    assert_eq!(answers.next().await, Part::Answers(128));
    service.stopping.cancel();
    let stopped = answers.ending().await;
    assert_eq!(stopped.code(), Code::Unavailable);
    assert_eq!(stopped.get_error_details().error_info().unwrap().reason, "STOPPING");
    assert_eq!(stopped.metadata().get("grpc-retry-pushback-ms").unwrap(), "-1");
}

#[tokio::test]
async fn long_answers_leave_before_there_are_many() {
    let service = service();
    let (feed, mut answers) = service.open(None);
    let explained = codec::framed(&pb::RetryContext { explain: true, ..context() });
    feed.send(explained.repeat(100).into()).unwrap();
    let count = count(answers.frame().await.unwrap().into_data().unwrap());
    assert!((2..64).contains(&count), "{count} answers in one part");
}

#[tokio::test]
async fn questions_are_read_however_they_are_cut() {
    let two = [question(), question()].concat();
    for cut in 0..=two.len() {
        let service = service();
        let (feed, mut answers) = service.open(None);
        feed.send(Bytes::copy_from_slice(&two[..cut])).unwrap();
        feed.send(Bytes::copy_from_slice(&two[cut..])).unwrap();
        drop(feed);
        assert_eq!(answers.next().await, Part::Answers(2), "cut at {cut}");
        assert_eq!(answers.ending().await.code(), Code::Ok, "cut at {cut}");
        assert_eq!(service.available(), 8);
    }
    let service = service();
    let (feed, mut answers) = service.open(None);
    two.iter().for_each(|byte| feed.send(vec![*byte].into()).unwrap());
    assert_eq!(answers.next().await, Part::Answers(2));
}

#[tokio::test]
async fn what_is_no_question_ends_the_stream_after_the_answers_before_it() {
    let cut = question().slice(..question().len() - 1);
    let compressed = [&[1][..], &question()[1..]].concat().into();
    for (bytes, expected) in [(cut, Code::Internal), (compressed, Code::Internal)] {
        let service = service();
        let (feed, mut answers) = service.open(None);
        feed.send([question(), bytes].concat().into()).unwrap();
        drop(feed);
        assert_eq!(answers.next().await, Part::Answers(1));
        assert_eq!(answers.ending().await.code(), expected);
        assert_eq!(service.available(), 9);
    }
}

async fn decide(
    service: &Service,
    request: Request<pb::RetryContext>,
) -> Result<pb::Decision, Status> {
    // As the server calls it, and not the method of the same name.
    RetryService::decide(&service.retryd, request).await.map(tonic::Response::into_inner)
}

struct Answers(Pin<Box<DecideStream<Memory>>>);

#[derive(Debug, PartialEq)]
enum Part {
    Answers(usize),
    Ending(Code),
    Over,
}

impl Answers {
    async fn frame(&mut self) -> Option<Frame<Bytes>> {
        poll_fn(|cx| self.0.as_mut().poll_frame(cx)).await.map(Result::unwrap)
    }

    async fn next(&mut self) -> Part {
        let Some(frame) = self.frame().await else { return Part::Over };
        match frame.into_data() {
            Ok(data) => Part::Answers(count(data)),
            Err(frame) => Part::Ending(status(&frame).code()),
        }
    }

    /// How the stream ends, and that it does.
    async fn ending(&mut self) -> Status {
        let status = status(&self.frame().await.unwrap());
        assert_eq!(self.next().await, Part::Over);
        status
    }
}

fn count(mut answers: Bytes) -> usize {
    let mut count = 0;
    while answers.has_remaining() {
        assert_eq!(answers.get_u8(), 0);
        let length = answers.get_u32() as usize;
        let answer = pb::StreamedDecision::decode(answers.split_to(length)).unwrap();
        assert!(matches!(answer.outcome, Some(Outcome::Decision(_))), "{answer:?}");
        count += 1;
    }
    count
}

fn status(frame: &Frame<Bytes>) -> Status {
    Status::from_header_map(frame.trailers_ref().unwrap()).unwrap()
}

impl Service {
    fn open(&self, timeout_ms: Option<u64>) -> (UnboundedSender<Bytes>, Answers) {
        let (feed, fed) = unbounded_channel();
        let frames =
            UnboundedReceiverStream::new(fed).map(|bytes| Ok::<_, Status>(Frame::data(bytes)));
        let deadline = timeout_ms.map(|ms| Deadline::after(Duration::from_millis(ms), START));
        let questions = Body::new(StreamBody::new(frames));
        (
            feed,
            Answers(Box::pin(DecideStream::new(
                self.retryd.clone(),
                Peer::default(),
                deadline,
                questions,
            ))),
        )
    }
}
