//! How much more may be remembered, over all shards.
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts what is taken, and never more than there may be.
pub(super) struct Room {
    entries: Share,
    bytes: Share,
}

impl Room {
    pub(super) fn new(entries_max: usize, bytes_max: usize) -> Room {
        Room { entries: Share::new(entries_max), bytes: Share::new(bytes_max) }
    }

    /// Room for one entry of this size; false if there is none now.
    pub(super) fn take(&self, bytes: usize) -> bool {
        if !self.entries.take(1) {
            return false;
        }
        let taken = self.bytes.take(bytes);
        if !taken {
            self.entries.give_back(1);
        }
        taken
    }

    pub(super) fn give_back(&self, bytes: usize) {
        self.bytes.give_back(bytes);
        self.entries.give_back(1);
    }

    /// Whether an entry of this size would fit if it were the only one.
    pub(super) fn could_hold(&self, bytes: usize) -> bool {
        1 <= self.entries.max && bytes <= self.bytes.max
    }

    #[cfg(test)]
    pub(super) fn entries(&self) -> usize {
        self.entries.taken.load(Ordering::Relaxed)
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.bytes.taken.load(Ordering::Relaxed)
    }
}

struct Share {
    taken: AtomicUsize,
    max: usize,
}

impl Share {
    fn new(max: usize) -> Share {
        Share { taken: AtomicUsize::new(0), max }
    }

    fn take(&self, amount: usize) -> bool {
        let more = |taken: usize| taken.checked_add(amount).filter(|sum| *sum <= self.max);
        self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    fn give_back(&self, amount: usize) {
        self.taken.fetch_sub(amount, Ordering::Relaxed);
    }
}
