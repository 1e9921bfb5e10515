//! A clock whose hand the events move.
use std::time::Duration;

use crate::clock::{Clock, Now};

/// Stands still between events.
#[derive(Debug)]
pub(super) struct Hand {
    clock: Clock,
    now_ms: u64,
}

impl Hand {
    pub(super) fn new() -> Hand {
        Hand { clock: Clock::standing_at(Now { monotonic_ms: 0, unix_ms: 0 }), now_ms: 0 }
    }

    /// The clock. Its clones move along.
    pub(super) fn clock(&self) -> Clock {
        self.clock.clone()
    }

    /// Moves on to `now_us`, in whole milliseconds.
    pub(super) fn move_to(&mut self, now_us: u64) -> Now {
        let now_ms = now_us / 1_000;
        self.clock.advance(Duration::from_millis(now_ms.saturating_sub(self.now_ms)));
        self.now_ms = self.now_ms.max(now_ms);
        self.clock.now()
    }
}
