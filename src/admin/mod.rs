//! The admin listener: probes, metrics and the console over HTTP/1.1, for people and scrapers.
pub mod calls;
mod format;
pub mod lanes;
pub mod log_lines;
pub mod metrics;
mod named;
pub mod ports;
mod refused;
pub mod reloads;
pub mod shadowed;
pub mod spans;
mod store;
pub mod tls;

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    extract::{RawQuery, State},
    http::{
        HeaderMap, StatusCode,
        header::{ACCEPT, CONTENT_TYPE},
    },
    response::{IntoResponse, Response},
    routing::get,
};
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::sleep,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::budget::{Occupancy, Sharing};
use crate::server::limits::PEERS_MIN;
use crate::server::{Acceptor, Bound, ConnectInfo, Drain, Health, Serve, Sites, Slots};
use metrics::{Format, Metrics};
use ports::Port;

/// What the admin listener shows.
#[derive(Clone)]
pub struct Admin {
    /// For `/readyz`.
    pub health: Health,
    /// For `/metrics`.
    pub metrics: Arc<Metrics>,
    /// How full the store of budgets is. For `/metrics`.
    pub occupancy: Arc<dyn Fn() -> Occupancy + Send + Sync>,
    /// The store that is shared with other processes, if there is one.
    pub sharing: Option<Arc<Sharing>>,
    /// The pages of the console, if they are to be served here.
    pub console: Option<Router>,
}

/// Connections open at a time.
const CONNECTIONS_MAX: usize = 64;
/// Time for the head of a request, and for an idle connection.
const HEAD_MAX: Duration = Duration::from_secs(30);
/// Age at which a connection is closed.
const AGE_MAX: Duration = Duration::from_secs(10 * 60);
/// Bytes of the head of a request.
const HEAD_BYTES_MAX: usize = 16 << 10;

impl Admin {
    /// Serves `/livez`, `/readyz`, `/metrics` and the console until the drain has ended.
    pub async fn run(self, bound: Bound, drain: Drain) {
        tracing::info!(listen = %bound.local(), port = Port::Admin.name(), "listening");
        let end = drain.ended().clone();
        let counts = self.metrics.connections(Port::Admin);
        counts.limit.set(i64::try_from(CONNECTIONS_MAX).unwrap_or(i64::MAX));
        let acceptor = Acceptor {
            counts: counts.clone(),
            slots: Slots::new(CONNECTIONS_MAX, counts.open.clone()),
            sites: Sites::new(CONNECTIONS_MAX / PEERS_MIN),
            connections: TaskTracker::new(),
            serve: Http1 { router: self.router(), end: end.clone() },
        };
        acceptor.run(bound, end).await;
    }

    fn router(mut self) -> Router {
        let console = self.console.take().unwrap_or_default();
        Router::new()
            .route("/livez", get(|| async { "ok\n" }))
            .route("/readyz", get(readyz))
            .route("/metrics", get(render))
            .with_state(Arc::new(self))
            .merge(console)
    }
}

impl Admin {
    /// What must hold so that calls may come.
    fn checks(&self) -> [(&'static str, bool); 2] {
        [("started", self.health.is_started()), ("not-draining", !self.health.is_draining())]
    }

    fn is_ready(&self) -> bool {
        self.checks().iter().all(|(_, holds)| *holds)
    }
}

async fn readyz(State(admin): State<Arc<Admin>>, RawQuery(query): RawQuery) -> Response {
    let is_ready = admin.is_ready();
    let mut text = String::new();
    if query.is_some_and(|query| query.split('&').any(|key| key.starts_with("verbose"))) {
        for (name, holds) in admin.checks() {
            text.push_str(if holds { "[+] " } else { "[-] " });
            text.push_str(name);
            text.push('\n');
        }
        // Only told: neither a broken policy file nor a lost store may take the process away.
        match admin.metrics.reloads.error() {
            None => text.push_str("[+] policy\n"),
            Some(error) => {
                text.push_str("[-] policy (the last good one stays)\n");
                error.brief.lines().for_each(|line| text.extend(["    ", line, "\n"]));
            }
        }
        if let Some(sharing) = &admin.sharing {
            let is_lost = sharing.state().is_lost;
            text.push_str(if is_lost { "[-] store (not needed)\n" } else { "[+] store\n" });
        }
    }
    text.push_str(if is_ready { "ready\n" } else { "not ready\n" });
    let status = if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, text).into_response()
}

async fn render(State(admin): State<Arc<Admin>>, headers: HeaderMap) -> Response {
    let format = wanted(&headers);
    admin.metrics.set_ready(admin.is_ready());
    admin.metrics.set_occupancy((admin.occupancy)());
    if let Some(sharing) = &admin.sharing {
        admin.metrics.set_store(sharing.state());
    }
    match admin.metrics.render(format) {
        Ok(text) => ([(CONTENT_TYPE, format.content_type())], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

fn wanted(headers: &HeaderMap) -> Format {
    let accept = headers.get_all(ACCEPT).iter().filter_map(|accept| accept.to_str().ok());
    Format::wanted(&accept.collect::<Vec<_>>().join(","))
}

#[derive(Clone)]
struct Http1 {
    router: Router,
    end: CancellationToken,
}

impl Serve for Http1 {
    async fn serve<IO>(self, io: IO, _: ConnectInfo)
    where
        IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_MAX)
            .max_buf_size(HEAD_BYTES_MAX)
            .serve_connection(TokioIo::new(io), TowerToHyperService::new(self.router));
        tokio::select! {
            // What goes wrong on one connection is its client's affair.
            _ = connection => {}
            () = sleep(AGE_MAX) => {}
            () = self.end.cancelled() => {}
        }
    }
}
