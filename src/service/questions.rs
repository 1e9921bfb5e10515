//! The messages of a stream, out of the frames of its request.
use std::{
    mem,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Buf as _, Bytes, BytesMut};
use http_body::Body as _;
use tonic::{Status, body::Body};

use crate::wire::codec::PREFIX;

/// Hands out one message after the other, as slices of the frames that they came in. It reads a
/// frame only when it has nothing left, so that flow control holds the caller back.
#[derive(Debug)]
pub(super) struct Questions {
    body: Body,
    message_max: usize,
    /// What was read and not handed out yet.
    rest: Bytes,
}

impl Questions {
    pub(super) fn of(body: Body, message_max: usize) -> Questions {
        Questions { body, message_max, rest: Bytes::new() }
    }

    /// The next message, without its prefix. `None`: the caller has ended the stream.
    pub(super) fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Status>>> {
        loop {
            if let Some(message) = self.whole_message().transpose() {
                return Poll::Ready(Some(message));
            }
            match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                // Trailers of a request mean nothing in gRPC.
                Some(Ok(frame)) => self.take(frame.into_data().unwrap_or_default()),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None if self.rest.is_empty() => return Poll::Ready(None),
                None => {
                    self.rest.clear();
                    return Poll::Ready(Some(Err(Status::internal(
                        "the stream ends in a message",
                    ))));
                }
            }
        }
    }

    fn take(&mut self, frame: Bytes) {
        if self.rest.is_empty() {
            self.rest = frame;
        } else {
            // Into the room that the frames before have left, so that a message in many small
            // frames is not copied anew by each.
            let mut rest = BytesMut::from(mem::take(&mut self.rest));
            rest.extend_from_slice(&frame);
            self.rest = rest.freeze();
        }
    }

    /// `None` if there is more to be read of it.
    fn whole_message(&mut self) -> Result<Option<Bytes>, Status> {
        let Some(&[compressed, a, b, c, d]) = self.rest.first_chunk::<PREFIX>() else {
            return Ok(None);
        };
        if compressed != 0 {
            return Err(Status::internal("a compressed message, and no `grpc-encoding`"));
        }
        let length = usize::try_from(u32::from_be_bytes([a, b, c, d])).unwrap_or(usize::MAX);
        if self.message_max < length {
            let max = self.message_max;
            // As tonic says it: the server counts it, and has the contract's word for it.
            let text = format!(
                "decoded message length too large: found {length} bytes, the limit is: {max} bytes"
            );
            return Err(Status::out_of_range(text));
        }
        if self.rest.len() - PREFIX < length {
            return Ok(None);
        }
        self.rest.advance(PREFIX);
        Ok(Some(self.rest.split_to(length)))
    }
}
