//! A share of the requests over a sliding window, plus a floor (Gateway API GEP-3388).
use super::Usage;

/// Slots of the window: the current one and the nine before it.
const SLOTS: usize = 10;

/// What a retry costs. A request earns `percent` of these, so that no fraction is ever lost.
const RETRY_UNITS: u64 = 100;

/// What one ratio holds. A time before the latest one seen reads as that one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Balance {
    /// What requests earned, by slot, the oldest first. The last slot is the one of `at_ms`.
    units: [u32; SLOTS],
    /// Tokens of the floor, as [`Floor::token`] measures them.
    floor: u64,
    /// The latest time seen.
    at_ms: u64,
}

impl Balance {
    /// An empty window and a full floor.
    pub fn fresh(limits: &Limits, now_ms: u64) -> Balance {
        Balance { units: [0; SLOTS], floor: limits.floor.full(), at_ms: now_ms }
    }

    /// Earns for the requests reported, in the slot of now.
    #[must_use]
    pub fn deposit(self, limits: &Limits, usage: &Usage, now_ms: u64) -> Balance {
        let mut next = self.at(limits, now_ms);
        let [.., current] = &mut next.units;
        *current = saturated(u64::from(*current).saturating_add(limits.units_earned(usage)));
        next
    }

    /// Pays for one retry: the window does, else the floor. `None` if neither can.
    pub fn withdraw(self, limits: &Limits, now_ms: u64) -> Option<Balance> {
        let mut next = self.at(limits, now_ms);
        if RETRY_UNITS <= next.window() {
            next.take_oldest();
        } else {
            next.floor = next.floor.checked_sub(limits.floor.token())?;
        }
        Some(next)
    }

    /// Whether one retry would be paid for.
    pub fn grants(self, limits: &Limits, now_ms: u64) -> bool {
        self.withdraw(limits, now_ms).is_some()
    }

    /// Whole retries that would be paid for now.
    pub fn available(self, limits: &Limits, now_ms: u64) -> u32 {
        let next = self.at(limits, now_ms);
        saturated((next.window() / RETRY_UNITS).saturating_add(next.floor / limits.floor.token()))
    }

    /// Moves the window on, and refills the floor.
    fn at(mut self, limits: &Limits, now_ms: u64) -> Balance {
        if self.at_ms < now_ms {
            let passed = limits.slot(now_ms).saturating_sub(limits.slot(self.at_ms));
            let passed = usize::try_from(passed).map_or(SLOTS, |passed| passed.min(SLOTS));
            self.units.rotate_left(passed);
            self.units.iter_mut().rev().take(passed).for_each(|left| *left = 0);
            self.floor = limits.floor.refilled(self.floor, now_ms.saturating_sub(self.at_ms));
            self.at_ms = now_ms;
        }
        self
    }

    fn window(&self) -> u64 {
        self.units.iter().copied().map(u64::from).sum()
    }

    fn take_oldest(&mut self) {
        let mut due = saturated(RETRY_UNITS);
        for slot in &mut self.units {
            let taken = due.min(*slot);
            *slot -= taken;
            due -= taken;
        }
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

    /// Slots are aligned to the clock and not to the first request.
    fn slot(&self, now_ms: u64) -> u64 {
        now_ms.saturating_mul(10) / self.interval_ms.max(1)
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
    /// What a token is worth: a millisecond refills exactly `count` of these parts.
    fn token(&self) -> u64 {
        self.interval_ms.max(1)
    }

    fn full(&self) -> u64 {
        self.token().saturating_mul(u64::from(self.count))
    }

    fn refilled(&self, level: u64, elapsed_ms: u64) -> u64 {
        level.saturating_add(elapsed_ms.saturating_mul(u64::from(self.count))).min(self.full())
    }
}

fn saturated(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
