//! One scripted call through an adapter, and what was seen of it.
use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, combinators::UnsyncBoxBody};
use hyper_util::rt::TokioExecutor;
use retryd_client::{BoxError, Call, Client, Operation, Settings};
use serde::Deserialize;
use serde_json::Value;
use tonic::transport::Endpoint;
use tower::{ServiceBuilder, ServiceExt as _};

use crate::testbed::{Play, Testbed};

/// How a call is made.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Terms {
    timeout_ms: Option<u64>,
    attempt_timeout_ms: Option<u64>,
    ask_timeout_ms: Option<u64>,
    /// Without a name, the layer's own.
    #[serde(default = "charge")]
    operation: Option<String>,
    #[serde(default)]
    declared: bool,
    key_header: Option<String>,
    key: Option<String>,
    body: Option<String>,
    #[serde(default)]
    draining: bool,
    pub(crate) cancel_after_ms: Option<u64>,
    own_rules_ms: Option<u64>,
    #[serde(default)]
    lease: u32,
    fallback: Option<bool>,
}

impl Default for Terms {
    fn default() -> Terms {
        serde_json::from_str("{}").unwrap()
    }
}

fn charge() -> Option<String> {
    Some("payments.v1.Payments/Charge".into())
}

/// How a call ended for the application.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Ending {
    Ok,
    Grpc(i32),
    Http(u16),
    /// Without an answer, or with half of one; or given up.
    Error,
}

/// What was seen.
pub(crate) struct Seen {
    pub(crate) ending: Ending,
    pub(crate) attempts: usize,
    pub(crate) took: Duration,
    pub(crate) play: Play,
}

/// Makes the call named `name` over `adapter`, and closes the client. It is given up only after so
/// many `decisions`.
pub(crate) async fn play(
    name: &str,
    adapter: &str,
    retryd: &str,
    target: &str,
    terms: &Terms,
    script: &Value,
    decisions: usize,
) -> Seen {
    let client = client(name, retryd, terms);
    if 0 < terms.lease {
        let operation = terms.operation.as_deref().unwrap();
        while client.leased(name, operation) < terms.lease {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    if terms.draining {
        client.drain();
    }
    let attempts = Arc::new(AtomicUsize::new(0));
    let started = Instant::now();
    let deadline = terms.timeout_ms.map(|timeout| started + Duration::from_millis(timeout));
    let call = Call { operation: terms.operation.clone(), deadline, ..Call::default() };
    let headers = headers(name, script, terms);
    let call = async {
        match adapter {
            "grpc" => grpc(&client, target, terms, call, &headers, &attempts).await,
            "http" => http(&client, target, terms, call, &headers, &attempts).await,
            other => panic!("no adapter `{other}`"),
        }
    };
    let ending = match terms.cancel_after_ms.map(Duration::from_millis) {
        Some(patience) => tokio::select! {
            ending = call => ending,
            () = given_up(name, decisions, patience) => Ending::Error,
        },
        None => call.await,
    };
    let took = started.elapsed();
    client.close().await;
    let play = Testbed::get().play(name).await;
    Seen { ending, attempts: attempts.load(SeqCst), took, play }
}

/// Ends so long after so many Decisions were seen.
async fn given_up(name: &str, decisions: usize, patience: Duration) {
    let seen = |play: Play| play.questions.iter().filter(|it| it.decision.is_object()).count();
    while seen(Testbed::get().play(name).await) < decisions {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    tokio::time::sleep(patience).await;
}

fn client(name: &str, retryd: &str, terms: &Terms) -> Client {
    // Where retryd answers, a busy machine changes nothing.
    let default = (retryd == "asked").then_some(5000);
    let ask_timeout = terms.ask_timeout_ms.or(default).map(Duration::from_millis);
    let operation = Operation {
        declared: terms.declared,
        key_header: terms.key_header.clone(),
        lease: terms.lease,
    };
    let defaults = Settings::new(&Testbed::get().retryd[retryd], name);
    let settings = Settings {
        ask_timeout: ask_timeout.unwrap_or(defaults.ask_timeout),
        attempt_timeout: terms.attempt_timeout_ms.map(Duration::from_millis),
        fallback: terms.fallback.unwrap_or(true),
        operations: terms.operation.iter().map(|name| (name.clone(), operation.clone())).collect(),
        own_rules: terms.own_rules_ms.map(|wait| -> retryd_client::OwnRules {
            Arc::new(move |_, _| Some(Duration::from_millis(wait)))
        }),
        ..defaults
    };
    Client::new(settings).unwrap()
}

fn headers(name: &str, script: &Value, terms: &Terms) -> Vec<(&'static str, String)> {
    let mut headers = vec![("x-play", name.to_owned())];
    if script.as_array().is_some_and(|steps| !steps.is_empty()) {
        headers.push(("x-script", script.to_string()));
    }
    headers.extend(terms.key.clone().map(|key| ("idempotency-key", key)));
    headers
}

async fn grpc(
    client: &Client,
    target: &str,
    terms: &Terms,
    call: Call,
    headers: &[(&'static str, String)],
    attempts: &Arc<AtomicUsize>,
) -> Ending {
    let address = &Testbed::get().grpc[target];
    let channel = Endpoint::from_shared(format!("http://{address}")).unwrap().connect_lazy();
    let attempts = Arc::clone(attempts);
    let service = ServiceBuilder::new()
        .layer(client.layer())
        .map_request(move |request: http::Request<tonic::body::Body>| {
            attempts.fetch_add(1, SeqCst);
            request
        })
        .service(channel);
    let mut grpc = tonic::client::Grpc::new(service);
    let mut request = tonic::Request::new("hello".to_owned());
    for (name, value) in headers {
        request.metadata_mut().insert(*name, value.parse().unwrap());
    }
    // tonic's way to tell it; the other way is the HTTP adapter's.
    if let Some(timeout) = terms.timeout_ms {
        request.set_timeout(Duration::from_millis(timeout));
    }
    request.extensions_mut().insert(Call { deadline: None, ..call });
    grpc.ready().await.unwrap();
    let codec = tonic_prost::ProstCodec::<String, String>::default();
    let path = http::uri::PathAndQuery::from_static("/payments.v1.Payments/Charge");
    match grpc.unary(request, path, codec).await {
        Ok(answer) => {
            assert_eq!(answer.into_inner(), "done");
            Ending::Ok
        }
        Err(status) => Ending::Grpc(status.code().into()),
    }
}

async fn http(
    client: &Client,
    target: &str,
    terms: &Terms,
    call: Call,
    headers: &[(&'static str, String)],
    attempts: &Arc<AtomicUsize>,
) -> Ending {
    let attempts = Arc::clone(attempts);
    let service = ServiceBuilder::new()
        .layer(client.layer())
        .map_request(move |request: http::Request<UnsyncBoxBody<Bytes, Infallible>>| {
            attempts.fetch_add(1, SeqCst);
            request
        })
        .service(hyper_util::client::legacy::Client::builder(TokioExecutor::new()).build_http());
    let body = match terms.body.as_deref() {
        None | Some("buffer") => Full::new(Bytes::from("hello")).boxed_unsync(),
        Some("stream") => OneWay::new("hello").boxed_unsync(),
        Some(other) => panic!("no body `{other}`"),
    };
    let mut request = http::Request::post(format!("{}/payments/4711", Testbed::get().http[target]));
    for (name, value) in headers {
        request = request.header(*name, value);
    }
    let request = request.extension(call).body(body).unwrap();
    match answer(service.oneshot(request).await).await {
        Ok((200, body)) => {
            assert_eq!(body, "done");
            Ending::Ok
        }
        Ok((status, _)) => Ending::Http(status),
        Err(_) => Ending::Error,
    }
}

async fn answer<B>(response: Result<http::Response<B>, BoxError>) -> Result<(u16, Bytes), BoxError>
where
    B: http_body::Body<Data = Bytes>,
    BoxError: From<B::Error>,
{
    let response = response?;
    let status = response.status().as_u16();
    Ok((status, response.into_body().collect().await?.to_bytes()))
}

impl OneWay {
    pub(crate) fn new(bytes: impl Into<Bytes>) -> OneWay {
        OneWay { begun: false, rest: Some(bytes.into()) }
    }
}

/// A body whose bytes are not there at once.
pub(crate) struct OneWay {
    begun: bool,
    rest: Option<Bytes>,
}

impl http_body::Body for OneWay {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, Infallible>>> {
        if !std::mem::replace(&mut self.begun, true) {
            cx.waker().wake_by_ref();
            return std::task::Poll::Pending;
        }
        std::task::Poll::Ready(self.rest.take().map(|bytes| Ok(http_body::Frame::data(bytes))))
    }
}
