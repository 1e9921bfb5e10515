//! DecideStream: answers in order, a refused question answers itself only, broken bytes end it.
use std::time::Duration;

use futures_core::Stream;
use h2::RecvStream;
use retryd::wire::pb::{self, StreamedDecision, streamed_decision::Outcome};
use tokio::{sync::mpsc, task::JoinSet, time::timeout};
use tonic::{Code, Streaming};

use crate::support::{
    DECIDE_STREAM, Process, SOON, call, connection, context, encoded, framed, grpc,
};

/// A stream of questions that a test feeds.
struct Fed(mpsc::UnboundedReceiver<pb::RetryContext>);

impl Stream for Fed {
    type Item = pb::RetryContext;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<pb::RetryContext>> {
        self.0.poll_recv(cx)
    }
}

async fn open(
    process: &Process,
) -> (mpsc::UnboundedSender<pb::RetryContext>, Streaming<StreamedDecision>) {
    let (feed, fed) = mpsc::unbounded_channel();
    let answers = process.client().await.decide_stream(Fed(fed)).await.unwrap();
    (feed, answers.into_inner())
}

async fn next(answers: &mut Streaming<StreamedDecision>) -> Option<Outcome> {
    let answer = timeout(SOON, answers.message()).await.expect("no answer in time");
    answer.unwrap().map(|answer| answer.outcome.unwrap())
}

#[tokio::test]
async fn answers_come_in_the_order_of_the_questions() {
    let process = Process::start(&[]);
    let (feed, mut answers) = open(&process).await;
    for attempts_made in (1..=2_000).map(|place| place % 5) {
        feed.send(pb::RetryContext { attempts_made, ..context("order") }).unwrap();
    }
    drop(feed);
    for attempts_made in (1..=2_000).map(|place| place % 5) {
        match next(&mut answers).await.expect("an answer for each question") {
            Outcome::Decision(decision) => {
                assert_ne!(attempts_made, 0);
                let exhausted = decision.reason() == pb::Reason::AttemptsExhausted;
                assert_eq!(exhausted, 3 <= attempts_made, "{attempts_made}: {decision:?}");
            }
            Outcome::Refusal(refusal) => {
                assert_eq!(attempts_made, 0);
                assert_eq!(refusal.grpc_code, 3);
                assert_eq!(refusal.violations.len(), 1);
                assert_eq!(refusal.violations[0].field, "attempts_made");
            }
        }
    }
    assert_eq!(next(&mut answers).await, None);
}

#[tokio::test]
async fn each_answer_comes_before_the_next_question() {
    let process = Process::start(&[]);
    let (feed, mut answers) = open(&process).await;
    for _ in 0..5 {
        feed.send(context("one")).unwrap();
        assert!(matches!(next(&mut answers).await, Some(Outcome::Decision(_))));
    }
}

#[tokio::test]
async fn broken_bytes_end_the_stream_after_the_answers_before_them() {
    let process = Process::start(&[]);
    let body = [encoded(&context("t")), framed(&[0xff; 9]), encoded(&context("t"))].concat();
    let mut send = connection(process.calls).await;
    let ending = call(&mut send, grpc(DECIDE_STREAM), body).await.unwrap();
    assert_eq!(ending.code, Some(Code::InvalidArgument));
    assert_eq!(ending.reason.as_deref(), Some("NOT_PROTOBUF"));
    let length = u32::from_be_bytes(ending.body[1..5].try_into().unwrap()) as usize;
    assert_eq!(ending.body.len(), 5 + length, "one answer");
    process.answers().await;
}

#[tokio::test]
async fn no_encoding_is_one_and_every_other_is_refused() {
    let process = Process::start(&[]);
    let mut send = connection(process.calls).await;
    for (encoding, expected) in [("identity", Code::Ok), ("gzip", Code::Unimplemented)] {
        let open = grpc(DECIDE_STREAM).header("grpc-encoding", encoding);
        let ending = call(&mut send, open, encoded(&context("t"))).await.unwrap();
        assert_eq!(ending.code, Some(expected), "{encoding}");
        assert_eq!(ending.body.is_empty(), expected != Code::Ok, "{encoding}");
    }
}

/// Most clients send a frame for each message, and some faster than they are answered.
#[tokio::test]
async fn questions_may_come_as_fast_as_the_windows_let_them() {
    const STREAMS: usize = 8;
    const QUESTIONS: usize = 3_000;
    let process = Process::start(&[]);
    let send = connection(process.calls).await;
    let mut streams = JoinSet::new();
    for _ in 0..STREAMS {
        let mut ready = send.clone().ready().await.unwrap();
        let open = grpc(DECIDE_STREAM).body(()).unwrap();
        let (response, mut questions) = ready.send_request(open, false).unwrap();
        for place in 1..=QUESTIONS {
            let question = encoded(&context("fast")).into();
            questions.send_data(question, place == QUESTIONS).unwrap();
        }
        streams.spawn(async move { answers(response.await.unwrap().into_body()).await });
    }
    let counts = timeout(SOON * 3, streams.join_all()).await.expect("no end in time");
    assert_eq!(counts, [QUESTIONS; STREAMS]);
}

/// Reads to a good end, and counts the messages.
async fn answers(mut body: RecvStream) -> usize {
    let mut bytes = Vec::new();
    while let Some(chunk) = body.data().await {
        let chunk = chunk.unwrap();
        body.flow_control().release_capacity(chunk.len()).unwrap();
        bytes.extend_from_slice(&chunk);
    }
    assert_eq!(body.trailers().await.unwrap().unwrap()["grpc-status"], "0");
    let (mut rest, mut count) = (&bytes[..], 0);
    while let Some((&[_, a, b, c, d], message)) = rest.split_first_chunk() {
        rest = &message[u32::from_be_bytes([a, b, c, d]) as usize..];
        count += 1;
    }
    count
}

/// A client that asks and never reads: what waits is bounded, and the rest of the questions is
/// neither read nor decided.
#[tokio::test]
async fn a_client_that_does_not_read_costs_little() {
    let process = Process::start(&[]);
    let before = process.resident_bytes();
    let (feed, answers) = open(&process).await;
    let question = pb::RetryContext { explain: true, ..context("slow") };
    for _ in 0..100_000 {
        feed.send(question.clone()).unwrap();
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let grown = process.resident_bytes().saturating_sub(before);
    assert!(grown < 16 << 20, "grew by {grown} bytes");
    let decided = process.metric("retryd_budget_denials_total{budget=\"per-tenant\"}").await;
    assert!(decided < 50_000, "{decided} questions were decided, and nobody reads the answers");
    process.answers().await;
    drop(answers);
}

#[tokio::test]
async fn a_stream_ends_with_its_own_deadline() {
    let process = Process::start(&[]);
    let mut send = connection(process.calls).await;
    let open = grpc(DECIDE_STREAM).header("grpc-timeout", "300m");
    let mut ready = send.clone().ready().await.unwrap();
    let (response, _questions) = ready.send_request(open.body(()).unwrap(), false).unwrap();
    let mut body = timeout(SOON, response).await.unwrap().unwrap().into_body();
    assert!(timeout(SOON, body.data()).await.unwrap().is_none());
    let trailers = body.trailers().await.unwrap().unwrap();
    assert_eq!(trailers["grpc-status"], "4");
    let ending = call(&mut send, grpc(DECIDE_STREAM), encoded(&context("t"))).await.unwrap();
    assert_eq!(ending.code, Some(Code::Ok), "the connection lives on");
}
