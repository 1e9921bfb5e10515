//! What no scenario reaches, with services that need no network behind the layer.
use std::{
    collections::VecDeque,
    convert::Infallible,
    error::Error,
    fmt,
    net::TcpListener,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt as _, Full, combinators::UnsyncBoxBody};
use hyper_util::rt::TokioIo;
use retryd_client::{Begun, BoxError, Call, Client, Operation, Settings};
use serde_json::json;
use tower::{Layer as _, ServiceExt as _, service_fn};

use crate::{
    play::OneWay,
    testbed::{Play, Testbed},
};

type Body = UnsyncBoxBody<Bytes, Infallible>;
type Answer = Result<Response<Begun<Body>>, BoxError>;

#[tokio::test]
async fn a_stream_of_requests_passes_untouched() {
    let calls = Calls::start("rust-layer-stream", "asked");
    for body in [
        OneWay::new(message("one")).boxed_unsync(),
        whole([message("one"), message("two")].concat()),
    ] {
        let answer = calls.send(grpc_request("a.B/Upload", body), vec![unavailable(), ok()]).await;
        assert_eq!(answer.unwrap().headers()["grpc-status"], "14");
    }
    let Play { questions, usage, .. } = calls.close().await;
    assert!(questions.is_empty());
    assert_eq!(usage, json!({}), "a stream is no call of the kit");
}

#[tokio::test]
async fn a_method_named_as_a_stream_passes_untouched() {
    let calls = Calls::start("rust-layer-watch", "asked");
    let request = grpc_request("a.B/Watch", whole(message("one")));
    let answer = calls.send(request, vec![unavailable(), ok()]).await;
    assert_eq!(answer.unwrap().headers()["grpc-status"], "14");
    assert!(calls.close().await.questions.is_empty());
}

#[tokio::test]
async fn a_large_request_is_sent_once_and_whole() {
    let calls = Calls::start("rust-layer-large", "asked");
    let large = vec![b'x'; 4 * 1024 * 1024 + 1];
    let size = large.len();
    let answer = calls.send(http_request(whole(large)), vec![status(503), ok()]).await.unwrap();
    assert_eq!((answer.status(), calls.received()), (http::StatusCode::SERVICE_UNAVAILABLE, size));
    let questions = calls.close().await.questions;
    assert_eq!(questions[0].decision["reason"], "REASON_BODY_NOT_REPLAYABLE");
}

#[tokio::test]
async fn every_attempt_has_the_whole_request() {
    let calls = Calls::start("rust-layer-again", "asked");
    let answer =
        calls.send(http_request(whole("hello")), vec![status(503), status(503), ok()]).await;
    assert_eq!((answer.unwrap().status().as_u16(), calls.received()), (200, 3 * "hello".len()));
}

#[tokio::test]
async fn an_answer_is_handed_on_as_it_came() {
    let calls = Calls::start("rust-layer-answer", "asked");
    let frames = || {
        let trailers = HeaderMap::from_iter([(
            http::HeaderName::from_static("grpc-status"),
            HeaderValue::from_static("0"),
        )]);
        let frames =
            [Frame::data(message("a")), Frame::data(message("b")), Frame::trailers(trailers)];
        Response::new(Frames(frames.into()).boxed_unsync())
    };
    let request = grpc_request("a.B/Get", whole(message("one")));
    let answer = calls.send(request, vec![Ok(frames())]).await.unwrap();
    let collected = answer.into_body().collect().await.unwrap();
    assert_eq!(collected.trailers().unwrap()["grpc-status"], "0");
    assert_eq!(collected.to_bytes(), [message("a"), message("b")].concat());
}

#[tokio::test]
async fn an_error_is_handed_on_as_the_library_made_it() {
    let calls = Calls::start("rust-layer-error", "asked");
    let error =
        calls.send(http_request(whole("hello")), vec![Err(Strange.into())]).await.unwrap_err();
    assert!(error.is::<Strange>(), "{error:?}");
    let questions = calls.close().await.questions;
    assert_eq!(questions[0].decision["reason"], "REASON_PERMANENT_FAILURE", "not understood");
}

#[tokio::test]
async fn an_answer_that_is_none_of_the_protocols_is_a_failure() {
    let calls = Calls::start("rust-layer-odd", "asked");
    calls.send(http_request(whole("hello")), vec![status(600)]).await.unwrap();
    calls.send(grpc_request("a.B/Get", whole(message("one"))), vec![status(302)]).await.unwrap();
    let Play { questions, usage, .. } = calls.close().await;
    assert_eq!(
        questions[0].context["failure"],
        json!({"category": "FAILURE_CATEGORY_PROTOCOL_VIOLATION"})
    );
    assert_eq!(questions[1].context["failure"]["httpStatus"], 302);
    assert_eq!(usage, json!({"requests": "2"}));
}

#[tokio::test]
async fn who_gives_up_while_it_is_asked_gives_the_grant_back() {
    let calls = Calls::start("rust-layer-asked", "slow");
    let mut call = calls.send(http_request(whole("hello")), vec![status(503), ok()]);
    let asked = async {
        while Testbed::get().play("rust-layer-asked").await.questions.is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        _ = &mut call => panic!("retryd is slow"),
        () = asked => {}
    }
    drop(call);
    assert_eq!(calls.close().await.releases.len(), 1);
}

#[tokio::test]
async fn close_does_not_wait_for_a_connection_that_never_comes() {
    let connector = service_fn(|_: http::Uri| {
        std::future::pending::<Result<TokioIo<tokio::net::TcpStream>, std::io::Error>>()
    });
    let channel = tonic::transport::Endpoint::from_static("http://retryd:1")
        .connect_with_connector_lazy(connector);
    let client = Client::over(channel, Settings::new("retryd:1", "rust-layer-hangs")).unwrap();
    let service = service_fn(async |_: Request<Body>| ok());
    client.layer().layer(service).oneshot(http_request(whole("hello"))).await.unwrap();
    tokio::time::timeout(Duration::from_secs(30), client.close()).await.unwrap();
}

#[tokio::test]
async fn a_wait_ends_with_the_deadline() {
    let settings = Settings {
        own_rules: Some(Arc::new(|_, _| Some(Duration::from_secs(60)))),
        ..settings("rust-layer-deadline", "asked")
    };
    let calls = Calls::with(settings);
    let started = Instant::now();
    let deadline = started + Duration::from_secs(2);
    let mut request = http_request(whole("hello"));
    let call = Call { operation: Some("observed".into()), deadline: Some(deadline), tenant: None };
    request.extensions_mut().insert(call);
    let answer = calls.send(request, vec![status(503), ok()]).await.unwrap();
    assert_eq!(answer.status().as_u16(), 503);
    assert!(deadline <= Instant::now() && started.elapsed() < Duration::from_secs(30));
}

#[tokio::test]
async fn own_rules_repeat_no_body_that_is_gone() {
    let calls = Calls::with(Settings {
        own_rules: Some(Arc::new(|_, _| Some(Duration::ZERO))),
        ..settings("rust-layer-gone", "asked")
    });
    let mut request = http_request(OneWay::new("hello").boxed_unsync());
    request.extensions_mut().insert(Call { operation: Some("observed".into()), ..Call::default() });
    let answer = calls.send(request, vec![status(503), ok()]).await.unwrap();
    assert_eq!((answer.status().as_u16(), calls.received()), (503, "hello".len()));
}

#[tokio::test]
async fn a_caller_that_gives_up_gets_its_leased_retry_back() {
    // The wait of a leased retry is at most 100 ms, and given up at once: nothing polls it again.
    let calls = Calls::with(Settings {
        operations: [("POST closed".into(), Operation { lease: 3, ..Operation::default() })].into(),
        ..settings("rust-layer-lease", "asked")
    });
    let leased = || calls.client.leased("rust-layer-lease", "POST closed");
    while leased() < 3 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let mut request = http_request(whole("hello"));
    *request.uri_mut() = "http://closed:1".parse().unwrap();
    let mut call = calls.send(request, vec![Err(refused()), ok()]);
    assert!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    assert_eq!(leased(), 2, "spent before the wait");
    drop(call);
    assert_eq!(leased(), 3);
}

#[tokio::test]
async fn a_question_whose_connection_is_lost_was_asked_of_nobody() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || listener.incoming().for_each(drop));
    let settings = Settings {
        ask_timeout: Duration::from_secs(10),
        ..Settings::new(address, "rust-layer-lost")
    };
    let calls = Calls::with(settings);
    let answer = calls.send(http_request(whole("hello")), vec![Err(refused()), ok()]).await;
    assert_eq!(answer.unwrap().status().as_u16(), 200);
}

#[tokio::test]
async fn what_no_question_took_along_is_reported_on_time() {
    let calls = Calls::with(Settings {
        report_every: Duration::from_millis(100),
        ..settings("rust-layer-report", "asked")
    });
    calls.send(http_request(whole("hello")), vec![ok()]).await.unwrap();
    while Testbed::get().play("rust-layer-report").await.usage == json!({}) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let usage = calls.close().await.usage;
    assert_eq!(usage, json!({"requests": "1", "firstTrySuccesses": "1"}), "and only once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_calls_at_once_are_all_counted() {
    const CALLS: usize = 200;
    let calls = Arc::new(Calls::start("rust-layer-many", "asked"));
    let mut all = tokio::task::JoinSet::new();
    for _ in 0..CALLS {
        let calls = Arc::clone(&calls);
        all.spawn(async move {
            calls
                .send(http_request(whole("hello")), vec![status(503), ok()])
                .await
                .unwrap()
                .status()
        });
    }
    let answers = all.join_all().await;
    assert!(answers.iter().all(|status| status.as_u16() == 200));
    let Play { questions, usage, .. } = calls.close().await;
    assert_eq!(questions.len(), CALLS);
    let expected = json!({"requests": "200", "retriedSuccesses": "200", "retriedTransient": "200"});
    assert_eq!(usage, expected);
}

#[tokio::test]
async fn nothing_runs_on_after_the_last_clone() {
    let alive = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = alive();
    let calls = Calls::start("rust-layer-drop", "asked");
    calls.send(http_request(whole("hello")), vec![ok()]).await.unwrap();
    assert!(before < alive());
    drop(calls);
    while before < alive() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A client, and services that answer as they are told.
struct Calls {
    name: String,
    client: Client,
    received: Arc<AtomicUsize>,
}

impl Calls {
    fn start(name: &str, retryd: &str) -> Calls {
        Calls::with(settings(name, retryd))
    }

    fn with(settings: Settings) -> Calls {
        let name = settings.tenant.clone();
        let client = Client::new(settings).unwrap();
        Calls { name, client, received: Arc::default() }
    }

    /// Sends a request to a service that gives these answers, one for each attempt.
    fn send(
        &self,
        request: Request<Body>,
        answers: Vec<Result<Response<Body>, BoxError>>,
    ) -> Pin<Box<dyn Future<Output = Answer> + Send>> {
        let answers = Arc::new(Mutex::new(VecDeque::from(answers)));
        let received = Arc::clone(&self.received);
        let service = service_fn(move |request: Request<Body>| {
            let (answers, received) = (Arc::clone(&answers), Arc::clone(&received));
            async move {
                let bytes = request.into_body().collect().await.unwrap().to_bytes();
                received.fetch_add(bytes.len(), SeqCst);
                answers.lock().unwrap().pop_front().expect("one attempt too many")
            }
        });
        let layer = self.client.layer().streams(["a.B/Watch"]);
        Box::pin(layer.layer(service).oneshot(request))
    }

    /// Bytes of all attempts together.
    fn received(&self) -> usize {
        self.received.load(SeqCst)
    }

    async fn close(&self) -> Play {
        self.client.close().await;
        Testbed::get().play(&self.name).await
    }
}

fn settings(name: &str, retryd: &str) -> Settings {
    let declared = |name: &str| (name.to_owned(), Operation::declared());
    Settings {
        ask_timeout: Duration::from_secs(10),
        operations: ["POST faulty", "a.B/Upload", "a.B/Watch"].map(declared).into(),
        ..Settings::new(&Testbed::get().retryd[retryd], name)
    }
}

fn http_request(body: Body) -> Request<Body> {
    Request::post("http://faulty:1/payments/4711").body(body).unwrap()
}

fn grpc_request(method: &str, body: Body) -> Request<Body> {
    let request = Request::post(format!("http://faulty:1/{method}"));
    request.header("content-type", "application/grpc").body(body).unwrap()
}

fn whole(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).boxed_unsync()
}

/// A length-prefixed message.
fn message(text: &str) -> Bytes {
    let length = u32::try_from(text.len()).unwrap().to_be_bytes();
    [&[0], &length[..], text.as_bytes()].concat().into()
}

fn ok() -> Result<Response<Body>, BoxError> {
    Ok(Response::new(whole("done")))
}

fn status(code: u16) -> Result<Response<Body>, BoxError> {
    Ok(Response::builder().status(code).body(whole("")).unwrap())
}

fn unavailable() -> Result<Response<Body>, BoxError> {
    Ok(Response::builder().header("grpc-status", "14").body(whole("")).unwrap())
}

/// As tonic tells it.
fn refused() -> BoxError {
    let error = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
    tonic::ConnectError(error.into()).into()
}

/// An error that nobody knows.
#[derive(Debug)]
struct Strange;

impl fmt::Display for Strange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("connection refused")
    }
}

impl Error for Strange {}

/// A body of these frames.
struct Frames(VecDeque<Frame<Bytes>>);

impl http_body::Body for Frames {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.pop_front().map(Ok))
    }
}
