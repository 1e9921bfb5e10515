//! What became of lines: of the log, and of the decision log, of which nothing shows without one.
use prometheus_client::{
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

type OneLabel = [(&'static str, &'static str); 1];

/// Lines of both logs.
#[derive(Clone, Debug)]
pub struct Logs {
    /// Lines of the log that were lost, since stderr did not take them.
    pub dropped: Counter,
    decisions: Family<OneLabel, Counter>,
}

impl Logs {
    pub(super) fn register(registry: &mut Registry) -> Logs {
        let (dropped, decisions) = (Counter::default(), Family::default());
        let help = "Lines of the log that stderr did not take";
        registry.register("log_lines_dropped", help, dropped.clone());
        registry.register("decision_log_lines", "Lines of the decision log", decisions.clone());
        Logs { dropped, decisions }
    }

    /// The counters of the decision log. They show from now on.
    pub fn decisions(&self) -> LogLines {
        let counter = |outcome| self.decisions.get_or_create_owned(&[("outcome", outcome)]);
        LogLines {
            written: counter("written"),
            dropped: counter("dropped"),
            failed: counter("failed"),
        }
    }
}

/// Lines of the decision log.
#[derive(Clone, Debug, Default)]
pub struct LogLines {
    /// Written.
    pub written: Counter,
    /// Dropped, since too much was waiting to be written.
    pub dropped: Counter,
    /// Lost, since they could not be written.
    pub failed: Counter,
}
