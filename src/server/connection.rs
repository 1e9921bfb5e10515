//! One connection: handshakes in time, an age, a farewell, an end.
use std::{net::SocketAddr, pin::pin, sync::Arc, time::Duration};

use hyper::server::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::{Instant, sleep, sleep_until},
};
use tokio_util::sync::CancellationToken;

use super::{
    accept::Serve,
    batching::Batching,
    call::Calls,
    greeting::Greeting,
    lanes::{Lanes, Places},
    limits::{self, Limits, SETTLE},
    origin::{Origin, Served},
    peer::Peer,
    tls::Tls,
};
use crate::{
    admin::{metrics::Metrics, ports::ConnectionCounts},
    clock::{Clock, Dice},
};

/// Who is at the other end. Stands in the extensions of each request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectInfo {
    /// A TCP address.
    Tcp(SocketAddr),
    /// A process of this machine, over a Unix socket.
    Unix,
}

/// Serves calls over HTTP/2. One value serves all connections of a port.
#[derive(Clone)]
pub(super) struct Http2(Arc<Port>);

pub(super) struct Port {
    pub(super) served: Arc<Served>,
    pub(super) tls: Option<Tls>,
    pub(super) limits: Limits,
    pub(super) clock: Clock,
    pub(super) metrics: Arc<Metrics>,
    pub(super) counts: ConnectionCounts,
    pub(super) lanes: Arc<Lanes>,
    /// Cancelled when connections shall end.
    pub(super) stop: CancellationToken,
    /// Cancelled when they end, whatever is in flight.
    pub(super) cut: CancellationToken,
}

impl Http2 {
    pub(super) fn new(port: Port) -> Http2 {
        Http2(Arc::new(port))
    }
}

impl Serve for Http2 {
    async fn serve<IO>(self, io: IO, info: ConnectInfo)
    where
        IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let port = &*self.0;
        let end = tokio::select! {
            biased;
            () = port.cut.cancelled() => End::Cut,
            end = port.live(io, info) => end,
        };
        match end {
            End::Closed => {}
            End::NoHandshake => {
                port.counts.refused_handshake.inc();
            }
            End::Cut => {
                port.counts.cut.inc();
            }
        }
    }
}

/// How a connection ended.
enum End {
    Closed,
    NoHandshake,
    Cut,
}

impl Port {
    async fn live<IO>(&self, io: IO, info: ConnectInfo) -> End
    where
        IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        // One limit for both handshakes.
        let late = Instant::now() + self.limits.handshake_max;
        match &self.tls {
            None => self.talk(io, info, Peer::default(), late).await,
            // Boxed, so that a connection without TLS is no larger for it.
            Some(tls) => Box::pin(self.talk_over(tls, io, info, late)).await,
        }
    }

    async fn talk_over<IO>(&self, tls: &Tls, io: IO, info: ConnectInfo, late: Instant) -> End
    where
        IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let accepted = tokio::select! {
            accepted = tls.accept(io) => accepted,
            () = sleep_until(late) => {
                tls.was_too_slow();
                return End::NoHandshake;
            }
            () = self.settled() => return End::Closed,
        };
        match accepted {
            Ok((io, peer)) => self.talk(io, info, peer, late).await,
            Err(()) => End::NoHandshake,
        }
    }

    async fn talk<IO>(&self, io: IO, info: ConnectInfo, peer: Peer, late: Instant) -> End
    where
        IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let origin = Arc::new(Origin {
            info,
            peer,
            served: Arc::clone(&self.served),
            request_max: self.limits.request_max,
            clock: self.clock.clone(),
            metrics: Arc::clone(&self.metrics),
            places: Places::of_connection(&self.lanes),
            leaving: self.stop.child_token(),
        });
        let calls = Calls(Arc::clone(&origin));
        let (io, greeted) = Greeting::expect(io);
        let io = TokioIo::new(Batching::over(io));
        let mut connection = pin!(self.http2().serve_connection(io, calls));

        tokio::select! {
            _ = connection.as_mut() => return End::NoHandshake,
            _ = greeted => {}
            () = sleep_until(late) => return End::NoHandshake,
            () = self.settled() => return End::Closed,
        }
        tokio::select! {
            _ = connection.as_mut() => return End::Closed,
            () = sleep(jittered(self.limits.age_max)) => {}
            () = self.stop.cancelled() => {}
        }
        // GOAWAY: clients open a new connection, and finish their calls on this one.
        connection.as_mut().graceful_shutdown();
        let mut grace = pin!(sleep(self.limits.age_grace));
        let mut was_quiet = false;
        loop {
            tokio::select! {
                _ = connection.as_mut() => return End::Closed,
                // While the process stops, `cut` says when time is up.
                () = grace.as_mut(), if !self.stop.is_cancelled() => {
                    if origin.leaving.is_cancelled() {
                        return End::Cut;
                    }
                    origin.leaving.cancel();
                    grace.as_mut().reset(Instant::now() + SETTLE);
                }
                () = sleep(self.limits.farewell) => {
                    // One is held here and one by the connection; each call in flight holds one.
                    let is_quiet = Arc::strong_count(&origin) <= 2;
                    if is_quiet && was_quiet {
                        return End::Cut;
                    }
                    was_quiet = is_quiet;
                }
            }
        }
    }

    /// A client that has just connected gets its answer, and its GOAWAY.
    async fn settled(&self) {
        self.stop.cancelled().await;
        sleep(SETTLE).await;
    }

    fn http2(&self) -> http2::Builder<TokioExecutor> {
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .keep_alive_interval(self.limits.keepalive_interval)
            .keep_alive_timeout(self.limits.keepalive_timeout)
            .max_concurrent_streams(self.limits.calls_per_connection_max)
            .max_local_error_reset_streams(limits::LOCAL_RESETS_MAX)
            .max_pending_accept_reset_streams(limits::PENDING_RESETS_MAX)
            .max_header_list_size(limits::HEADER_LIST_MAX)
            .initial_stream_window_size(limits::STREAM_WINDOW)
            .initial_connection_window_size(limits::CONNECTION_WINDOW)
            .max_send_buf_size(limits::SEND_BUFFER)
            // gRPC has no use for it.
            .auto_date_header(false);
        builder
    }
}

/// 90 % to 110 % of the age, so that connections opened together do not end together.
fn jittered(age: Duration) -> Duration {
    let draw = f64::from(Dice::fair().roll()) / f64::from(u32::MAX);
    Duration::try_from_secs_f64(age.as_secs_f64() * (0.9 + 0.2 * draw)).unwrap_or(age)
}
