//! `DecideStream`: one question is read, decided and charged when the answer is asked for. No
//! channel and no task: what waits is bounded by HTTP/2 flow control.
use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures_core::Stream;
use tonic::{Status, Streaming};

use super::{Retryd, until::Until};
use crate::budget::Store;
use crate::server::Deadline;
use crate::wire::pb;

/// Ready answers that may wait for one write.
const BATCH_MAX: u32 = 128;

/// The answers of one stream, in the order of the questions.
#[derive(Debug)]
pub struct DecideStream<S> {
    retryd: Retryd<S>,
    questions: Streaming<pb::RetryContext>,
    until: Until,
    /// Answers given since the last pause.
    batch: u32,
    ended: bool,
}

impl<S: Store> DecideStream<S> {
    pub(super) fn new(
        retryd: Retryd<S>,
        deadline: Option<Deadline>,
        questions: Streaming<pb::RetryContext>,
    ) -> Self {
        let until = Until::new(&retryd, deadline);
        DecideStream { retryd, questions, until, batch: 0, ended: false }
    }

    fn answer(&self, context: &pb::RetryContext) -> Result<pb::StreamedDecision, Status> {
        use pb::streamed_decision::Outcome;
        let now = self.retryd.decider.now();
        self.until.in_time(&self.retryd, now)?;
        let outcome = match self.retryd.decide_at(context, now) {
            Ok(decision) => Outcome::Decision(decision),
            Err(refusal) => Outcome::Refusal(refusal.into()),
        };
        Ok(pb::StreamedDecision { outcome: Some(outcome) })
    }

    fn end(&mut self, why: Status) -> Poll<Option<Result<pb::StreamedDecision, Status>>> {
        self.ended = true;
        Poll::Ready(Some(Err(why)))
    }
}

impl<S: Store> Stream for DecideStream<S> {
    type Item = Result<pb::StreamedDecision, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if this.ended {
            return Poll::Ready(None);
        }
        if let Poll::Ready(stopping) = this.until.poll_stop(&this.retryd, cx) {
            return this.end(stopping);
        }
        if this.batch == BATCH_MAX {
            // Let what is ready leave, and come back.
            this.batch = 0;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let polled = Pin::new(&mut this.questions).poll_next(cx);
        if polled.is_pending() {
            this.batch = 0;
        }
        match ready!(polled) {
            Some(Ok(context)) => {
                this.batch += 1;
                let answer = this.answer(&context);
                this.ended = answer.is_err();
                Poll::Ready(Some(answer))
            }
            // The next frame would be misread after these bytes, so the stream is over.
            Some(Err(status)) => this.end(status),
            None => Poll::Ready(None),
        }
    }
}
