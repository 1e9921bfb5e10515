//! What the console looks at. Nobody proves a name there: who may reach it is its own affair.
use std::sync::Arc;

use super::Retryd;
use crate::admin::metrics::Metrics;
use crate::budget::{Listed, Store};
use crate::decider::Decider;
use crate::wire::refusal::Refusal;
use crate::wire::{decision, pb};

impl<S: Store> Retryd<S> {
    /// Who decides.
    pub fn decider(&self) -> &Decider<S> {
        &self.decider
    }

    /// What is counted.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// What would be decided about an attempt, and the budgets that would pay, by one revision. For
    /// people who look: they may ask for every tenant, and it is a dry run whatever the context says.
    ///
    /// # Errors
    ///
    /// Names every wrong field.
    pub fn preview(
        &self,
        context: &pb::RetryContext,
    ) -> Result<(pb::Decision, Vec<pb::BudgetState>), Refusal> {
        let in_force = self.decider.in_force();
        let context = pb::RetryContext { dry_run: true, ..context.clone() };
        let decision = self.decide_by(&in_force, &context, self.decider.now(), decision::write)?;
        Ok((decision, self.states(&in_force, &context.tenant, &context.operation)))
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
