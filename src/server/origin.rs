//! What the calls of one connection have in common.
use std::{sync::Arc, time::Duration};

use http::Request;
use tokio_util::sync::CancellationToken;
use tonic::{Status, body::Body, service::Routes};
use tower::Service;

use super::{
    at_once::AtOnce, connection::ConnectInfo, deadline::Deadline, lanes::Places, peer::Peer,
    slots::Slot,
};
use crate::{
    admin::{lanes::Lane, metrics::Metrics},
    clock::Clock,
    traces::{CallSpan, Traces},
};

/// What all calls of one connection share. Who holds it is in flight.
pub(super) struct Origin {
    pub(super) info: ConnectInfo,
    pub(super) peer: Peer,
    pub(super) served: Arc<Served>,
    pub(super) request_max: Duration,
    pub(super) clock: Clock,
    pub(super) metrics: Arc<Metrics>,
    pub(super) places: Places,
    /// Cancelled when streams of this connection shall end.
    pub(super) leaving: CancellationToken,
}

/// What answers calls.
pub(super) struct Served {
    pub(super) at_once: Option<AtOnce>,
    pub(super) routes: Routes,
    pub(super) traces: Option<Arc<Traces>>,
}

/// Until the head of an answer that comes from the routes.
pub(super) type RouteFuture = <Routes as Service<Request<Body>>>::Future;

impl Origin {
    /// Hands a request to the routes, with what its service wants to know of its caller.
    pub(super) fn route(
        &self,
        mut request: Request<Body>,
        deadline: Option<Deadline>,
        span: Option<&CallSpan>,
    ) -> RouteFuture {
        request.extensions_mut().insert(self.info);
        if self.peer.has_certificate() {
            request.extensions_mut().insert(self.peer.clone());
        }
        if let Some(deadline) = deadline {
            request.extensions_mut().insert(deadline);
        }
        if let Some(span) = span {
            request.extensions_mut().insert(span.clone());
        }
        self.served.routes.clone().call(request)
    }

    pub(super) fn take_place(&self, lane: Lane) -> Result<Slot, Status> {
        self.places.free(lane).ok_or_else(|| self.places.shed(lane, self.clock.now()))
    }
}
