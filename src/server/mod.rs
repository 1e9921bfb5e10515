//! From a socket to a call, and to the end of the process.
//!
//! ```text
//! Listen ──bind──> Bound ──accept──> connection ──(TLS) HTTP/2──> call ──> Decide, at once
//!                                                                   └────> tonic's Routes
//!                    │        │           │                        │
//!                    │     a free slot    handshakes in time,      deadline, panic,
//!                    │                    age, GOAWAY              tonic's endings
//!                    └── Drain: NOT_SERVING, then GOAWAY, then the end
//! ```
//!
//! tonic's own server waits for ever for a silent client or an open stream when it shall stop, and
//! has no limit of connections; so `Routes` are served from here, over hyper.
mod accept;
mod answer;
mod at_once;
mod batching;
mod call;
mod connection;
mod deadline;
mod descriptors;
mod drain;
mod endings;
mod greeting;
mod health;
mod lanes;
pub mod limits;
mod listen;
mod not_grpc;
mod origin;
mod peer;
mod sites;
mod slots;
mod timed;
mod tls;

pub(crate) use accept::{Acceptor, Serve};
pub use at_once::{About, AtOnce};
pub use batching::Batching;
pub use connection::ConnectInfo;
pub use deadline::Deadline;
pub use descriptors::raise_descriptor_limit;
pub use drain::{Drain, Ended};
pub(crate) use endings::{deadline_exceeded, trailers};
pub use health::{Health, LIVENESS, READINESS};
pub use limits::Limits;
pub use listen::{BindError, Bound, Listen, NotAnAddress};
pub use peer::Peer;
pub(crate) use sites::Sites;
pub(crate) use slots::Slots;
pub use tls::{Tls, TlsError, TlsFiles};

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tonic::service::Routes;

use self::{lanes::Lanes, origin::Served};
use crate::{
    admin::{metrics::Metrics, ports::Port},
    clock::Clock,
    traces::Traces,
};

/// All that serves gRPC.
#[derive(Debug)]
pub struct Server {
    /// Sockets for calls.
    pub listeners: Vec<Bound>,
    /// A socket that serves only health, until the very end.
    pub probe: Option<Bound>,
    /// What is served on `listeners`.
    pub routes: Routes,
    /// A method of `routes` that is answered without going there, unless there is something unusual
    /// about the call.
    pub at_once: Option<AtOnce>,
    /// The limits of all of it.
    pub limits: Limits,
    /// Served on `probe`. To be served on `listeners`, it must stand in `routes` too.
    pub health: Health,
    /// Where connections and endings are counted.
    pub metrics: Arc<Metrics>,
    /// By which deadlines are counted.
    pub clock: Clock,
    /// TLS on `listeners`; absent: plaintext. The port for probes never has it.
    pub tls: Option<Tls>,
    /// Who makes the spans of calls on `listeners`, if anybody does.
    pub traces: Option<Arc<Traces>>,
}

impl Server {
    /// Serves until the drain has ended, and ends it.
    ///
    /// It takes calls at once, but says so only when somebody calls [`Health::ready`].
    pub async fn run(self, drain: Drain) -> Ended {
        let Server { listeners, probe, routes, at_once, limits, health, metrics, .. } = self;
        let (clock, tls, traces) = (self.clock, self.tls, self.traces);
        let acceptors = TaskTracker::new();
        let lanes = Lanes::new(&limits, &metrics);
        let cut = drain.ended().clone();
        let start = Start { metrics, clock, lanes, cut, acceptors: acceptors.clone() };
        let probe = probe.into_iter().collect();
        let probe_routes =
            Served { at_once: None, routes: Routes::new(health.service()).prepare(), traces: None };
        start.port(Port::Probe, probe, None, probe_routes, limits.of_probe(), drain.ended());
        let served = Served { at_once, routes: routes.prepare(), traces };
        let open =
            start.port(Port::Calls, listeners, tls, served, limits.clone(), drain.stopping());

        drain.begun().cancelled().await;
        let end = Instant::now() + limits.drain_timeout;
        health.drain().await;
        tracing::info!("not serving: still answering");
        let ended = tokio::select! {
            biased;
            () = drain.hurried().cancelled() => Ended::Hurried(open.len()),
            ended = wind_down(&drain, &health, &open, &limits, end) => ended,
        };
        drain.end();
        // So that the file of a Unix socket is gone when the process is.
        acceptors.close();
        timeout_at(Instant::now() + CLOSING_MAX, acceptors.wait()).await.ok();
        // Those that are cut now need a moment to close their sockets.
        timeout_at(Instant::now() + CLOSING_MAX, open.wait()).await.ok();
        tracing::info!(?ended, "ended");
        ended
    }
}

/// How long to wait for sockets to close that were cut.
const CLOSING_MAX: Duration = Duration::from_millis(200);

async fn wind_down(
    drain: &Drain,
    health: &Health,
    open: &TaskTracker,
    limits: &Limits,
    end: Instant,
) -> Ended {
    sleep(limits.drain_delay.min(limits.drain_timeout)).await;
    tracing::info!(connections = open.len(), "stopping: finishing what is in flight");
    // First the GOAWAY: a client whose Watch ends would ask again on the same connection.
    drain.stop();
    health.end_watches().await;
    open.close();
    match timeout_at(end, open.wait()).await {
        Ok(()) => Ended::Drained,
        Err(_) => Ended::Cut(open.len()),
    }
}

struct Start {
    metrics: Arc<Metrics>,
    clock: Clock,
    lanes: Arc<Lanes>,
    cut: CancellationToken,
    acceptors: TaskTracker,
}

impl Start {
    /// Starts the accept loops of one kind of listener. Returns who tracks their connections.
    fn port(
        &self,
        port: Port,
        listeners: Vec<Bound>,
        tls: Option<Tls>,
        served: Served,
        limits: Limits,
        stop: &CancellationToken,
    ) -> TaskTracker {
        let connections = TaskTracker::new();
        let counts = self.metrics.connections(port);
        let slots = Slots::new(limits.connections_max, counts.open.clone());
        let sites = Sites::new(limits.connections_per_peer_max);
        counts.limit.set(i64::try_from(limits.connections_max).unwrap_or(i64::MAX));
        let serve = connection::Http2::new(connection::Port {
            served: Arc::new(served),
            tls,
            limits,
            clock: self.clock.clone(),
            metrics: Arc::clone(&self.metrics),
            counts: counts.clone(),
            lanes: Arc::clone(&self.lanes),
            stop: stop.clone(),
            cut: self.cut.clone(),
        });
        for bound in listeners {
            tracing::info!(listen = %bound.local(), port = port.name(), "listening");
            let acceptor = Acceptor {
                serve: serve.clone(),
                slots: Arc::clone(&slots),
                sites: Arc::clone(&sites),
                counts: counts.clone(),
                connections: connections.clone(),
            };
            self.acceptors.spawn(acceptor.run(bound, stop.clone()));
        }
        connections
    }
}
