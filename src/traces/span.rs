//! The span of one call.
use std::sync::Arc;

use opentelemetry::{
    KeyValue,
    trace::{Span as _, Status},
};
use opentelemetry_sdk::trace::Span;
use parking_lot::Mutex;
use tonic::Code;

use crate::admin::calls::status_name;

/// The span of one call. Clones are the same span. It stands in the extensions of a request that is
/// traced.
///
/// No name of a tenant or an operation is written to it: such a name may be a person's, and a trace
/// goes to whoever reads traces.
#[derive(Clone, Debug)]
pub struct CallSpan(Arc<Mutex<Span>>);

impl CallSpan {
    pub(super) fn of(span: Span) -> CallSpan {
        CallSpan(Arc::new(Mutex::new(span)))
    }

    /// Says how the call was decided.
    pub fn decided(&self, verdict: &'static str, reason: &'static str, policy: &str) {
        self.0.lock().set_attributes([
            KeyValue::new("retryd.verdict", verdict),
            KeyValue::new("retryd.reason", reason),
            KeyValue::new("retryd.policy", policy.to_owned()),
        ]);
    }

    /// Ends it, with the status of the call.
    pub(crate) fn end(&self, code: Code) {
        let name = status_name(code as usize);
        let mut span = self.0.lock();
        span.set_attribute(KeyValue::new("rpc.response.status_code", name));
        if is_fault(code) {
            span.set_attribute(KeyValue::new("error.type", name));
            span.set_status(Status::error(""));
        }
        span.end();
    }
}

/// As the semantic conventions for gRPC have it: whether the status is an error of the server.
fn is_fault(code: Code) -> bool {
    match code {
        Code::Unknown
        | Code::DeadlineExceeded
        | Code::Unimplemented
        | Code::Internal
        | Code::Unavailable
        | Code::DataLoss => true,
        Code::Ok
        | Code::Cancelled
        | Code::InvalidArgument
        | Code::NotFound
        | Code::AlreadyExists
        | Code::PermissionDenied
        | Code::ResourceExhausted
        | Code::FailedPrecondition
        | Code::Aborted
        | Code::OutOfRange
        | Code::Unauthenticated => false,
    }
}
