//! Earned units in the pool, by slot.
use std::collections::BTreeMap;

const SLOTS: u64 = 10;
const UNITS_MAX: u64 = 4_294_967_295;

/// Earned units, by the moment that their slot began.
#[derive(Clone, Debug, Default)]
pub(super) struct Units(pub(super) BTreeMap<u64, u64>);

impl Units {
    pub(super) fn put(&mut self, began: u64, number: u64, interval_ms: u64, current: u64) {
        let slot = (began / interval_ms).min(current);
        if current < slot + SLOTS {
            let held = self.0.entry(slot * interval_ms).or_default();
            *held = (*held + number).min(UNITS_MAX);
        }
    }

    /// Takes the oldest.
    pub(super) fn take(&mut self, mut number: u64) -> Vec<(u64, u64)> {
        let mut taken = Vec::new();
        for (began, held) in &mut self.0 {
            let part = number.min(*held);
            (*held, number) = (*held - part, number - part);
            if 0 < part {
                taken.push((*began, part));
            }
        }
        taken
    }

    pub(super) fn total(&self) -> u64 {
        self.0.values().sum()
    }
}
