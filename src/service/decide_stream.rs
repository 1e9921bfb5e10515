//! `DecideStream`: one question is read, decided and charged when the answer is asked for. No
//! channel and no task: what waits is bounded by HTTP/2 flow control.
//!
//! From bytes to bytes, as `Decide` is: on the way that the generated service takes, a question and
//! its answer are moved about for longer than it takes to decide.
use std::{
    mem,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Bytes, BytesMut};
use http_body::Frame;
use tonic::{Status, body::Body};

use super::{Retryd, questions::Questions, until::Until};
use crate::budget::Store;
use crate::server::{Deadline, Peer, trailers};
use crate::wire::borrowed::{Borrowed, Streamed};
use crate::wire::{codec, pb};

/// Answers that may wait for one write, and bytes of them.
const BATCH_MAX: u32 = 128;
const BATCH_BYTES_MAX: usize = 16 << 10;

/// The answers of one stream, in the order of the questions.
#[derive(Debug)]
pub struct DecideStream<S> {
    retryd: Retryd<S>,
    peer: Peer,
    questions: Questions,
    until: Until,
    /// Answers that have not left yet, and how many.
    ready: BytesMut,
    batch: u32,
    next: Next,
}

#[derive(Debug)]
enum Next {
    Answers,
    /// Lets what is ready leave, and comes back.
    Pause,
    Trailers(Status),
    Nothing,
}

impl<S: Store> DecideStream<S> {
    /// Answers what stands in the body of a request of this caller's.
    pub fn new(retryd: Retryd<S>, peer: Peer, deadline: Option<Deadline>, questions: Body) -> Self {
        let until = Until::new(&retryd, deadline);
        let questions = Questions::of(questions, retryd.sizes.context_bytes_max);
        let ready = BytesMut::new();
        DecideStream { retryd, peer, questions, until, ready, batch: 0, next: Next::Answers }
    }

    /// Answers one question more, or says how the stream ends.
    fn poll_answer(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Status>> {
        // The next message would be misread after bytes that are none, so then the stream is over.
        let answer = match ready!(self.questions.poll_next(cx)) {
            Some(question) => question.and_then(|question| self.answer(&question)),
            None => Err(Status::ok("")),
        };
        Poll::Ready(answer)
    }

    fn answer(&mut self, question: &[u8]) -> Result<(), Status> {
        let context = codec::decode(question)?;
        let now = self.retryd.decider.now();
        self.until.in_time(&self.retryd, now)?;
        let ready = &mut self.ready;
        let decided = self.retryd.decide_at(&self.peer, &context, now, |answer, explain| {
            codec::frame(&Streamed(Borrowed::of(answer, explain)), ready);
        });
        if let Err(refusal) = decided {
            let outcome = Some(pb::streamed_decision::Outcome::Refusal(refusal.into()));
            codec::frame(&pb::StreamedDecision { outcome }, &mut self.ready);
        }
        self.batch += 1;
        Ok(())
    }

    fn take_ready(&mut self) -> Frame<Bytes> {
        self.batch = 0;
        Frame::data(self.ready.split().freeze())
    }
}

impl<S: Store> http_body::Body for DecideStream<S> {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = &mut *self;
        match mem::replace(&mut this.next, Next::Nothing) {
            Next::Answers => this.next = Next::Answers,
            Next::Pause => {
                this.next = Next::Answers;
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            Next::Trailers(status) => {
                return Poll::Ready(Some(Ok(Frame::trailers(trailers(&status)))));
            }
            Next::Nothing => return Poll::Ready(None),
        }
        // Once a batch: asking takes a lock.
        if let Poll::Ready(stopping) = this.until.poll_stop(&this.retryd, cx) {
            this.next = Next::Nothing;
            return Poll::Ready(Some(Ok(Frame::trailers(trailers(&stopping)))));
        }
        loop {
            match this.poll_answer(cx) {
                Poll::Ready(Ok(()))
                    if this.batch < BATCH_MAX && this.ready.len() < BATCH_BYTES_MAX => {}
                Poll::Ready(Ok(())) => {
                    this.next = Next::Pause;
                    return Poll::Ready(Some(Ok(this.take_ready())));
                }
                Poll::Ready(Err(status)) if this.ready.is_empty() => {
                    this.next = Next::Nothing;
                    return Poll::Ready(Some(Ok(Frame::trailers(trailers(&status)))));
                }
                Poll::Ready(Err(status)) => {
                    this.next = Next::Trailers(status);
                    return Poll::Ready(Some(Ok(this.take_ready())));
                }
                Poll::Pending if this.ready.is_empty() => return Poll::Pending,
                Poll::Pending => return Poll::Ready(Some(Ok(this.take_ready()))),
            }
        }
    }
}
