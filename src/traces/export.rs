//! Spans on their way out: counted, and never waited for.
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use opentelemetry::Context;
use opentelemetry_sdk::{
    Resource,
    error::OTelSdkResult,
    trace::{Span, SpanData, SpanExporter, SpanProcessor},
};

use crate::{admin::spans::SpanCounts, clock::Clock, telemetry::Seldom};

/// What the two ends of the queue know of each other.
#[derive(Debug)]
pub(super) struct Queue {
    waiting: AtomicUsize,
    waiting_max: usize,
    counts: SpanCounts,
    clock: Clock,
    told: Seldom,
}

impl Queue {
    pub(super) fn new(waiting_max: usize, counts: SpanCounts, clock: Clock) -> Arc<Queue> {
        let (waiting, told) = (AtomicUsize::new(0), Seldom::default());
        Arc::new(Queue { waiting, waiting_max, counts, clock, told })
    }

    /// A place for one more, if there is one.
    fn enter(&self) -> bool {
        let more = |waiting| (waiting < self.waiting_max).then_some(waiting + 1);
        self.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    fn leave(&self, spans: usize) {
        self.waiting.fetch_sub(spans, Ordering::Relaxed);
    }
}

/// The end where spans come in. It drops what finds no place: the library would do so too, and not
/// say how many.
#[derive(Debug)]
pub(super) struct In<P> {
    pub(super) processor: P,
    pub(super) queue: Arc<Queue>,
}

impl<P: SpanProcessor> SpanProcessor for In<P> {
    fn on_start(&self, span: &mut Span, context: &Context) {
        self.processor.on_start(span, context);
    }

    fn on_end(&self, span: SpanData) {
        if self.queue.enter() {
            self.processor.on_end(span);
        } else {
            self.queue.counts.dropped.inc();
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.processor.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.processor.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.processor.set_resource(resource);
    }
}

/// The end where they go out.
#[derive(Debug)]
pub(super) struct Out<E> {
    pub(super) exporter: E,
    pub(super) queue: Arc<Queue>,
}

impl<E: SpanExporter> SpanExporter for Out<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len();
        let exported = self.exporter.export(batch).await;
        self.queue.leave(spans);
        let count = u64::try_from(spans).unwrap_or(u64::MAX);
        match &exported {
            Ok(()) => {
                self.queue.counts.exported.inc_by(count);
            }
            Err(error) => {
                self.queue.counts.failed.inc_by(count);
                if self.queue.told.is_due(self.queue.clock.now()) {
                    tracing::warn!(%error, spans, "traces cannot be exported");
                }
            }
        }
        exported
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}
