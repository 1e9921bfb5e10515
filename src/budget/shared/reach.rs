//! Whether the store is within reach, for one balance.
use super::exchange::Standing;
use crate::budget::OnStoreLoss;

/// Exchanges of this balance alone that must fail before the store counts as lost for it.
const MISSED_MAX: u8 = 4;

/// How the store stands for all, and for this balance alone: a part of it may be away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reach {
    pub(super) standing: Standing,
    /// Exchanges of this balance that failed since the last one that did not.
    missed: u8,
    alone_since_ms: Option<u64>,
}

impl Reach {
    pub(super) fn new(standing: Standing) -> Reach {
        Reach { standing, missed: 0, alone_since_ms: None }
    }

    /// An exchange of this balance was answered.
    pub(super) fn found(&mut self) {
        (self.missed, self.alone_since_ms) = (0, None);
    }

    /// An exchange of this balance has failed.
    pub(super) fn missed(&mut self, now_ms: u64) {
        self.missed = self.missed.saturating_add(1);
        if self.missed == MISSED_MAX {
            self.alone_since_ms = Some(now_ms);
        }
    }

    /// Since when what is granted rests on this replica alone.
    pub(super) fn lost_since_ms(&self) -> Option<u64> {
        self.standing.lost_since_ms.or(self.alone_since_ms)
    }

    /// The store is lost, and the budget grants nothing without it.
    pub(super) fn is_denied(&self) -> bool {
        self.lost_since_ms().is_some() && self.standing.on_store_loss == OnStoreLoss::Deny
    }
}
