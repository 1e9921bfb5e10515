//! Traces: one span a call, for callers who trace theirs. W3C Trace Context in, OTLP over gRPC out.
//!
//! ```text
//! traceparent ─▶ not sampled? no span ─▶ span of the call ─▶ queue, bounded ─▶ collector
//! ```
//!
//! Off without an endpoint, and never for health. The span is made by the library itself: one by
//! `tracing` would cost every call a fifth of its time, sampled or not.
mod export;
mod parent;
mod settings;
mod span;

pub use self::settings::{BadVariable, Settings};
pub use self::span::CallSpan;

use std::{fmt, time::Duration};

use http::HeaderMap;
use opentelemetry::{
    KeyValue,
    trace::{Span as _, SpanKind, Tracer as _, TracerProvider as _},
};
use opentelemetry_otlp::{
    ExporterBuildError, SpanExporter, WithExportConfig as _, WithTonicConfig as _,
    tonic_types::transport::ClientTlsConfig,
};
use opentelemetry_sdk::{
    Resource,
    trace::{BatchSpanProcessor, SdkTracer, SdkTracerProvider},
};

use self::export::{In, Out, Queue};
use crate::{
    admin::{calls::Method, spans::SpanCounts},
    clock::Clock,
};

/// How the names of the methods begin that are traced.
const OURS: &str = "retryd.v1.";

/// Makes the spans of calls, and sends them to a collector.
pub struct Traces {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
    follows_parent: bool,
}

impl Traces {
    /// Begins to trace. Connects when there is the first span to send. To be called in a runtime.
    ///
    /// # Errors
    ///
    /// If the exporter cannot go by its variables.
    pub fn begin(
        settings: Settings,
        counts: SpanCounts,
        clock: Clock,
    ) -> Result<Traces, ExporterBuildError> {
        let Settings { endpoint, sampler, follows_parent, is_named, waiting_max } = settings;
        let mut exporter = SpanExporter::builder().with_tonic();
        if endpoint.starts_with("https://") {
            // Without them nobody is trusted.
            let roots = ClientTlsConfig::new().with_enabled_roots();
            exporter = exporter.with_tls_config(roots);
        }
        let exporter = exporter.with_endpoint(endpoint).build()?;
        let queue = Queue::new(waiting_max, counts, clock);
        let exporter = Out { exporter, queue: queue.clone() };
        // A thread of its own, with a queue of OTEL_BSP_MAX_QUEUE_SIZE before it.
        let processor = In { processor: BatchSpanProcessor::builder(exporter).build(), queue };
        let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
        let mut resource = Resource::builder().with_attribute(version);
        if !is_named {
            resource = resource.with_service_name("retryd");
        }
        let provider = SdkTracerProvider::builder()
            .with_span_processor(processor)
            .with_sampler(sampler)
            .with_resource(resource.build())
            .build();
        Ok(Traces { tracer: provider.tracer("retryd"), provider, follows_parent })
    }

    /// The span of a call of `method`, if it is sampled. Only methods of retryd's own services have one.
    pub fn span(&self, method: Method, headers: &HeaderMap) -> Option<CallSpan> {
        if self.follows_parent && parent::is_unsampled(headers) {
            return None;
        }
        let method = Some(method.name()).filter(|name| name.starts_with(OURS))?;
        let builder = self.tracer.span_builder(method).with_kind(SpanKind::Server);
        let mut span = self.tracer.build_with_context(builder, &parent::of(headers));
        if !span.is_recording() {
            return None;
        }
        span.set_attributes([
            KeyValue::new("rpc.system.name", "grpc"),
            KeyValue::new("rpc.method", method),
        ]);
        Some(CallSpan::of(span))
    }

    /// Sends what still waits, for as long as there is time.
    pub async fn end(&self, within: Duration) {
        let provider = self.provider.clone();
        let flushed = tokio::task::spawn_blocking(move || provider.shutdown_with_timeout(within));
        // It may wait for a collector that does not answer: then the process ends without it.
        tokio::time::timeout(within, flushed).await.ok();
    }
}

impl fmt::Debug for Traces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Traces").finish_non_exhaustive()
    }
}
