//! A method that never waits: its answer is there as soon as its question is.
//!
//! One whole message, with nothing unusual about it, is handed over as bytes. Everything else, such
//! as a message in two pieces, too many of them or none, goes to the service in the routes, with
//! all that was read: so there is one place that knows what becomes of it.
use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{HeaderName, Request};
use http_body::{Body as _, Frame};
use hyper::body::Incoming;
use tonic::{Status, body::Body};

use super::{Deadline, Peer};
use crate::{traces::CallSpan, wire::codec::PREFIX};

static ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");

/// One method of a service that stands in the routes, too.
#[derive(Clone)]
pub struct AtOnce {
    path: &'static str,
    message_max: usize,
    answer: Arc<AnswerBytes>,
}

/// From a message to an answer that stands behind its prefix.
type AnswerBytes = dyn Fn(&[u8], About<'_>) -> Result<Bytes, Status> + Send + Sync;

/// What is known of a call besides its message.
#[derive(Clone, Copy, Debug)]
pub struct About<'a> {
    /// When its caller stops waiting.
    pub deadline: Option<&'a Deadline>,
    /// Its caller.
    pub peer: &'a Peer,
    /// Its span, if it is traced.
    pub span: Option<&'a CallSpan>,
}

impl AtOnce {
    /// Lets `answer` take the messages of up to `message_max` bytes that are sent to `path`.
    pub fn new(
        path: &'static str,
        message_max: usize,
        answer: impl Fn(&[u8], About<'_>) -> Result<Bytes, Status> + Send + Sync + 'static,
    ) -> AtOnce {
        AtOnce { path, message_max, answer: Arc::new(answer) }
    }

    pub(super) fn takes<B>(&self, request: &Request<B>) -> bool {
        request.uri().path() == self.path && !request.headers().contains_key(&ENCODING)
    }

    pub(super) fn answer(
        &self,
        Message(bytes): &Message,
        about: About<'_>,
    ) -> Result<Bytes, Status> {
        (self.answer)(bytes.get(PREFIX..).unwrap_or_default(), about)
    }

    /// Whether `bytes` are one message, as long as its prefix says.
    fn is_whole(&self, bytes: &[u8]) -> bool {
        let Some((&[compressed, a, b, c, d], message)) = bytes.split_first_chunk::<PREFIX>() else {
            return false;
        };
        let declared = u32::from_be_bytes([a, b, c, d]);
        compressed == 0
            && message.len() <= self.message_max
            && u32::try_from(message.len()) == Ok(declared)
    }
}

impl fmt::Debug for AtOnce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AtOnce").field("path", &self.path).finish_non_exhaustive()
    }
}

/// One message behind its prefix, and no more than that.
pub(super) struct Message(Bytes);

/// What a request turned out to be.
#[expect(clippy::large_enum_variant, reason = "moved once: a box would cost more")]
pub(super) enum Found {
    Whole(Message),
    Unusual(Request<Body>),
}

/// A request that is being read. `None`: it is known what it is.
pub(super) struct Reading(Option<Request<Read>>);

impl Reading {
    pub(super) fn of(request: Request<Incoming>) -> Reading {
        Reading(Some(request.map(|rest| Read { message: None, unusual: None, rest })))
    }

    pub(super) fn poll(&mut self, method: &AtOnce, cx: &mut Context<'_>) -> Poll<Found> {
        if let Some(request) = &mut self.0 {
            ready!(request.body_mut().poll(method, cx));
        }
        let Some(mut request) = self.0.take() else { return Poll::Pending };
        let read = request.body_mut();
        Poll::Ready(match read.message.take_if(|_| read.unusual.is_none()) {
            Some(message) => Found::Whole(Message(message)),
            None => Found::Unusual(request.map(Body::new)),
        })
    }
}

/// What was read of a body, and the rest of it: together, the whole body.
struct Read {
    message: Option<Bytes>,
    unusual: Option<Result<Frame<Bytes>, hyper::Error>>,
    rest: Incoming,
}

impl Read {
    /// Reads until it is known what the body is.
    fn poll(&mut self, method: &AtOnce, cx: &mut Context<'_>) -> Poll<()> {
        while self.message.is_none() || !self.rest.is_end_stream() {
            let Some(frame) = ready!(Pin::new(&mut self.rest).poll_frame(cx)) else { break };
            match frame.map(Frame::into_data) {
                // Many clients end a request by a frame of its own.
                Ok(Ok(bytes)) if bytes.is_empty() => continue,
                Ok(Ok(bytes)) if self.message.is_none() && method.is_whole(&bytes) => {
                    self.message = Some(bytes);
                    continue;
                }
                Ok(Ok(bytes)) => self.unusual = Some(Ok(Frame::data(bytes))),
                Ok(Err(trailers)) => self.unusual = Some(Ok(trailers)),
                Err(error) => self.unusual = Some(Err(error)),
            }
            break;
        }
        Poll::Ready(())
    }
}

impl http_body::Body for Read {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        if let Some(message) = self.message.take() {
            return Poll::Ready(Some(Ok(Frame::data(message))));
        }
        if let Some(unusual) = self.unusual.take() {
            return Poll::Ready(Some(unusual));
        }
        Pin::new(&mut self.rest).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.message.is_none() && self.unusual.is_none() && self.rest.is_end_stream()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_message_is_taken() {
        let method = AtOnce::new("/a.B/C", 3, |_, _| Ok(Bytes::new()));
        let cases: &[(&[u8], bool)] = &[
            (&[0, 0, 0, 0, 0], true),
            (&[0, 0, 0, 0, 3, 7, 7, 7], true),
            // Over the limit.
            (&[0, 0, 0, 0, 4, 7, 7, 7, 7], false),
            // Cut, and too long.
            (&[0, 0, 0, 0, 3, 7, 7], false),
            (&[0, 0, 0, 0, 1, 7, 7], false),
            (&[0, 0xff, 0xff, 0xff, 0xff, 7], false),
            // Compressed, and a flag that nobody knows.
            (&[1, 0, 0, 0, 1, 7], false),
            (&[2, 0, 0, 0, 1, 7], false),
            (&[0, 0, 0, 0], false),
            (&[], false),
        ];
        for (bytes, expected) in cases {
            assert_eq!(method.is_whole(bytes), *expected, "{bytes:?}");
        }
    }
}
