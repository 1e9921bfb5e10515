//! What the process counts. Each counter is looked up once, here: counting is one addition.
use std::{fmt, sync::atomic::Ordering};

use prometheus_client::{
    encoding::text,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

use super::lanes::LaneMetrics;
use super::log_lines::LogLines;
use super::ports::{self, ConnectionCounts, Port};
pub use super::refused::Refused;
use super::reloads::Reloads;
use super::store::StoreMetrics;
use crate::budget::{Occupancy, StoreState};
use crate::engine::Rule;

/// The type of the text that [`Metrics::render`] writes.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

type One = [(&'static str, &'static str); 1];
type Two = [(&'static str, &'static str); 2];

/// Every metric of the process.
pub struct Metrics {
    registry: Registry,
    decisions: [Counter; Rule::ALL.len()],
    refused: [Counter; Refused::ALL.len()],
    connections: [ConnectionCounts; Port::ALL.len()],
    /// Calls in flight, by their limits.
    pub lanes: LaneMetrics,
    policy: Family<[(&'static str, String); 1], Gauge>,
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
    log_lines: Family<One, Counter>,
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

        let decisions = Family::<Two, Counter>::default();
        registry.register("decisions", "Decisions, by verdict and reason", decisions.clone());
        let refused = Family::<One, Counter>::default();
        registry.register("requests_refused", "Requests refused, by reason", refused.clone());
        let build = Family::<One, Gauge>::default();
        registry.register("build_info", "The version that runs", build.clone());
        build.get_or_create(&[("version", env!("CARGO_PKG_VERSION"))]).set(1);
        let policy = Family::default();
        registry.register("policy_info", "The revision of the policy in force", policy.clone());

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
            decisions: Rule::ALL.map(|rule| {
                let verdict = if rule == Rule::Retryable { "RETRY" } else { "DO_NOT_RETRY" };
                decisions.get_or_create_owned(&[("verdict", verdict), ("reason", rule.name())])
            }),
            refused: Refused::ALL
                .map(|refused_for| refused.get_or_create_owned(&[("reason", refused_for.name())])),
            connections: ports::register(&mut registry),
            lanes: LaneMetrics::register(&mut registry),
            store: StoreMetrics::register(&mut registry),
            log_lines: LogLines::register(&mut registry),
            policy,
            registry,
        }
    }

    /// Counts a decision by the rule that made it.
    pub fn decided(&self, rule: Rule) {
        if let Some(counter) = self.decisions.get(rule as usize) {
            counter.inc();
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
        self.decisions.each_ref().map(Counter::get)
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

    /// Says which policy is in force, and since when.
    pub fn set_policy(&self, revision: &str, unix_ms: u64) {
        self.reloads.set_success(unix_ms);
        self.policy.clear();
        self.policy.get_or_create(&[("revision", revision.to_owned())]).set(1);
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

    /// The counters of the decision log. They show from now on.
    pub fn log_lines(&self) -> LogLines {
        LogLines::of(&self.log_lines)
    }

    /// All of it, as OpenMetrics text.
    ///
    /// # Errors
    ///
    /// If a metric cannot be written; none of these should.
    pub fn render(&self) -> Result<String, fmt::Error> {
        let mut written = String::new();
        text::encode(&mut written, &self.registry)?;
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
mod tests {
    use super::*;

    #[test]
    fn every_counter_has_the_name_that_it_counts() {
        let metrics = Metrics::new();
        for (count, rule) in (1..).zip(Rule::ALL) {
            (0..count).for_each(|_| metrics.decided(rule));
        }
        for (count, reason) in (1..).zip(Refused::ALL) {
            (0..count).for_each(|_| metrics.refused(reason));
        }
        for (count, port) in (1..).zip(Port::ALL) {
            metrics.connections(port).open.set(count);
        }
        metrics.set_policy("old", 1_000);
        metrics.set_policy("new", 2_999);
        metrics.set_occupancy(Occupancy { balances: 7, looked_at: 0, evicted: 8, overflowed: 9 });
        metrics.reloads.refused("why", 3_000);
        assert!(!metrics.render().unwrap().contains("retryd_store_up "), "there is no store");
        metrics.set_store(StoreState {
            is_lost: false,
            replicas: 2,
            answered: 3,
            refused: 4,
            unknown: 5,
            losses: 6,
            waiting: 7,
            leased: 8,
        });

        let text = metrics.render().unwrap();
        let has = |line: String| assert!(text.lines().any(|has| has == line), "{line}\n{text}");
        for (count, rule) in (1..).zip(Rule::ALL) {
            let verdict = if rule == Rule::Retryable { "RETRY" } else { "DO_NOT_RETRY" };
            let name = rule.name();
            has(format!(
                "retryd_decisions_total{{verdict=\"{verdict}\",reason=\"{name}\"}} {count}"
            ));
        }
        for (count, reason) in (1..).zip(Refused::ALL) {
            let name = reason.name();
            has(format!("retryd_requests_refused_total{{reason=\"{name}\"}} {count}"));
        }
        for (count, port) in (1..).zip(Port::ALL) {
            has(format!("retryd_connections_open{{port=\"{}\"}} {count}", port.name()));
        }
        has("retryd_policy_info{revision=\"new\"} 1".to_owned());
        has("retryd_balances 7".to_owned());
        has("retryd_store_up 1".to_owned());
        has("retryd_store_replicas 2".to_owned());
        has("retryd_store_exchanges_total{outcome=\"answered\"} 3".to_owned());
        has("retryd_store_exchanges_total{outcome=\"refused\"} 4".to_owned());
        has("retryd_store_exchanges_total{outcome=\"unknown\"} 5".to_owned());
        has("retryd_store_losses_total 6".to_owned());
        has("retryd_store_balances 7".to_owned());
        has("retryd_store_tokens_leased_total 8".to_owned());
        has("retryd_balances_evicted_total 8".to_owned());
        has("retryd_overflow_uses_total 9".to_owned());
        has("retryd_policy_reloads_total{outcome=\"applied\"} 0".to_owned());
        has("retryd_policy_reloads_total{outcome=\"refused\"} 1".to_owned());
        has("retryd_policy_last_reload_successful 0".to_owned());
        has("retryd_policy_last_reload_success_timestamp_seconds 2".to_owned());
        assert!(!text.contains("\"old\""), "{text}");
        assert!(text.ends_with("# EOF\n"), "{text}");
    }
}
