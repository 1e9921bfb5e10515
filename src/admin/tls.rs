//! What is counted of TLS. Without it, nothing of it shows.
use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

type OneLabel = [(&'static str, &'static str); 1];

/// Why a TLS handshake failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandshakeFailure {
    /// The first bytes are not TLS.
    NotTls,
    /// The client has not shown the certificate that it was asked for.
    NoCertificate,
    /// The client's certificate has expired, or is not valid yet.
    ExpiredCertificate,
    /// The client's certificate is broken, or no known authority has signed it.
    UntrustedCertificate,
    /// The client did not accept what the server showed.
    RefusedByClient,
    /// No version, suite or application protocol in common, or a step out of turn.
    Incompatible,
    /// The client went away.
    Closed,
    /// It was not over in time.
    TooSlow,
}

impl HandshakeFailure {
    /// Every one.
    pub const ALL: [HandshakeFailure; 8] = [
        HandshakeFailure::NotTls,
        HandshakeFailure::NoCertificate,
        HandshakeFailure::ExpiredCertificate,
        HandshakeFailure::UntrustedCertificate,
        HandshakeFailure::RefusedByClient,
        HandshakeFailure::Incompatible,
        HandshakeFailure::Closed,
        HandshakeFailure::TooSlow,
    ];

    /// The label under which it is counted.
    pub const fn name(self) -> &'static str {
        match self {
            HandshakeFailure::NotTls => "not_tls",
            HandshakeFailure::NoCertificate => "no_certificate",
            HandshakeFailure::ExpiredCertificate => "expired_certificate",
            HandshakeFailure::UntrustedCertificate => "untrusted_certificate",
            HandshakeFailure::RefusedByClient => "refused_by_client",
            HandshakeFailure::Incompatible => "incompatible",
            HandshakeFailure::Closed => "closed",
            HandshakeFailure::TooSlow => "too_slow",
        }
    }
}

/// The metrics of TLS. Cheap to clone.
#[derive(Clone, Debug)]
pub struct TlsMetrics {
    failed: Family<OneLabel, Counter>,
    reloads: Family<OneLabel, Counter>,
    expiry: Family<[(&'static str, &'static str); 0], Gauge>,
}

impl TlsMetrics {
    pub(super) fn register(registry: &mut Registry) -> TlsMetrics {
        let metrics = TlsMetrics {
            failed: Family::default(),
            reloads: Family::default(),
            expiry: Family::default(),
        };
        let TlsMetrics { failed, reloads, expiry } = &metrics;
        let help = "TLS handshakes that failed, by cause";
        registry.register("tls_handshakes_failed", help, failed.clone());
        registry.register("tls_reloads", "Reloads of the certificate files", reloads.clone());
        let help = "When the server's certificate expires, in seconds since 1970";
        registry.register("tls_certificate_expiry_timestamp_seconds", help, expiry.clone());
        metrics
    }

    /// Shows every counter from now on.
    pub fn begin(&self) {
        for failure in HandshakeFailure::ALL {
            drop(self.failed.get_or_create(&[("cause", failure.name())]));
        }
        for outcome in ["applied", "refused"] {
            drop(self.reloads.get_or_create(&[("outcome", outcome)]));
        }
    }

    /// Counts a handshake that failed.
    pub fn failed(&self, failure: HandshakeFailure) {
        self.failed.get_or_create(&[("cause", failure.name())]).inc();
    }

    /// Counts certificate files that changed, and whether they took hold.
    pub fn reloaded(&self, applied: bool) {
        let outcome = if applied { "applied" } else { "refused" };
        self.reloads.get_or_create(&[("outcome", outcome)]).inc();
    }

    /// Says when the server's certificate expires.
    pub fn set_expiry(&self, unix_s: i64) {
        self.expiry.get_or_create(&[]).set(unix_s);
    }
}
