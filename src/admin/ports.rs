//! The listeners of the process, and what is counted of their connections.
use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

/// What a listener is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Port {
    /// Calls.
    Calls,
    /// Health only.
    Probe,
    /// People and scrapers.
    Admin,
}

impl Port {
    /// Every kind of listener.
    pub const ALL: [Port; 3] = [Port::Calls, Port::Probe, Port::Admin];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Port::Calls => "calls",
            Port::Probe => "probe",
            Port::Admin => "admin",
        }
    }
}

/// The connections of one kind of listener.
#[derive(Clone, Debug)]
pub struct ConnectionCounts {
    /// Open now.
    pub open: Gauge,
    /// As many may be open at a time.
    pub limit: Gauge,
    /// Accepted, whatever became of them.
    pub accepted: Counter,
    /// Closed at once, since as many as allowed were open.
    pub refused_full: Counter,
    /// Closed at once, since their peer had as many open as one may.
    pub refused_peer: Counter,
    /// Closed since they did not speak HTTP/2, or not in time.
    pub refused_handshake: Counter,
    /// Cut with calls in flight or without a sign of life.
    pub cut: Counter,
    /// Errors of the accept loop, such as "too many open files".
    pub accept_errors: Counter,
}

/// The counters of every kind of listener, in the order of [`Port::ALL`].
pub(super) fn register(registry: &mut Registry) -> [ConnectionCounts; Port::ALL.len()] {
    let open = Family::<[(&'static str, &'static str); 1], Gauge>::default();
    registry.register("connections_open", "Connections open now", open.clone());
    let limit = Family::<[(&'static str, &'static str); 1], Gauge>::default();
    registry.register("connections_limit", "Connections that may be open", limit.clone());
    let accepted = Family::<[(&'static str, &'static str); 1], Counter>::default();
    registry.register("connections_accepted", "Connections accepted", accepted.clone());
    let refused = Family::<[(&'static str, &'static str); 2], Counter>::default();
    registry.register("connections_refused", "Connections refused, by cause", refused.clone());
    let cut = Family::<[(&'static str, &'static str); 1], Counter>::default();
    registry.register("connections_cut", "Connections that had to be cut", cut.clone());
    let errors = Family::<[(&'static str, &'static str); 1], Counter>::default();
    registry.register("accept_errors", "Errors while accepting connections", errors.clone());
    Port::ALL.map(|port| {
        let port = ("port", port.name());
        ConnectionCounts {
            open: open.get_or_create_owned(&[port]),
            limit: limit.get_or_create_owned(&[port]),
            accepted: accepted.get_or_create_owned(&[port]),
            refused_full: refused.get_or_create_owned(&[port, ("cause", "full")]),
            refused_peer: refused.get_or_create_owned(&[port, ("cause", "peer")]),
            refused_handshake: refused.get_or_create_owned(&[port, ("cause", "handshake")]),
            cut: cut.get_or_create_owned(&[port]),
            accept_errors: errors.get_or_create_owned(&[port]),
        }
    })
}
