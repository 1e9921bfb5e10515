//! The bound on what a ratio grants in one window of its history, in whole numbers.
//!
//! Over any time T, retries granted and not released, from one balance, are no more than
//! percent x requests reported in (T + interval) + floor count x (1 + T / floor interval). A report
//! over a period longer than the interval counts with the interval's share of its requests. What is
//! acquired may be used `valid_for` later: retries used in T were granted in T + `valid_for`, and
//! that window is one of those looked at.
//!
//! Over reloads the same holds with the percent under which each report came, the longest interval
//! and the largest count under which anything was granted in T, and each part of T divided by the
//! floor interval of its time. Units never get younger: their slot begins no later than the report,
//! and a reload or a release moves them to one that begins no later. The filled part of a floor
//! does not change with its size: it begins at 1 at the most, and refills T / floor interval.
use std::fmt;

use retryd::budget::ratio::Limits;

/// Floors in tests refill in one of these times, so that what they refill is a whole number of
/// [`FLOOR_PARTS`].
pub(crate) const FLOOR_INTERVALS_MS: [u64; 6] = [1_000, 1_500, 2_000, 3_500, 5_000, 60_000];
const FLOOR_PARTS: u128 = 420_000;

/// One event of a history.
#[derive(Debug)]
pub(crate) struct Happened {
    pub(crate) at_ms: u64,
    /// The sizes in force, from this event on.
    pub(crate) limits: Limits,
    /// Units that the reported requests are worth, of which a retry costs 100.
    units: u128,
    pub(crate) granted: u32,
    /// From which event's grants, and how many retries.
    pub(crate) released: Option<(usize, u32)>,
}

impl Happened {
    pub(crate) fn nothing(at_ms: u64, limits: Limits) -> Happened {
        Happened { at_ms, limits, units: 0, granted: 0, released: None }
    }

    pub(crate) fn reports(&mut self, requests: u64, period_ms: Option<u64>) {
        let interval_ms = self.limits.interval_ms;
        let period_ms = period_ms.unwrap_or(0).max(interval_ms);
        let requests = u128::from(requests) * u128::from(interval_ms) / u128::from(period_ms);
        self.units = requests * u128::from(self.limits.percent);
    }
}

/// What happened from one event to a later one.
pub(crate) struct Window<'h> {
    happened: &'h [Happened],
    first: usize,
    last: usize,
    /// Granted and not released.
    granted: u32,
    interval_ms_max: u64,
    floor_count_max: u32,
    /// How often an empty floor would have filled, in [`FLOOR_PARTS`].
    refilled: u128,
}

impl<'h> Window<'h> {
    pub(crate) fn from(happened: &'h [Happened], first: usize) -> Window<'h> {
        let (interval_ms_max, floor_count_max) = (0, 0);
        let last = first;
        Window { happened, first, last, granted: 0, interval_ms_max, floor_count_max, refilled: 0 }
    }

    /// Lets it end with the event `last`, the same as before or the next one.
    pub(crate) fn grow_to(&mut self, last: usize) {
        let (before, event) = (&self.happened[self.last], &self.happened[last]);
        let refilled = FLOOR_PARTS / u128::from(before.limits.floor.interval_ms);
        self.refilled += u128::from(event.at_ms - before.at_ms) * refilled;
        self.last = last;
        self.granted += event.granted;
        if let Some((_, retries)) = event.released.filter(|(of, _)| self.first <= *of) {
            self.granted -= retries;
        }
        if 0 < event.granted {
            self.interval_ms_max = self.interval_ms_max.max(event.limits.interval_ms);
            self.floor_count_max = self.floor_count_max.max(event.limits.floor.count);
        }
    }

    pub(crate) fn is_within_bound(&self) -> bool {
        let floor = u128::from(self.floor_count_max) * (FLOOR_PARTS + self.refilled);
        100 * u128::from(self.granted) * FLOOR_PARTS <= self.units() * FLOOR_PARTS + 100 * floor
    }

    /// Of all reports in the window, and in the interval before it.
    fn units(&self) -> u128 {
        let from_ms = self.happened[self.first].at_ms;
        self.happened[..=self.last]
            .iter()
            .filter(|event| from_ms < event.at_ms + self.interval_ms_max)
            .map(|event| event.units)
            .sum()
    }
}

impl fmt::Debug for Window<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time_ms = self.happened[self.last].at_ms - self.happened[self.first].at_ms;
        write!(f, "{} retries in {time_ms} ms, {} units reported", self.granted, self.units())
    }
}
