//! What ends when nothing is served any more.
use std::time::Duration;

use super::{beside, store::Exchange, traces::Tracing};
use crate::decision_log::DecisionLog;
use crate::server::Ended;

/// What runs beside the server, and has something left to say when it has ended.
pub(super) struct Afterwards {
    pub(super) exchange: Option<Exchange>,
    pub(super) log: Option<DecisionLog>,
    pub(super) tracing: Option<Tracing>,
}

impl Afterwards {
    pub(super) async fn end(self, ended: &Ended, drain_timeout: Duration) {
        // Whoever is in a hurry waits neither for the store nor for a slow reader.
        let has_time = matches!(ended, Ended::Drained | Ended::Cut(_));
        if let (Some(exchange), true) = (self.exchange, has_time) {
            exchange.end().await;
        }
        if let (Some(log), true) = (self.log, has_time) {
            log.end(beside::LAST_LINES).await;
        }
        if let Some(tracing) = self.tracing {
            tracing.end(ended, drain_timeout).await;
        }
    }
}
