//! What was counted lately: samples of the counters, and what they grew by since.
use std::collections::VecDeque;

use crate::admin::metrics::{Metrics, Refused};
use crate::engine::Rule;

/// The longest time that [`Recent::before`] can look back.
pub(super) const KEPT_MS: u64 = 10 * 60 * 1_000;

/// The counters at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// In the order of [`Rule::ALL`].
    pub(super) decided: [u64; Rule::ALL.len()],
    /// In the order of [`Refused::ALL`].
    pub(super) refused: [u64; Refused::ALL.len()],
}

impl Counts {
    pub(super) fn of(metrics: &Metrics) -> Counts {
        Counts { decided: metrics.decisions(), refused: metrics.requests_refused() }
    }
}

/// Samples of the last ten minutes, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Recent(VecDeque<(u64, Counts)>);

impl Recent {
    /// Takes a sample, and drops those that nobody needs any more.
    pub(super) fn take(&mut self, now_ms: u64, counts: Counts) {
        self.0.push_back((now_ms, counts));
        let is_old = |sample: Option<&(u64, Counts)>| {
            sample.is_some_and(|(at_ms, _)| at_ms.saturating_add(KEPT_MS) <= now_ms)
        };
        // The first one that is old stays: the window begins there.
        while is_old(self.0.get(1)) {
            self.0.pop_front();
        }
    }

    /// The counters as they stood `ms` before `now_ms`, or at the last sample before that. A process
    /// that is younger had counted nothing.
    pub(super) fn before(&self, now_ms: u64, ms: u64) -> Counts {
        let is_then = |(at_ms, _): &&(u64, Counts)| at_ms.saturating_add(ms) <= now_ms;
        self.0.iter().rev().find(is_then).map(|(_, counts)| *counts).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(retries: u64) -> Counts {
        let mut counts = Counts::default();
        counts.decided[Rule::Retryable as usize] = retries;
        counts
    }

    #[test]
    fn looking_back_finds_the_last_sample_that_is_old_enough() {
        let mut recent = Recent::default();
        for (at_ms, retries) in [(0, 1), (5_000, 2), (10_000, 3)] {
            recent.take(at_ms, counts(retries));
        }
        for (now_ms, ms, retries) in [
            (10_000, 0, 3),
            (10_000, 5_000, 2),
            (10_001, 5_001, 2),
            (14_999, 5_000, 2),
            (15_000, 5_000, 3),
            (10_000, 10_000, 1),
            (10_000, 10_001, 0),
        ] {
            assert_eq!(recent.before(now_ms, ms), counts(retries), "{ms} ms before {now_ms}");
        }
    }

    #[test]
    fn ten_minutes_are_kept_and_no_more() {
        let mut recent = Recent::default();
        for place in 0..1_000 {
            recent.take(place * 5_000, counts(place));
        }
        let now_ms = 999 * 5_000;
        assert_eq!(recent.before(now_ms, KEPT_MS), counts(999 - 120));
        assert_eq!(recent.0.len(), 121);
    }
}
