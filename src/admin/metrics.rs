//! What the process counts. Each counter is looked up once, here: counting is one addition.
use std::{
    fmt, mem,
    sync::{Arc, atomic::Ordering},
};

use parking_lot::Mutex;
use prometheus_client::{
    encoding::{prometheus_text, text},
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

use super::ports::{self, ConnectionCounts, Port};
use super::{
    calls::Calls,
    lanes::LaneMetrics,
    log_lines::Logs,
    named::Named,
    reloads::Reloads,
    shadowed::{self, Shadowed},
    spans::SpanCounts,
    store::StoreMetrics,
    tls::TlsMetrics,
};
pub use super::{format::Format, named::NamedCounts, refused::Refused};
use crate::budget::{Occupancy, StoreState};
use crate::engine::Rule;

type One = [(&'static str, &'static str); 1];

/// Every metric of the process.
pub struct Metrics {
    registry: Registry,
    named: Named,
    /// Calls, whatever became of them.
    pub calls: Arc<Calls>,
    refused: [Counter; Refused::ALL.len()],
    connections: [ConnectionCounts; Port::ALL.len()],
    /// Calls in flight, by their limits.
    pub lanes: LaneMetrics,
    policy: Family<[(&'static str, String); 1], Gauge>,
    revision: Mutex<String>,
    violations: Family<One, Counter>,
    ready: Gauge,
    /// Decisions without the shared store.
    pub degraded: Counter,
    /// Enum numbers that the contract does not name, read as unspecified.
    pub unknown_enum_values: Counter,
    /// Hints that could not be read, taken as absent.
    pub malformed_hints: Counter,
    /// What became of reloads of the policy file.
    pub reloads: Reloads,
    balances: Gauge,
    evicted: Counter,
    overflowed: Counter,
    store: StoreMetrics,
    /// Lines of the log and of the decision log.
    pub logs: Logs,
    tls: TlsMetrics,
    shadow: shadowed::Families,
    /// What became of the spans of traced calls.
    pub spans: SpanCounts,
    /// Usage reports booked, whether they came alone or with a question.
    pub usage_reports: Counter,
    /// Calls that panicked.
    pub panics: Counter,
    /// Calls that ended because their time was up.
    pub deadlines_exceeded: Counter,
}

impl Metrics {
    /// All at zero.
    pub fn new() -> Metrics {
        let mut registry = Registry::with_prefix("retryd");

        let named = Named::register(&mut registry);
        let calls = Arc::new(Calls::new());
        registry.register_collector(Box::new(Arc::clone(&calls)));
        let refused = Family::<One, Counter>::default();
        registry.register("requests_refused", "Requests refused, by reason", refused.clone());
        let build = Family::<One, Gauge>::default();
        registry.register("build_info", "The version that runs", build.clone());
        build.get_or_create(&[("version", env!("CARGO_PKG_VERSION"))]).set(1);
        let policy = Family::default();
        registry.register("policy_info", "The revision of the policy in force", policy.clone());

        let violations = Family::<One, Counter>::default();
        registry.register("context_violations", "Wrong fields, by path", violations.clone());
        let ready = Gauge::default();
        registry.register("ready", "Whether this process wants to be asked", ready.clone());

        let reloads = Reloads::register(&mut registry);
        let balances = Gauge::default();
        registry.register("balances", "Balances in memory", balances.clone());

        let mut counter = |name: &str, help: &str| {
            let counter = Counter::default();
            registry.register(name, help, counter.clone());
            counter
        };
        Metrics {
            unknown_enum_values: counter("unknown_enum_values", "Enum numbers not in the contract"),
            malformed_hints: counter("malformed_hints", "Hints that could not be read"),
            reloads,
            balances,
            evicted: counter("balances_evicted", "Balances dropped because nobody used them"),
            overflowed: counter("overflow_uses", "Uses of a budget's overflow balance"),
            usage_reports: counter("usage_reports", "Usage reports booked"),
            panics: counter("panics", "Calls that panicked"),
            deadlines_exceeded: counter("deadlines_exceeded", "Calls whose time was up"),
            degraded: counter("decisions_degraded", "Decisions without the shared store"),
            named,
            calls,
            violations,
            ready,
            refused: Refused::ALL
                .map(|refused_for| refused.get_or_create_owned(&[("reason", refused_for.name())])),
            connections: ports::register(&mut registry),
            lanes: LaneMetrics::register(&mut registry),
            store: StoreMetrics::register(&mut registry),
            logs: Logs::register(&mut registry),
            tls: TlsMetrics::register(&mut registry),
            shadow: shadowed::Families::register(&mut registry),
            spans: SpanCounts::register(&mut registry),
            policy,
            revision: Mutex::default(),
            registry,
        }
    }

    /// Counts a refused request.
    pub fn refused(&self, reason: Refused) {
        if let Some(counter) = self.refused.get(reason as usize) {
            counter.inc();
        }
    }

    /// How often each rule has decided, in the order of [`Rule::ALL`].
    pub fn decisions(&self) -> [u64; Rule::ALL.len()] {
        self.named.decisions()
    }

    /// How many requests were refused for each reason, in the order of [`Refused::ALL`].
    pub fn requests_refused(&self) -> [u64; Refused::ALL.len()] {
        self.refused.each_ref().map(Counter::get)
    }

    /// The counters of one kind of listener.
    pub fn connections(&self, port: Port) -> &ConnectionCounts {
        let [calls, probe, admin] = &self.connections;
        match port {
            Port::Calls => calls,
            Port::Probe => probe,
            Port::Admin => admin,
        }
    }

    /// The metrics of TLS.
    pub fn tls(&self) -> &TlsMetrics {
        &self.tls
    }

    /// Counts a wrong field of a request.
    pub fn violated(&self, field: &'static str) {
        self.violations.get_or_create(&[("field", field)]).inc();
    }

    /// Says which revision of the policy file is in force, and since when. Hands out the counters of
    /// its policies and budgets, in the order of the file.
    pub fn in_force(
        &self,
        revision: &str,
        policies: &[&str],
        budgets: &[&str],
        unix_ms: u64,
    ) -> NamedCounts {
        self.reloads.set_success(unix_ms);
        self.policy.get_or_create(&[("revision", revision.to_owned())]).set(1);
        let before = mem::replace(&mut *self.revision.lock(), revision.to_owned());
        if before != revision {
            self.policy.remove(&[("revision", before)]);
        }
        self.named.of(policies, budgets)
    }

    /// Says whether this process wants to be asked.
    pub fn set_ready(&self, is_ready: bool) {
        self.ready.set(i64::from(is_ready));
    }

    /// Says how full the store of budgets is.
    pub fn set_occupancy(&self, occupancy: Occupancy) {
        let Occupancy { balances, evicted, overflowed, .. } = occupancy;
        self.balances.set(i64::try_from(balances).unwrap_or(i64::MAX));
        // They only grow, where they are counted.
        self.evicted.inner().store(evicted, Ordering::Relaxed);
        self.overflowed.inner().store(overflowed, Ordering::Relaxed);
    }

    /// Says how the process stands with the store that it shares.
    pub fn set_store(&self, state: StoreState) {
        self.store.set(state);
    }

    /// The counters of a second set of policies. They show from now on.
    pub fn shadowed(&self) -> Shadowed {
        self.shadow.shown()
    }

    /// What the decider of a second set of policies counts: apart from what is counted here, but for
    /// its revision and its reloads.
    pub fn of_shadow(&self) -> Metrics {
        let shadowed::Families { policy, reloads, .. } = &self.shadow;
        Metrics { policy: policy.clone(), reloads: Reloads::by(reloads), ..Metrics::new() }
    }

    /// All of it, as text.
    ///
    /// # Errors
    ///
    /// If a metric cannot be written; none of these should.
    pub fn render(&self, format: Format) -> Result<String, fmt::Error> {
        let mut written = String::new();
        match format {
            Format::OpenMetrics => text::encode(&mut written, &self.registry)?,
            Format::Text => prometheus_text::encode(&mut written, &self.registry)?,
        }
        Ok(written)
    }
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics::new()
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
