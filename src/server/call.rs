//! One call: from the head of a request to the head of its answer.
use std::{
    convert::Infallible,
    future::{Future, Ready, ready},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::{HeaderValue, Method, Request, Response, StatusCode, header::CONTENT_TYPE};
use hyper::body::Incoming;
use tokio::time::{Sleep, sleep};
use tokio_util::sync::CancellationToken;
use tonic::{Status, body::Body, service::Routes};
use tower::Service;

use super::{
    answer::Answer,
    connection::ConnectInfo,
    deadline::{self, Deadline},
    endings,
};
use crate::{
    admin::metrics::{Metrics, Refused},
    clock::Clock,
};

/// What all calls of one connection share. Who holds it is in flight.
pub(super) struct Origin {
    pub(super) info: ConnectInfo,
    pub(super) request_max: Duration,
    pub(super) clock: Clock,
    pub(super) metrics: Arc<Metrics>,
    /// Cancelled when streams of this connection shall end.
    pub(super) leaving: CancellationToken,
}

/// Takes the calls of one connection.
pub(super) struct Calls {
    pub(super) routes: Routes,
    pub(super) origin: Arc<Origin>,
}

/// The only paths whose endings are retryd's own.
const OURS: &str = "/retryd.v1.";

impl hyper::service::Service<Request<Incoming>> for Calls {
    type Response = Response<Answer>;
    type Error = Infallible;
    type Future = Call;

    fn call(&self, request: Request<Incoming>) -> Call {
        let origin = Arc::clone(&self.origin);
        if let Some(refused) = not_grpc(&request) {
            let mut response = Response::new(Answer::empty(origin));
            *response.status_mut() = refused;
            return Call::Refused(ready(response));
        }
        let timeout = deadline::timeout(request.headers());
        if timeout == Some(Duration::ZERO) {
            origin.metrics.deadlines_exceeded.inc();
            return Call::Refused(ready(ended_by(endings::deadline_exceeded(), origin)));
        }
        let deadline = timeout.map(|timeout| Deadline::after(timeout, origin.clock.now()));
        let is_ours = request.uri().path().starts_with(OURS);

        let mut request = request.map(Body::new);
        request.extensions_mut().insert(origin.info);
        if let Some(deadline) = deadline {
            request.extensions_mut().insert(deadline);
        }
        let answer = self.routes.clone().call(request);
        Call::Routed(Routed { answer, origin, is_ours, timeout, deadline, alarm: None })
    }
}

/// The future of an answer's head.
pub(super) enum Call {
    Refused(Ready<Response<Answer>>),
    Routed(Routed),
}

pub(super) struct Routed {
    answer: <Routes as Service<Request<Body>>>::Future,
    origin: Arc<Origin>,
    is_ours: bool,
    timeout: Option<Duration>,
    deadline: Option<Deadline>,
    // Made when the call waits for the first time. Most calls never wait.
    alarm: Option<Pin<Box<Sleep>>>,
}

impl Future for Call {
    type Output = Result<Response<Answer>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut *self {
            Call::Refused(response) => Pin::new(response).poll(cx).map(Ok),
            Call::Routed(routed) => routed.poll(cx).map(Ok),
        }
    }
}

impl Routed {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Response<Answer>> {
        let answer = &mut self.answer;
        match catch_unwind(AssertUnwindSafe(|| Pin::new(answer).poll(cx))) {
            Ok(Poll::Ready(Ok(response))) => Poll::Ready(self.answered(response)),
            Ok(Poll::Pending) => self.poll_alarm(cx),
            Err(_) => {
                self.origin.metrics.panics.inc();
                Poll::Ready(ended_by(endings::panicked(), Arc::clone(&self.origin)))
            }
        }
    }

    fn answered(&self, response: Response<Body>) -> Response<Answer> {
        let origin = Arc::clone(&self.origin);
        if self.is_ours && endings::is_too_large(response.headers()) {
            origin.metrics.refused(Refused::MessageTooLarge);
            return ended_by(endings::too_large(response.headers()), origin);
        }
        if self.is_ours && endings::is_not_protobuf(response.headers()) {
            origin.metrics.refused(Refused::NotProtobuf);
        }
        response.map(|body| Answer::of(body, origin, self.is_ours, self.deadline))
    }

    /// The call waits: for its request, or for something that its service does.
    fn poll_alarm(&mut self, cx: &mut Context<'_>) -> Poll<Response<Answer>> {
        let cap = self.origin.request_max;
        let timeout = self.timeout.filter(|timeout| *timeout < cap);
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(sleep(timeout.unwrap_or(cap))));
        alarm.as_mut().poll(cx).map(|()| {
            self.origin.metrics.deadlines_exceeded.inc();
            let ending = match timeout {
                Some(_) => endings::deadline_exceeded(),
                None => endings::request_incomplete(),
            };
            ended_by(ending, Arc::clone(&self.origin))
        })
    }
}

fn ended_by(status: Status, origin: Arc<Origin>) -> Response<Answer> {
    status.into_http::<()>().map(|()| Answer::empty(origin))
}

/// The HTTP status for a request that is not gRPC, which tonic would take for gRPC. That it is 415
/// for another media type says gRPC over HTTP/2; 405 for another method says RFC 9110 §15.5.6.
fn not_grpc<B>(request: &Request<B>) -> Option<StatusCode> {
    if request.method() != Method::POST {
        return Some(StatusCode::METHOD_NOT_ALLOWED);
    }
    let is_grpc = request.headers().get(CONTENT_TYPE).is_some_and(is_grpc);
    (!is_grpc).then_some(StatusCode::UNSUPPORTED_MEDIA_TYPE)
}

fn is_grpc(content_type: &HeaderValue) -> bool {
    let media_type = content_type.as_bytes().split(|byte| *byte == b';').next();
    let media_type = media_type.unwrap_or_default().trim_ascii();
    media_type.eq_ignore_ascii_case(b"application/grpc")
        || media_type.eq_ignore_ascii_case(b"application/grpc+proto")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_types() {
        let cases = [
            ("application/grpc", true),
            ("application/grpc+proto", true),
            ("application/grpc; charset=utf-8", true),
            ("Application/GRPC", true),
            ("application/grpc-web", false),
            ("application/grpc+json", false),
            ("application/json", false),
            ("", false),
        ];
        for (text, expected) in cases {
            assert_eq!(is_grpc(&HeaderValue::from_static(text)), expected, "{text}");
        }
    }
}
