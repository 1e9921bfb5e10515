//! What the balances of one process know of the store and the fleet.
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::exchange::Standing;
use super::pools::Fleet;
use super::queue::Waiting;
use crate::budget::OnStoreLoss;

/// Shared by the store of balances, which reads it at every decision, and by the
/// [`Ticker`](super::Ticker), which writes it.
#[derive(Debug)]
pub struct Sharing {
    /// The fleet's clock minus this process's. It only grows: so a time never goes back.
    ahead_ms: AtomicU64,
    /// 0 while the store answers.
    lost_since_ms: AtomicU64,
    /// It answers, and serves no balance.
    is_refusing: AtomicBool,
    /// 0 if the store was never found empty.
    emptied_ms: AtomicU64,
    replicas_min: u32,
    replicas: AtomicU32,
    /// Shares that want to be exchanged and are not known to the ticker yet.
    pub(super) arrived: Mutex<Vec<Waiting>>,
    /// Told when there is one.
    pub(super) newcomer: Notify,
    pub(super) counts: Counts,
}

/// What the ticker counts.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) answered: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) unknown: AtomicU64,
    pub(super) losses: AtomicU64,
    pub(super) waiting: AtomicU64,
    pub(super) leased: AtomicU64,
}

/// How a process stands with its store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreState {
    /// The store does not answer, or has not yet: budgets go by what this process has.
    pub is_lost: bool,
    /// Replicas that share, this one included; at least as many as were named.
    pub replicas: u32,
    /// Exchanges answered since the start.
    pub answered: u64,
    /// Exchanges that the store has refused.
    pub refused: u64,
    /// Exchanges of which nobody knows what became.
    pub unknown: u64,
    /// Times that the store was lost.
    pub losses: u64,
    /// Balances that take part in the exchange.
    pub waiting: u64,
    /// Tokens given to this process since the start.
    pub leased: u64,
}

impl Sharing {
    /// `replicas_min`: how many replicas there are, as far as somebody has told. 0 counts as 1.
    pub fn new(replicas_min: u32) -> Sharing {
        Sharing {
            ahead_ms: AtomicU64::new(0),
            lost_since_ms: AtomicU64::new(0),
            is_refusing: AtomicBool::new(false),
            emptied_ms: AtomicU64::new(0),
            replicas_min: replicas_min.max(1),
            replicas: AtomicU32::new(replicas_min.max(1)),
            arrived: Mutex::new(Vec::new()),
            newcomer: Notify::new(),
            counts: Counts::default(),
        }
    }

    /// The fleet's time at `now_ms` of this process.
    pub(in crate::budget) fn fleet_ms(&self, now_ms: u64) -> u64 {
        // Whoever sees a step of time sees what was written before it.
        now_ms.saturating_add(self.ahead_ms.load(Ordering::Acquire))
    }

    /// How a budget stands.
    pub(in crate::budget) fn standing(&self, on_store_loss: OnStoreLoss) -> Standing {
        let emptied_ms = self.emptied_ms.load(Ordering::Relaxed);
        let lost_since_ms = self.lost_since_ms.load(Ordering::Relaxed);
        Standing {
            lost_since_ms: (lost_since_ms != 0).then_some(lost_since_ms),
            emptied_ms: (emptied_ms != 0).then_some(emptied_ms),
            replicas: self.replicas.load(Ordering::Relaxed),
            on_store_loss,
        }
    }

    /// A share wants to be exchanged.
    pub(in crate::budget) fn arrives(&self, waiting: Waiting) {
        self.arrived.lock().push(waiting);
        self.newcomer.notify_one();
    }

    /// How this process stands with its store.
    pub fn state(&self) -> StoreState {
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        StoreState {
            is_lost: self.lost_since_ms.load(Ordering::Relaxed) != 0
                || self.is_refusing.load(Ordering::Relaxed)
                || !self.knows_time(),
            replicas: self.replicas.load(Ordering::Relaxed),
            answered: count(&self.counts.answered),
            refused: count(&self.counts.refused),
            unknown: count(&self.counts.unknown),
            losses: count(&self.counts.losses),
            waiting: count(&self.counts.waiting),
            leased: count(&self.counts.leased),
        }
    }

    /// Somebody has told the fleet's time, at `now_ms` of this process.
    pub(super) fn learn_time(&self, fleet_ms: u64, now_ms: u64) {
        self.ahead_ms.fetch_max(fleet_ms.saturating_sub(now_ms), Ordering::Release);
    }

    /// Whether the fleet's time was ever told.
    pub(super) fn knows_time(&self) -> bool {
        self.ahead_ms.load(Ordering::Relaxed) != 0
    }

    pub(super) fn found(&self, fleet: &Fleet) {
        // While the store is away the last number stays.
        self.replicas.store(fleet.replicas.max(self.replicas_min), Ordering::Relaxed);
        self.emptied_ms.store(fleet.emptied_ms.unwrap_or(0), Ordering::Relaxed);
        self.lost_since_ms.store(0, Ordering::Relaxed);
    }

    /// Whether the store serves any balance. Only for show: each balance finds out for itself.
    pub(super) fn serves(&self, serves: bool) {
        if self.is_refusing.swap(!serves, Ordering::Relaxed) == serves && !serves {
            self.counts.losses.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn lost(&self, since_ms: u64) {
        self.lost_since_ms.store(since_ms.max(1), Ordering::Relaxed);
        self.counts.losses.fetch_add(1, Ordering::Relaxed);
    }
}
