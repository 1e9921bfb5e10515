//! How long a call took: told once, at its end, however it ends.
use http::Request;
use tonic::Code;

use super::origin::Origin;
use crate::{admin::calls::Method, clock::Moment, traces::CallSpan};

/// A call that has begun, and whose end nobody has told yet.
#[derive(Debug)]
pub(super) struct Timed {
    method: Method,
    began: Moment,
    span: Option<CallSpan>,
}

impl Timed {
    pub(super) fn begin<B>(request: &Request<B>, origin: &Origin) -> Timed {
        let method = Method::of(request.uri().path());
        origin.metrics.calls.begun(method);
        let traces = origin.served.traces.as_ref();
        let span = traces.and_then(|traces| traces.span(method, request.headers()));
        Timed { method, began: origin.clock.moment(), span }
    }

    pub(super) fn began(&self) -> Moment {
        self.began
    }

    /// The span of the call, if it is traced.
    pub(super) fn span(&self) -> Option<&CallSpan> {
        self.span.as_ref()
    }

    pub(super) fn end(self, code: Code, origin: &Origin) {
        let took_ns = origin.clock.moment().ns_since(self.began);
        origin.metrics.calls.ended(self.method, code as usize, took_ns);
        if let Some(span) = self.span {
            span.end(code);
        }
    }
}
