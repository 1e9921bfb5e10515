//! How many balances there may be, over all budgets and their twins.
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use super::grant::ShelfId;

/// Shared by all budgets of a store, and by the stores that follow it after a reload.
#[derive(Debug)]
pub(super) struct Room {
    balances_max: usize,
    taken: AtomicUsize,
    looked_at: AtomicU64,
    evicted: AtomicU64,
    overflowed: AtomicU64,
    shelves: AtomicU32,
    turn: AtomicUsize,
}

/// How full a store is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Occupancy {
    /// Balances in memory. Those that were only looked at are not among them.
    pub balances: usize,
    /// Balances looked at since the start, to find some that nobody uses any more.
    pub looked_at: u64,
    /// Balances dropped since the start because nobody used them.
    pub evicted: u64,
    /// Times that a key without a balance of its own used the overflow balance of its budget.
    pub overflowed: u64,
}

/// One search for balances that nobody uses any more.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Search {
    pub(super) looked_at: usize,
    pub(super) dropped: usize,
}

impl Room {
    pub(super) fn new(balances_max: usize) -> Room {
        Room {
            balances_max,
            taken: AtomicUsize::new(0),
            looked_at: AtomicU64::new(0),
            evicted: AtomicU64::new(0),
            overflowed: AtomicU64::new(0),
            shelves: AtomicU32::new(0),
            turn: AtomicUsize::new(0),
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.balances_max <= self.taken.load(Ordering::Relaxed)
    }

    pub(super) fn take(&self) -> bool {
        let one_more = |taken| (taken < self.balances_max).then_some(taken + 1);
        self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_ok()
    }

    pub(super) fn give_back(&self, balances: usize) {
        self.taken.fetch_sub(balances, Ordering::Relaxed);
    }

    /// Some balances were looked at, and those that nobody uses any more are gone.
    pub(super) fn searched(&self, Search { looked_at, dropped }: Search) {
        self.give_back(dropped);
        let count = |number| u64::try_from(number).unwrap_or(u64::MAX);
        self.looked_at.fetch_add(count(looked_at), Ordering::Relaxed);
        self.evicted.fetch_add(count(dropped), Ordering::Relaxed);
    }

    pub(super) fn overflowed(&self) {
        self.overflowed.fetch_add(1, Ordering::Relaxed);
    }

    /// A number that no shelf of these stores had before.
    pub(super) fn shelf_id(&self) -> ShelfId {
        ShelfId(self.shelves.fetch_add(1, Ordering::Relaxed))
    }

    /// Counts up, so that everyone who looks for room looks somewhere else.
    pub(super) fn turn(&self) -> usize {
        self.turn.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn occupancy(&self) -> Occupancy {
        Occupancy {
            balances: self.taken.load(Ordering::Relaxed),
            looked_at: self.looked_at.load(Ordering::Relaxed),
            evicted: self.evicted.load(Ordering::Relaxed),
            overflowed: self.overflowed.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_taken_than_there_is() {
        let room = Room::new(2);
        assert_eq!([(); 3].map(|()| room.take()), [true, true, false]);
        assert_eq!((room.is_full(), room.occupancy().balances), (true, 2));
        room.give_back(1);
        assert_eq!((room.is_full(), room.take(), room.take()), (false, true, false));
        assert!(!Room::new(0).take());
    }
}
