//! What becomes of the spans of traced calls.
use prometheus_client::{
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

/// Spans that have ended, by what became of them.
#[derive(Clone, Debug)]
pub struct SpanCounts {
    /// The collector took them.
    pub exported: Counter,
    /// The collector did not take them, or not in time.
    pub failed: Counter,
    /// As many as allowed waited already.
    pub dropped: Counter,
}

impl SpanCounts {
    pub(super) fn register(registry: &mut Registry) -> SpanCounts {
        let spans = Family::<[(&'static str, &'static str); 1], Counter>::default();
        registry.register("spans", "Spans of traced calls, by outcome", spans.clone());
        let counter = |outcome| spans.get_or_create_owned(&[("outcome", outcome)]);
        SpanCounts {
            exported: counter("exported"),
            failed: counter("failed"),
            dropped: counter("dropped"),
        }
    }
}
