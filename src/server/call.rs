//! One call: from the head of a request to the head of its answer.
use std::{
    convert::Infallible,
    future::{Future, Ready, ready},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::Incoming;
use tokio::time::{Sleep, sleep};
use tonic::{Code, Status, body::Body};

use super::{
    answer::Answer,
    at_once::{About, Found, Reading},
    deadline::{self, Deadline},
    endings, lanes,
    limits::GRACE,
    not_grpc::not_grpc,
    origin::{Origin, RouteFuture},
    slots::Slot,
    timed::Timed,
};
use crate::admin::{lanes::Lane, metrics::Refused};

/// Takes the calls of one connection.
pub(super) struct Calls(pub(super) Arc<Origin>);

/// The only paths whose endings are retryd's own.
const OURS: &str = "/retryd.v1.";

impl hyper::service::Service<Request<Incoming>> for Calls {
    type Response = Response<Answer>;
    type Error = Infallible;
    type Future = Call;

    fn call(&self, request: Request<Incoming>) -> Call {
        let origin = Arc::clone(&self.0);
        if let Some(refused) = not_grpc(&request) {
            let mut response = Response::new(Answer::empty(origin));
            *response.status_mut() = refused;
            return Call::Refused(ready(response));
        }
        let timed = Timed::begin(&request, &origin);
        let timeout = deadline::timeout(request.headers());
        if timeout == Some(Duration::ZERO) {
            origin.metrics.deadlines_exceeded.inc();
            timed.end(Code::DeadlineExceeded, &origin);
            return Call::Refused(ready(Answer::ending(endings::deadline_exceeded(), origin)));
        }
        let deadline = timeout.map(|timeout| Deadline::since(timed.began(), timeout));
        let is_ours = request.uri().path().starts_with(OURS);
        let is_at_once = origin.served.at_once.as_ref().is_some_and(|it| it.takes(&request));
        let lane = if is_at_once { Lane::Calls } else { lanes::lane_of(request.uri().path()) };
        let slot = match lanes::is_long(lane).then(|| origin.take_place(lane)).transpose() {
            Ok(slot) => slot,
            Err(overloaded) => {
                timed.end(overloaded.code(), &origin);
                return Call::Refused(ready(Answer::ending(overloaded, origin)));
            }
        };
        let way = if is_at_once {
            Way::AtOnce(Reading::of(request))
        } else {
            Way::Routed(origin.route(request.map(Body::new), deadline, timed.span()))
        };
        Call::Begun(Begun {
            way,
            origin,
            timed: Some(timed),
            is_ours,
            lane,
            slot,
            grace: None,
            timeout,
            deadline,
            alarm: None,
        })
    }
}

/// The future of an answer's head.
#[expect(clippy::large_enum_variant, reason = "most calls are the large one")]
pub(super) enum Call {
    Refused(Ready<Response<Answer>>),
    Begun(Begun),
}

pub(super) struct Begun {
    way: Way,
    origin: Arc<Origin>,
    /// Until the call is answered.
    timed: Option<Timed>,
    is_ours: bool,
    lane: Lane,
    // Taken when the call waits for the first time. Most calls never wait.
    slot: Option<Slot>,
    // Made when there is no place.
    grace: Option<Pin<Box<Sleep>>>,
    timeout: Option<Duration>,
    deadline: Option<Deadline>,
    // Made when the call waits for the first time. Most calls never wait.
    alarm: Option<Pin<Box<Sleep>>>,
}

/// How a call is answered.
enum Way {
    AtOnce(Reading),
    Routed(RouteFuture),
}

impl Future for Call {
    type Output = Result<Response<Answer>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut *self {
            Call::Refused(response) => Pin::new(response).poll(cx).map(Ok),
            Call::Begun(call) => call.poll(cx).map(Ok),
        }
    }
}

impl Begun {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Response<Answer>> {
        match catch_unwind(AssertUnwindSafe(|| self.poll_way(cx))) {
            Ok(Poll::Ready(Ok(message))) => {
                let (timed, slot) = (self.timed.take(), self.slot.take());
                Poll::Ready(Answer::message(message, timed, Arc::clone(&self.origin), slot))
            }
            Ok(Poll::Ready(Err(response))) => Poll::Ready(self.answered(response)),
            Ok(Poll::Pending) => self.poll_wait(cx),
            Err(_) => {
                self.origin.metrics.panics.inc();
                Poll::Ready(self.ended_by(endings::panicked()))
            }
        }
    }

    /// The message of an answer, or a whole answer.
    #[expect(clippy::result_large_err, reason = "no error, and moved once")]
    fn poll_way(&mut self, cx: &mut Context<'_>) -> Poll<Result<Bytes, Response<Body>>> {
        if let (Way::AtOnce(reading), Some(method)) = (&mut self.way, &self.origin.served.at_once) {
            match ready!(reading.poll(method, cx)) {
                Found::Whole(message) => {
                    let about = About {
                        deadline: self.deadline.as_ref(),
                        peer: &self.origin.peer,
                        span: self.timed.as_ref().and_then(Timed::span),
                    };
                    let answer = method.answer(&message, about);
                    return Poll::Ready(answer.map_err(|status| status.into_http()));
                }
                Found::Unusual(request) => {
                    let span = self.timed.as_ref().and_then(Timed::span);
                    self.way = Way::Routed(self.origin.route(request, self.deadline, span));
                }
            }
        }
        match &mut self.way {
            Way::Routed(answer) => Pin::new(answer).poll(cx).map(|Ok(response)| Err(response)),
            // Only polled again after its end.
            Way::AtOnce(_) => Poll::Pending,
        }
    }

    fn answered(&mut self, response: Response<Body>) -> Response<Answer> {
        if self.is_ours && endings::is_too_large(response.headers()) {
            self.origin.metrics.refused(Refused::MessageTooLarge);
            return self.ended_by(endings::too_large(response.headers()));
        }
        if self.is_ours && endings::is_not_protobuf(response.headers()) {
            self.origin.metrics.refused(Refused::NotProtobuf);
        }
        if let Some(code) = endings::code(response.headers()) {
            self.end(code);
        }
        let (origin, timed, slot) = (Arc::clone(&self.origin), self.timed.take(), self.slot.take());
        response.map(|body| Answer::of(body, origin, timed, self.is_ours, self.deadline, slot))
    }

    fn ended_by(&mut self, status: Status) -> Response<Answer> {
        self.end(status.code());
        Answer::ending(status, Arc::clone(&self.origin))
    }

    fn end(&mut self, code: Code) {
        if let Some(timed) = self.timed.take() {
            timed.end(code, &self.origin);
        }
    }

    /// The call waits: for its request, or for something that its service does. For that it needs a
    /// place.
    fn poll_wait(&mut self, cx: &mut Context<'_>) -> Poll<Response<Answer>> {
        if self.slot.is_none() {
            self.slot = self.origin.places.free(self.lane);
        }
        if self.slot.is_none() {
            // The head may have come alone, and its message be on its way.
            let grace = self.grace.get_or_insert_with(|| Box::pin(sleep(GRACE)));
            if grace.as_mut().poll(cx).is_ready() {
                let overloaded = self.origin.places.shed(self.lane, self.origin.clock.now());
                return Poll::Ready(self.ended_by(overloaded));
            }
        }
        self.poll_alarm(cx)
    }

    fn poll_alarm(&mut self, cx: &mut Context<'_>) -> Poll<Response<Answer>> {
        let cap = self.origin.request_max;
        let timeout = self.timeout.filter(|timeout| *timeout < cap);
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(sleep(timeout.unwrap_or(cap))));
        ready!(alarm.as_mut().poll(cx));
        self.origin.metrics.deadlines_exceeded.inc();
        Poll::Ready(self.ended_by(match timeout {
            Some(_) => endings::deadline_exceeded(),
            None => endings::request_incomplete(),
        }))
    }
}

impl Drop for Begun {
    /// The caller has given up.
    fn drop(&mut self) {
        self.end(Code::Cancelled);
    }
}
