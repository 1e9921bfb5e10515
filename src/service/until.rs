//! How long a stream goes on, whatever it carries.
use std::{
    pin::Pin,
    task::{Context, Poll},
};

use tokio_util::sync::WaitForCancellationFutureOwned;
use tonic::Status;

use super::Retryd;
use crate::admin::metrics::Refused;
use crate::budget::Store;
use crate::clock::Now;
use crate::server::Deadline;
use crate::wire::refusal::Refusal;

/// The end of a stream that its questions do not bring: retryd stops, or the caller's time is up.
#[derive(Debug)]
pub(super) struct Until {
    deadline: Option<Deadline>,
    stopping: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl Until {
    pub(super) fn new<S>(retryd: &Retryd<S>, deadline: Option<Deadline>) -> Until {
        Until { deadline, stopping: Box::pin(retryd.stopping.clone().cancelled_owned()) }
    }

    /// Ready when retryd stops. Wakes the stream for it.
    pub(super) fn poll_stop<S: Store>(
        &mut self,
        retryd: &Retryd<S>,
        cx: &mut Context<'_>,
    ) -> Poll<Status> {
        self.stopping.as_mut().poll(cx).map(|()| {
            retryd.metrics.refused(Refused::Stopping);
            Refusal::Stopping.into()
        })
    }

    /// Whether the caller still waits.
    pub(super) fn in_time<S: Store>(&self, retryd: &Retryd<S>, now: Now) -> Result<(), Status> {
        retryd.in_time(self.deadline.as_ref(), now)
    }
}
