//! A share of the requests over a sliding window, plus a floor (Gateway API GEP-3388).
use super::window::{RETRY_UNITS, Window};
use super::{Usage, in_proportion, saturated};

/// What one ratio holds. A time before the latest one seen reads as that one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Balance {
    /// What requests earned.
    window: Window,
    /// Tokens of the floor, as [`Floor::token`] measures them.
    floor: u64,
}

impl Balance {
    /// An empty window and a full floor.
    pub fn fresh(limits: &Limits, now_ms: u64) -> Balance {
        Balance { window: Window::empty(now_ms), floor: limits.floor.full() }
    }

    /// Earns for the requests reported, in the slot of now.
    #[must_use]
    pub fn deposit(self, limits: &Limits, usage: &Usage, now_ms: u64) -> Balance {
        let mut next = self.at(limits, now_ms);
        next.window.deposit(limits.units_earned(usage));
        next
    }

    /// Pays for `retries`, all or none: the window does as far as it goes, then the floor.
    pub fn withdraw(self, limits: &Limits, retries: u32, now_ms: u64) -> Option<(Balance, Debit)> {
        let mut next = self.at(limits, now_ms);
        let by_window = retries.min(next.window.retries());
        let by_floor = retries.saturating_sub(by_window);
        let tokens = limits.floor.token().saturating_mul(u64::from(by_floor));
        next.floor = next.floor.checked_sub(tokens)?;
        let debit = Debit::of(&mut next.window, by_window, limits.interval_ms);
        Some((next, debit))
    }

    /// Whether one retry would be paid for.
    pub fn grants(self, limits: &Limits, now_ms: u64) -> bool {
        let next = self.at(limits, now_ms);
        0 < next.window.retries() || limits.floor.token() <= next.floor
    }

    /// Takes `retries` back: what the window paid, into the oldest slot that paid, if the window
    /// still holds it. What the floor paid is gone, since it has been refilling meanwhile.
    #[must_use]
    pub fn give_back(
        self,
        limits: &Limits,
        debit: Debit,
        retries: u32,
        now_ms: u64,
    ) -> (Balance, Debit) {
        let mut next = self.at(limits, now_ms);
        let left = debit.give_back(&mut next.window, retries, limits.interval_ms);
        (next, left)
    }

    /// Carries what is in it over to other sizes, as of `now_ms`: floor tokens in proportion, and
    /// each slot's units into the slot that holds the old slot's start.
    #[must_use]
    pub fn rescaled(self, old: &Limits, new: &Limits, now_ms: u64) -> Balance {
        let was = self.at(old, now_ms);
        let floor = in_proportion(was.floor, old.floor.full(), new.floor.full());
        Balance { window: was.window.rescaled(old.interval_ms, new.interval_ms), floor }
    }

    /// Whether nothing would be lost if a fresh one stood in its place.
    pub fn is_fresh(self, limits: &Limits, now_ms: u64) -> bool {
        let next = self.at(limits, now_ms);
        next.window.is_empty() && next.floor == limits.floor.full()
    }

    /// Whole retries that would be paid for now.
    pub fn available(self, limits: &Limits, now_ms: u64) -> u32 {
        let next = self.at(limits, now_ms);
        next.window.retries().saturating_add(saturated(next.floor / limits.floor.token()))
    }

    /// Moves the window on, and refills the floor.
    fn at(mut self, limits: &Limits, now_ms: u64) -> Balance {
        let elapsed_ms = self.window.move_on(limits.interval_ms, now_ms);
        self.floor = limits.floor.refilled(self.floor, elapsed_ms);
        self
    }
}

/// What the window paid for one grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Debit {
    /// Retries.
    by_window: u32,
    /// When the oldest slot that paid began, in tenths of a millisecond.
    oldest_began: u64,
}

impl Debit {
    /// Takes what `by_window` retries cost out of a window that holds so much.
    pub(super) fn of(window: &mut Window, by_window: u32, interval_ms: u64) -> Debit {
        let units = u64::from(by_window).saturating_mul(RETRY_UNITS);
        Debit { by_window, oldest_began: window.take_oldest(units, interval_ms) }
    }

    /// Puts the units of `retries` back, and tells what is left of the debit.
    pub(super) fn give_back(self, window: &mut Window, retries: u32, interval_ms: u64) -> Debit {
        let by_window = retries.min(self.by_window);
        let units = u64::from(by_window).saturating_mul(RETRY_UNITS);
        window.add(self.oldest_began, units, interval_ms);
        Debit { by_window: self.by_window.saturating_sub(by_window), ..self }
    }
}

/// Sizes of a ratio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Retries for each hundred requests, 0 to 1000.
    pub percent: u32,
    /// Length of the window, 1 s to 1 h.
    pub interval_ms: u64,
    /// What is granted without requests.
    pub floor: Floor,
}

impl Limits {
    /// What a fresh balance grants.
    pub fn capacity(&self) -> u32 {
        self.floor.count
    }

    /// What a report earns. Traffic older than the window pays for nothing: an hour of health,
    /// reported by the first failure, would open the budget for a storm.
    pub(super) fn units_earned(&self, usage: &Usage) -> u64 {
        let requests = match usage.period_ms {
            Some(period_ms) if self.interval_ms < period_ms => {
                usage.requests.saturating_mul(self.interval_ms) / period_ms
            }
            Some(_) | None => usage.requests,
        };
        requests.saturating_mul(u64::from(self.percent))
    }
}

/// A token bucket of `count` tokens that refills continuously, all of them over `interval_ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Floor {
    /// Tokens of a full floor, 0 to 1 000 000.
    pub count: u32,
    /// Time to fill it from empty, 1 s to 1 h.
    pub interval_ms: u64,
}

impl Floor {
    /// Nothing is granted without requests.
    pub(super) const NONE: Floor = Floor { count: 0, interval_ms: 1_000 };

    /// What a token is worth: a millisecond refills exactly `count` of these parts.
    pub(super) fn token(&self) -> u64 {
        self.interval_ms.max(1)
    }

    pub(super) fn full(&self) -> u64 {
        self.token().saturating_mul(u64::from(self.count))
    }

    fn refilled(&self, level: u64, elapsed_ms: u64) -> u64 {
        level.saturating_add(elapsed_ms.saturating_mul(u64::from(self.count))).min(self.full())
    }
}
