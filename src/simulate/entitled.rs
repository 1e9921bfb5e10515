//! What one exact budget would grant, that is never apart: the measure for all others.
use std::sync::Arc;

use super::contestants::{Failed, OPERATION, TENANT, question};
use super::hand::Hand;
use crate::admin::metrics::Metrics;
use crate::budget::{Memory, Usage};
use crate::clock::Dice;
use crate::decider::Decider;
use crate::policy::Policies;

/// One decider that is asked about every failed attempt.
pub(super) struct Entitled {
    decider: Decider<Memory>,
    hand: Hand,
    retries: u64,
}

impl Entitled {
    pub(super) fn new(policies: &Policies) -> Entitled {
        let hand = Hand::new();
        let store = Memory::new(policies.budgets());
        let metrics = Arc::new(Metrics::new());
        let decider = Decider::new(policies.clone(), store, hand.clock(), Dice::loaded(0), metrics);
        Entitled { decider, hand, retries: 0 }
    }

    /// Hears of calls.
    pub(super) fn deposit(&mut self, now_us: u64, usage: &Usage) {
        self.hand.move_to(now_us);
        self.decider.deposit(&self.decider.in_force(), TENANT, OPERATION, usage, |_| ());
    }

    /// Is asked about a failed attempt, with what its client tells beside it.
    pub(super) fn failed(&mut self, failed: &Failed, usage: Usage) {
        let now = self.hand.move_to(failed.now_us);
        let question = question(failed, usage);
        let in_force = self.decider.in_force();
        let said = self
            .decider
            .decide_drawn(&in_force, &question, now, failed.draw, |answer| answer.said());
        self.retries += u64::from(said.delay.is_some());
    }

    /// Retries that it would have granted.
    pub(super) fn retries(&self) -> u64 {
        self.retries
    }
}
