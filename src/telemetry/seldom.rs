//! A line of the log that comes once in a while, however often there is a reason for it.
use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use crate::clock::Now;

/// Time between two lines about the same trouble.
const BETWEEN: Duration = Duration::from_secs(10);

/// Whether it is time to tell of a trouble again.
#[derive(Debug, Default)]
pub struct Seldom {
    next_ms: AtomicU64,
}

impl Seldom {
    /// True for one of all who ask within ten seconds.
    pub fn is_due(&self, now: Now) -> bool {
        let next_ms = self.next_ms.load(Ordering::Relaxed);
        let between_ms = u64::try_from(BETWEEN.as_millis()).unwrap_or(u64::MAX);
        let after_ms = now.monotonic_ms.saturating_add(between_ms);
        next_ms <= now.monotonic_ms
            && self
                .next_ms
                .compare_exchange(next_ms, after_ms, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn once_in_ten_seconds() {
        let told = Seldom::default();
        let at = |monotonic_ms| Now { monotonic_ms, unix_ms: 0 };
        let due: Vec<bool> =
            [0, 1, 9_999, 10_000, 10_001, 50_000].map(|ms| told.is_due(at(ms))).into();
        assert_eq!(due, [true, false, false, true, false, true]);
    }
}
