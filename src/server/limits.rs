//! Every limit between a socket and a call, with its name and its default.
use std::time::Duration;

/// Limits of the listeners, their connections and calls, and of the end of the process.
///
/// They are counted in units that an operator can reason about. What HTTP/2 itself is allowed
/// stands in the constants of this module: nobody should have to tune it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections open at a time, over all listeners. One more is accepted and closed at once.
    /// Default: 10 000.
    pub connections_max: usize,
    /// Connections open at a time from one IP address. One more is closed at once. Default: 1000.
    pub connections_per_peer_max: usize,
    /// Calls and streams open at a time on one connection. A client knows it, and waits with one more;
    /// one that does not wait is refused by HTTP/2 (REFUSED_STREAM). Default: 128.
    pub calls_per_connection_max: u32,
    /// Calls that wait at a time, for the rest of their request or for an answer. One more is refused
    /// as OVERLOADED. Default: 20 000.
    pub calls_max: usize,
    /// Calls of BudgetService that do. They have places of their own, since their messages are large,
    /// and since a list of all balances takes a while. Default: 1000.
    pub budget_calls_max: usize,
    /// Streams open at a time. Default: 10 000.
    pub streams_max: usize,
    /// Time for a new connection to send the HTTP/2 preface and the head of its SETTINGS, the
    /// handshake of TLS included.
    /// Default: 5 s.
    pub handshake_max: Duration,
    /// A connection that is silent for this long is asked for a sign of life. Default: 20 s.
    pub keepalive_interval: Duration,
    /// Time for that sign. Default: 10 s.
    pub keepalive_timeout: Duration,
    /// Age at which a connection gets a GOAWAY, so that clients spread over new replicas. Each
    /// connection draws its own, 10 % more or less. Default: 30 min.
    pub age_max: Duration,
    /// Time for calls and streams to end after that GOAWAY. Then streams that wait are ended, and
    /// [`SETTLE`] later the connection is closed. Default: 60 s.
    pub age_grace: Duration,
    /// After a GOAWAY, a connection without calls whose client does not close it for this long, twice,
    /// is closed. Calls may be on their way to it, from a client that stands still for a moment.
    /// Default: 2 s.
    pub farewell: Duration,
    /// Time from the head of a request to the head of its answer, so that a request whose message
    /// never comes does not stay. Streams that are open are not bound by it. Default: 30 s.
    pub request_max: Duration,
    /// How long the process keeps answering, as NOT_SERVING, after it was asked to stop.
    /// Default: 5 s.
    pub drain_delay: Duration,
    /// When the process ends at the latest, counted from the moment it was asked to stop: the
    /// delay is a part of it. Default: 25 s.
    pub drain_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections_max: 10_000,
            connections_per_peer_max: 1_000,
            calls_per_connection_max: 128,
            calls_max: 20_000,
            budget_calls_max: 1_000,
            streams_max: 10_000,
            handshake_max: Duration::from_secs(5),
            keepalive_interval: Duration::from_secs(20),
            keepalive_timeout: Duration::from_secs(10),
            age_max: Duration::from_secs(30 * 60),
            age_grace: Duration::from_secs(60),
            farewell: Duration::from_secs(2),
            request_max: Duration::from_secs(30),
            drain_delay: Duration::from_secs(5),
            drain_timeout: Duration::from_secs(25),
        }
    }
}

impl Limits {
    /// The limits of the port that serves only health: few connections, whatever the others do.
    pub(super) fn of_probe(&self) -> Limits {
        Limits {
            connections_max: PROBE_CONNECTIONS_MAX,
            connections_per_peer_max: PROBE_CONNECTIONS_MAX / PEERS_MIN,
            ..self.clone()
        }
    }
}

/// Connections open at a time on the port that serves only health.
pub const PROBE_CONNECTIONS_MAX: usize = 64;
/// So many peers it takes to fill a port with few places, the one for probes or the one for people.
pub const PEERS_MIN: usize = 4;
/// Time for an ending, or for the first call of a connection that is new while the process stops, to
/// reach the client.
pub const SETTLE: Duration = Duration::from_millis(500);
/// Sockets that wait to be accepted. The kernel's `somaxconn` may allow fewer.
pub const BACKLOG: u32 = 4096;
/// Pause of an accept loop after an error such as "too many open files".
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Time for the message of a call to follow its head where there is no place to wait for longer.
pub const GRACE: Duration = Duration::from_millis(250);
/// Questions about health that one connection may have open. They have no other limit.
pub const HEALTH_CALLS_MAX: usize = 8;
/// Streams reset for the peer's mistakes before the connection is closed.
pub const LOCAL_RESETS_MAX: usize = 256;
/// Streams that the peer reset before they were accepted, before the connection is closed. Callers
/// wait 20 ms for a decision: after a stall of a second, many give up between two looks at the socket.
pub const PENDING_RESETS_MAX: usize = 1000;
/// Bytes of one request's header list, counted as in RFC 9113, section 6.5.2.
pub const HEADER_LIST_MAX: u32 = 16 << 10;
/// Bytes received on one stream and not yet read: some hundred questions. Larger would let a client that
/// keeps to the windows send more small frames than h2 takes: see [`CONNECTION_WINDOW`].
pub const STREAM_WINDOW: u32 = 16 << 10;
/// Bytes received on one connection and not yet read. The windows of the streams bound that; but h2
/// closes a connection whose unread frames are shorter than 256 bytes by half of this, together. So
/// many streams may be full of small questions at a time: 13 of the smallest, 40 of common ones.
pub const CONNECTION_WINDOW: u32 = 4 << 20;
/// Bytes waiting to be sent on one stream. More than a hundred decisions fit in.
pub const SEND_BUFFER: usize = 16 << 10;
