//! `WatchBudget`: the state is looked at when the reader can take it, so nothing ever queues.
use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use futures_core::Stream;
use tokio::time::{Interval, MissedTickBehavior, interval};
use tonic::Status;

use super::{Retryd, until::Until};
use crate::budget::Store;
use crate::server::{Deadline, Peer};
use crate::wire::pb;

/// Time between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The state of the budgets of one tenant and operation, now and whenever it has changed.
#[derive(Debug)]
pub struct WatchBudget<S> {
    retryd: Retryd<S>,
    peer: Peer,
    tenant: String,
    operation: String,
    until: Until,
    looks: Interval,
    last: Option<pb::WatchBudgetResponse>,
    ended: bool,
}

impl<S: Store> WatchBudget<S> {
    pub(super) fn new(
        retryd: Retryd<S>,
        peer: Peer,
        deadline: Option<Deadline>,
        tenant: String,
        operation: String,
    ) -> Self {
        let until = Until::new(&retryd, deadline);
        let mut looks = interval(LOOK_EVERY);
        // A reader that was slow gets the state of now, and not one for each look that it missed.
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (last, ended) = (None, false);
        WatchBudget { retryd, peer, tenant, operation, until, looks, last, ended }
    }

    fn end(&mut self, why: Status) -> Poll<Option<Result<pb::WatchBudgetResponse, Status>>> {
        self.ended = true;
        Poll::Ready(Some(Err(why)))
    }
}

impl<S: Store> Stream for WatchBudget<S> {
    type Item = Result<pb::WatchBudgetResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if this.ended {
            return Poll::Ready(None);
        }
        if let Poll::Ready(stopping) = this.until.poll_stop(&this.retryd, cx) {
            return this.end(stopping);
        }
        loop {
            ready!(this.looks.poll_tick(cx));
            if let Err(late) = this.until.in_time(&this.retryd, this.retryd.decider.now()) {
                return this.end(late);
            }
            // Whoever may no longer ask for the tenant is told so.
            let in_force = match this.retryd.allowed(&this.peer, &this.tenant) {
                Ok(in_force) => in_force,
                Err(refusal) => return this.end(refusal.into()),
            };
            let budgets = this.retryd.states(&in_force, &this.tenant, &this.operation);
            let state = pb::WatchBudgetResponse { budgets };
            if this.last.as_ref() != Some(&state) {
                this.last = Some(state.clone());
                return Poll::Ready(Some(Ok(state)));
            }
        }
    }
}
