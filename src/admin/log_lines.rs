//! What became of the lines of the decision log. Without one, nothing of it shows.
use prometheus_client::{
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

type OneLabel = [(&'static str, &'static str); 1];

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

impl LogLines {
    pub(super) fn register(registry: &mut Registry) -> Family<OneLabel, Counter> {
        let lines = Family::default();
        registry.register("decision_log_lines", "Lines of the decision log", lines.clone());
        lines
    }

    pub(super) fn of(lines: &Family<OneLabel, Counter>) -> LogLines {
        let counter = |outcome| lines.get_or_create_owned(&[("outcome", outcome)]);
        LogLines {
            written: counter("written"),
            dropped: counter("dropped"),
            failed: counter("failed"),
        }
    }
}
