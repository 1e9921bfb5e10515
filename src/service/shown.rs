//! What the console looks at, besides asking.
use std::sync::Arc;

use super::Retryd;
use crate::admin::metrics::Metrics;
use crate::budget::{Listed, Store};
use crate::decider::Decider;

impl<S: Store> Retryd<S> {
    /// Who decides.
    pub fn decider(&self) -> &Decider<S> {
        &self.decider
    }

    /// What is counted.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// The `count` emptiest balances. Like `ListBudgets` it waits for its turn to go over all of
    /// them, and does that on a thread that does not decide. `None` if it ended early.
    pub async fn emptiest(&self, count: usize) -> Option<Vec<Listed>> {
        let turn = Arc::clone(&self.listing).acquire_owned().await.ok()?;
        let decider = Arc::clone(&self.decider);
        let listed = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            decider.list(&decider.in_force(), None, count, |_| true)
        });
        listed.await.ok()
    }
}
