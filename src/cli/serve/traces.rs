//! Traces of calls, if the environment wants them.
use std::{env, sync::Arc, time::Duration};

use anyhow::Context as _;
use tokio::task::JoinHandle;

use crate::admin::metrics::Metrics;
use crate::clock::{Clock, Now};
use crate::server::{Drain, Ended};
use crate::traces::{Settings, Traces};

/// How long the end of the process waits for a collector.
const FLUSH_MAX: Duration = Duration::from_secs(2);
/// The time that it has where the drain has used up its own.
const FLUSH_MIN: Duration = Duration::from_millis(200);

/// Traces, until they are ended.
pub(super) struct Tracing {
    traces: Arc<Traces>,
    clock: Clock,
    /// When the process was asked to stop.
    begun: JoinHandle<Now>,
}

/// Begins to trace, if an `OTEL_*` variable says where to. To be called in a runtime.
pub(super) fn begin(
    metrics: &Metrics,
    clock: &Clock,
    drain: &Drain,
) -> anyhow::Result<Option<Tracing>> {
    let Some(settings) = Settings::read(|name| env::var(name).ok())? else { return Ok(None) };
    let traces = Traces::begin(settings, metrics.spans.clone(), clock.clone());
    let traces = Arc::new(traces.context("cannot export traces")?);
    tracing::info!("sampled calls are traced");
    let (begun, time) = (drain.begun().clone(), clock.clone());
    let begun = tokio::spawn(async move {
        begun.cancelled().await;
        time.now()
    });
    Ok(Some(Tracing { traces, clock: clock.clone(), begun }))
}

impl Tracing {
    pub(super) fn traces(&self) -> Arc<Traces> {
        Arc::clone(&self.traces)
    }

    /// Sends what still waits, within what is left of the time for the drain. Whoever is in a hurry does
    /// not wait for it.
    pub(super) async fn end(self, ended: &Ended, drain_timeout: Duration) {
        if let Ended::Hurried(_) = ended {
            // Where it is dropped, the library waits for the collector: on a thread that nobody waits for.
            tokio::task::spawn_blocking(move || drop(self.traces));
            return;
        }
        let now = self.clock.now();
        let begun = self.begun.await.unwrap_or(now);
        let passed = Duration::from_millis(now.monotonic_ms.saturating_sub(begun.monotonic_ms));
        let left = drain_timeout.saturating_sub(passed);
        self.traces.end(left.clamp(FLUSH_MIN, FLUSH_MAX)).await;
    }
}
