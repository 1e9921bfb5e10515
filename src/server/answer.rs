//! The body of an answer: what the service sends, or the ending that the server gives it.
use std::{
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{HeaderValue, Response, header::CONTENT_TYPE};
use http_body::Frame;
use tokio::time::{Sleep, sleep};
use tokio_util::sync::WaitForCancellationFutureOwned;
use tonic::{Code, Status, body::Body};

use super::{deadline::Deadline, endings, origin::Origin, slots::Slot, timed::Timed};
use crate::admin::metrics::Refused;

/// The body of an answer. While it lives, its call is in flight.
pub(super) struct Answer {
    content: Content,
    origin: Arc<Origin>,
    /// Until the end is told.
    timed: Option<Timed>,
    is_ours: bool,
    deadline: Option<Deadline>,
    // Held until the answer has left.
    _slot: Option<Slot>,
    // Made when the body waits for the first time. Only streams ever wait.
    alarms: Option<Alarms>,
}

/// What is left of it.
enum Content {
    /// One message, and an OK.
    Message(Bytes),
    Ok,
    /// What a service sends.
    Service(Body),
    Over,
}

struct Alarms {
    deadline: Option<Pin<Box<Sleep>>>,
    leaving: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl Answer {
    pub(super) fn of(
        body: Body,
        origin: Arc<Origin>,
        timed: Option<Timed>,
        is_ours: bool,
        deadline: Option<Deadline>,
        slot: Option<Slot>,
    ) -> Answer {
        let content = Content::Service(body);
        Answer { content, origin, timed, is_ours, deadline, _slot: slot, alarms: None }
    }

    /// A whole response: a status, whose end was told before.
    pub(super) fn ending(status: Status, origin: Arc<Origin>) -> Response<Answer> {
        status.into_http::<()>().map(|()| Answer::empty(origin))
    }

    pub(super) fn empty(origin: Arc<Origin>) -> Answer {
        Answer::ours(Content::Over, None, origin, None)
    }

    /// A whole response: a message that stands behind its prefix, and an OK.
    pub(super) fn message(
        message: Bytes,
        timed: Option<Timed>,
        origin: Arc<Origin>,
        slot: Option<Slot>,
    ) -> Response<Answer> {
        let ours = Answer::ours(Content::Message(message), timed, origin, slot);
        let mut response = Response::new(ours);
        let grpc = HeaderValue::from_static("application/grpc");
        response.headers_mut().insert(CONTENT_TYPE, grpc);
        response
    }

    fn ours(
        content: Content,
        timed: Option<Timed>,
        origin: Arc<Origin>,
        slot: Option<Slot>,
    ) -> Answer {
        Answer { content, origin, timed, is_ours: false, deadline: None, _slot: slot, alarms: None }
    }

    fn end(&mut self, code: Code) {
        if let Some(timed) = self.timed.take() {
            timed.end(code, &self.origin);
        }
    }

    /// What leaves of what a service sends.
    fn frame(&mut self, frame: Frame<Bytes>) -> Frame<Bytes> {
        let frame = self.in_our_words(frame);
        if let Some(trailers) = frame.trailers_ref() {
            self.end(endings::code(trailers).unwrap_or(Code::Unknown));
        }
        frame
    }

    fn in_our_words(&self, frame: Frame<Bytes>) -> Frame<Bytes> {
        match frame.trailers_ref() {
            Some(trailers) if self.is_ours && endings::is_too_large(trailers) => {
                self.origin.metrics.refused(Refused::MessageTooLarge);
                Frame::trailers(endings::trailers(&endings::too_large(trailers)))
            }
            Some(trailers) if self.is_ours && endings::is_not_protobuf(trailers) => {
                self.origin.metrics.refused(Refused::NotProtobuf);
                frame
            }
            _ => frame,
        }
    }

    /// The body waits: has its time come?
    fn poll_alarms(&mut self, cx: &mut Context<'_>) -> Poll<Status> {
        let alarms = self.alarms.get_or_insert_with(|| Alarms {
            deadline: self
                .deadline
                .map(|deadline| Box::pin(sleep(deadline.remaining(self.origin.clock.now())))),
            leaving: Box::pin(self.origin.leaving.clone().cancelled_owned()),
        });
        if let Some(deadline) = &mut alarms.deadline
            && deadline.as_mut().poll(cx).is_ready()
        {
            self.origin.metrics.deadlines_exceeded.inc();
            return Poll::Ready(endings::deadline_exceeded());
        }
        ready!(alarms.leaving.as_mut().poll(cx));
        self.origin.metrics.refused(Refused::Stopping);
        Poll::Ready(endings::stopping())
    }
}

impl Content {
    /// The next part of what needs no service.
    fn next(&mut self) -> Option<Frame<Bytes>> {
        match mem::replace(self, Content::Over) {
            Content::Message(message) => {
                *self = Content::Ok;
                Some(Frame::data(message))
            }
            Content::Ok => Some(Frame::trailers(endings::ok())),
            Content::Service(_) | Content::Over => None,
        }
    }
}

impl http_body::Body for Answer {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = &mut *self;
        let body = match &mut this.content {
            Content::Service(body) => body,
            content => {
                let frame = content.next();
                if frame.as_ref().is_some_and(Frame::is_trailers) {
                    this.end(Code::Ok);
                }
                return Poll::Ready(frame.map(Ok));
            }
        };
        let polled = catch_unwind(AssertUnwindSafe(|| Pin::new(body).poll_frame(cx)));
        let ending = match polled {
            Ok(Poll::Ready(frame)) => {
                return Poll::Ready(frame.map(|frame| frame.map(|frame| this.frame(frame))));
            }
            Ok(Poll::Pending) => ready!(this.poll_alarms(cx)),
            Err(_) => {
                this.origin.metrics.panics.inc();
                endings::panicked()
            }
        };
        this.content = Content::Over;
        this.end(ending.code());
        Poll::Ready(Some(Ok(Frame::trailers(endings::trailers(&ending)))))
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Service(body) => body.is_end_stream(),
            Content::Message(_) | Content::Ok => false,
            Content::Over => true,
        }
    }
}

impl Drop for Answer {
    /// The caller has given up, or its connection is gone.
    fn drop(&mut self) {
        self.end(Code::Cancelled);
    }
}
