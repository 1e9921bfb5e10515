//! The tower layer: what it makes of a request, and the loop over its attempts.
use std::{
    collections::{HashMap, HashSet},
    error::Error,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use http::{HeaderValue, Request, Response, header, request::Parts};
use http_body::Body;
use tokio::time::Instant;
use tower_layer::Layer;
use tower_service::Service;

use crate::{
    BoxError, Client,
    attempt::{self, Outcome, Protocol},
    body::{self, Begun, RequestBody},
    call::{Facts, Limit, Tracked},
    grpc_timeout, pb,
    throttle::Throttle,
    usage::Names,
};

/// Targets beyond these share one throttle: a host made of ids would fill the memory.
const TARGETS_MAX: usize = 1000;

/// What one call says about itself, as an extension of its request.
#[derive(Clone, Debug, Default)]
pub struct Call {
    /// Whose budget pays, in place of the client's tenant.
    pub tenant: Option<String>,
    /// What is called, in place of the gRPC method or `METHOD host`. Never with ids in it.
    pub operation: Option<String>,
    /// When the call must be over. A `grpc-timeout` of the request says so too; the earlier holds.
    pub deadline: Option<std::time::Instant>,
}

/// Made by [`Client::layer`].
#[derive(Clone, Debug)]
pub struct RetryLayer {
    client: Client,
    streams: Arc<HashSet<String>>,
    throttles: Arc<Mutex<HashMap<String, Arc<Throttle>>>>,
}

/// A service whose failed calls are brought to retryd.
#[derive(Clone, Debug)]
pub struct Retry<S> {
    inner: S,
    layer: RetryLayer,
}

impl RetryLayer {
    pub(crate) fn new(client: Client) -> RetryLayer {
        RetryLayer { client, streams: Arc::default(), throttles: Arc::default() }
    }

    /// Names the gRPC methods that answer with a stream, such as `inventory.v1.Inventory/Watch`.
    /// They pass untouched. No request tells them from the others, so one that is not named is
    /// held until its first message, and repeated if it fails before that.
    pub fn streams<M: Into<String>>(mut self, methods: impl IntoIterator<Item = M>) -> RetryLayer {
        self.streams = Arc::new(methods.into_iter().map(Into::into).collect());
        self
    }

    fn throttle(&self, target: &str) -> Arc<Throttle> {
        let mut all = self.throttles.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(throttle) = all.get(target) {
            return Arc::clone(throttle);
        }
        let target = if all.len() < TARGETS_MAX { target } else { "" };
        Arc::clone(all.entry(target.to_owned()).or_default())
    }
}

impl<S> Layer<S> for RetryLayer {
    type Service = Retry<S>;

    fn layer(&self, inner: S) -> Retry<S> {
        Retry { inner, layer: self.clone() }
    }
}

impl<S, B, R> Service<Request<B>> for Retry<S>
where
    S: Service<Request<B>, Response = Response<R>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
    B: RequestBody,
    B::Error: Send,
    R: Body + Unpin + Send + 'static,
    R::Data: Send,
    R::Error: Error + Send + Sync + 'static,
{
    type Response = Response<Begun<R>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    /// Each attempt waits until the service is ready for it, and it fails if the service does.
    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        Box::pin(run(self.inner.clone(), self.layer.clone(), request))
    }
}

async fn run<S, B, R>(
    mut service: S,
    layer: RetryLayer,
    request: Request<B>,
) -> Result<Response<Begun<R>>, BoxError>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Error: Into<BoxError>,
    B: RequestBody,
    R: Body + Unpin,
    R::Error: Error + 'static,
{
    let (parts, body) = request.into_parts();
    let protocol = protocol(&parts);
    let names = names(&parts, protocol, layer.client.settings().tenant.as_str());
    if protocol == Protocol::Grpc && layer.streams.contains(method(&parts)) {
        return pass(service, Request::from_parts(parts, body)).await;
    }
    let (bytes, mut body) = match (body::read(body).await, protocol) {
        (body::Request::Open(body), Protocol::Grpc) => {
            return pass(service, Request::from_parts(parts, body)).await;
        }
        (body::Request::Whole(bytes), Protocol::Grpc) if !is_one_message(&bytes) => {
            return pass(service, Request::from_parts(parts, B::whole(bytes))).await;
        }
        (body::Request::Whole(bytes), _) => (Some(bytes.clone()), B::whole(bytes)),
        (body::Request::Large(body) | body::Request::Open(body), _) => (None, body),
    };
    let facts = Facts {
        idempotency: idempotency(&parts, &layer.client, &names.operation),
        deadline: deadline(&parts),
        body_replayable: bytes.is_some(),
        names,
    };
    let throttle = layer.throttle(&target(&parts));
    let mut call = Tracked::start(layer.client, throttle, facts);
    loop {
        let limit = call.attempt();
        let request = Request::from_parts(with_timeout(parts.clone(), protocol, limit), body);
        let Outcome { failed, result } =
            attempt::send(&mut service, request, protocol, limit).await;
        let Some(failed) = failed else {
            call.succeeded();
            return result;
        };
        let again = call.failed(failed).await;
        // Without its bytes there is no second attempt, whoever grants one.
        let Some(bytes) = bytes.as_ref().filter(|_| again) else { return result };
        body = B::whole(bytes.clone());
    }
}

/// A stream: nothing of it is looked at.
async fn pass<S, B, R>(mut service: S, request: Request<B>) -> Result<Response<Begun<R>>, BoxError>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Error: Into<BoxError>,
    R: Body,
{
    Ok(attempt::exchange(&mut service, request).await?.map(Begun::untouched))
}

fn protocol(parts: &Parts) -> Protocol {
    let kind = parts.headers.get(header::CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    if kind.starts_with(b"application/grpc") { Protocol::Grpc } else { Protocol::Http }
}

/// A length-prefixed message and nothing after it.
fn is_one_message(bytes: &[u8]) -> bool {
    let Some(([_compressed, length @ ..], message)) = bytes.split_first_chunk::<5>() else {
        return false;
    };
    usize::try_from(u32::from_be_bytes(*length)) == Ok(message.len())
}

fn method(parts: &Parts) -> &str {
    parts.uri.path().trim_start_matches('/')
}

fn names(parts: &Parts, protocol: Protocol, tenant: &str) -> Names {
    let call = parts.extensions.get::<Call>();
    let own = |name: fn(&Call) -> Option<&String>| call.and_then(name).cloned();
    let operation = own(|call| call.operation.as_ref()).unwrap_or_else(|| match protocol {
        Protocol::Grpc => method(parts).to_owned(),
        Protocol::Http => {
            let target = target(parts);
            let host = target.parse::<http::uri::Authority>();
            format!("{} {}", parts.method, host.as_ref().map_or("", |it| it.host()))
        }
    });
    Names { tenant: own(|call| call.tenant.as_ref()).unwrap_or_else(|| tenant.into()), operation }
}

/// Host and port of the request; nothing within tonic, where a layer is around one channel.
fn target(parts: &Parts) -> String {
    let host = || parts.headers.get(header::HOST).and_then(|host| host.to_str().ok());
    parts.uri.authority().map(|it| it.as_str()).or_else(host).unwrap_or_default().to_owned()
}

fn deadline(parts: &Parts) -> Option<Instant> {
    let timeout = parts.headers.get(grpc_timeout::HEADER).and_then(grpc_timeout::parse);
    let by_header = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let own = parts.extensions.get::<Call>().and_then(|call| call.deadline);
    by_header.into_iter().chain(own.map(Instant::from_std)).min()
}

fn idempotency(parts: &Parts, client: &Client, operation: &str) -> pb::Idempotency {
    let set = client.operation(operation);
    let key = set.and_then(|set| set.key_header.as_deref());
    pb::Idempotency {
        declared: set.is_some_and(|set| set.declared),
        key_registered: key.is_some(),
        key_sent: key.is_some_and(|key| parts.headers.contains_key(key)),
    }
}

/// Tells the server of a gRPC call how long this attempt may take.
fn with_timeout(mut parts: Parts, protocol: Protocol, limit: Option<Limit>) -> Parts {
    if let (Protocol::Grpc, Some(Limit::Attempt(at) | Limit::Call(at))) = (protocol, limit) {
        let left: Duration = at.saturating_duration_since(Instant::now());
        parts.headers.insert(grpc_timeout::HEADER, grpc_timeout::format(left));
    }
    parts
}
