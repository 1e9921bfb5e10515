//! How long a call took: told once, at its end, however it ends.
use tonic::Code;

use super::origin::Origin;
use crate::{admin::calls::Method, clock::Moment};

/// A call that has begun, and whose end nobody has told yet.
#[derive(Debug)]
pub(super) struct Timed {
    method: Method,
    began: Moment,
}

impl Timed {
    pub(super) fn begin(path: &str, origin: &Origin) -> Timed {
        let method = Method::of(path);
        origin.metrics.calls.begun(method);
        Timed { method, began: origin.clock.moment() }
    }

    pub(super) fn began(&self) -> Moment {
        self.began
    }

    pub(super) fn end(self, code: Code, origin: &Origin) {
        let took_ns = origin.clock.moment().ns_since(self.began);
        origin.metrics.calls.ended(self.method, code as usize, took_ns);
    }
}
