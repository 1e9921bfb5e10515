//! The service in this process alone, for commands that ask it themselves.
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::admin::metrics::Metrics;
use crate::budget::Memory;
use crate::clock::{Clock, Dice};
use crate::decider::Decider;
use crate::policy::Policies;
use crate::service::Retryd;

/// Answers by `policies`, from budgets that are fresh and end with it. Whoever asks has the file in
/// hand: `callers` play no part.
pub(super) fn offline(policies: Policies, clock: Clock, dice: Dice) -> Retryd<Memory> {
    let policies = policies.open_to_all();
    let metrics = Arc::new(Metrics::new());
    let store = Memory::new(policies.budgets());
    let decider = Decider::new(policies, store, clock, dice, Arc::clone(&metrics));
    Retryd::new(Arc::new(decider), metrics, CancellationToken::new())
}
