//! A share of the requests over a sliding window, plus a floor (Gateway API GEP-3388).
use super::{Usage, in_proportion};

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
        put(current, limits.units_earned(usage));
        next
    }

    /// Pays for `retries`, all or none: the window does as far as it goes, then the floor.
    pub fn withdraw(self, limits: &Limits, retries: u32, now_ms: u64) -> Option<(Balance, Debit)> {
        let mut next = self.at(limits, now_ms);
        let by_window = retries.min(saturated(next.window() / RETRY_UNITS));
        let by_floor = retries.saturating_sub(by_window);
        let tokens = limits.floor.token().saturating_mul(u64::from(by_floor));
        next.floor = next.floor.checked_sub(tokens)?;
        let oldest_began = next.take_oldest(limits, by_window);
        Some((next, Debit { by_window, oldest_began }))
    }

    /// Whether one retry would be paid for.
    pub fn grants(self, limits: &Limits, now_ms: u64) -> bool {
        let next = self.at(limits, now_ms);
        RETRY_UNITS <= next.window() || limits.floor.token() <= next.floor
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
        let by_window = retries.min(debit.by_window);
        let units = u64::from(by_window).saturating_mul(RETRY_UNITS);
        next.add(limits, limits.slot_at(debit.oldest_began), units);
        (next, Debit { by_window: debit.by_window.saturating_sub(by_window), ..debit })
    }

    /// Carries what is in it over to other sizes, as of `now_ms`: floor tokens in proportion, and
    /// each slot's units into the slot that holds the old slot's start.
    #[must_use]
    pub fn rescaled(self, old: &Limits, new: &Limits, now_ms: u64) -> Balance {
        let was = self.at(old, now_ms);
        let floor = in_proportion(was.floor, old.floor.full(), new.floor.full());
        let mut next = Balance { units: [0; SLOTS], floor, at_ms: was.at_ms };
        for (slot, units) in was.slots(old) {
            next.add(new, new.slot_at(old.began(slot)), u64::from(units));
        }
        next
    }

    /// Whether nothing would be lost if a fresh one stood in its place.
    pub fn is_fresh(self, limits: &Limits, now_ms: u64) -> bool {
        let next = self.at(limits, now_ms);
        next.window() == 0 && next.floor == limits.floor.full()
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

    /// The number of each slot, and what is in it. A slot from before the clock began is empty.
    fn slots(&self, limits: &Limits) -> impl Iterator<Item = (u64, u32)> {
        let current = limits.slot(self.at_ms);
        let numbered = (0..).map(move |age| current.saturating_sub(age));
        numbered.zip(self.units.into_iter().rev())
    }

    /// Puts units into a slot, if the window holds it.
    fn add(&mut self, limits: &Limits, slot: u64, units: u64) {
        let age = limits.slot(self.at_ms).saturating_sub(slot);
        let place = usize::try_from(age).ok().and_then(|age| self.units.iter_mut().nth_back(age));
        if let Some(held) = place {
            put(held, units);
        }
    }

    /// Takes what `retries` cost out of the oldest slots. Tells when the oldest of them began, in
    /// tenths of a millisecond.
    fn take_oldest(&mut self, limits: &Limits, retries: u32) -> u64 {
        if retries == 0 {
            return 0;
        }
        let oldest = self.slots(limits).filter(|(_, units)| 0 < *units).last();
        let mut due = u64::from(retries).saturating_mul(RETRY_UNITS);
        for slot in &mut self.units {
            let taken = saturated(due.min(u64::from(*slot)));
            *slot -= taken;
            due -= u64::from(taken);
        }
        oldest.map_or(0, |(slot, _)| limits.began(slot))
    }
}

fn put(slot: &mut u32, units: u64) {
    *slot = saturated(u64::from(*slot).saturating_add(units));
}

/// What the window paid for one grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Debit {
    /// Retries.
    by_window: u32,
    /// When the oldest slot that paid began, in tenths of a millisecond.
    oldest_began: u64,
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
        self.slot_at(now_ms.saturating_mul(10))
    }

    /// The slot that holds a moment. In tenths of a millisecond every slot begins on a whole one.
    fn slot_at(&self, tenths: u64) -> u64 {
        tenths / self.interval_ms.max(1)
    }

    /// When a slot begins, in tenths of a millisecond.
    fn began(&self, slot: u64) -> u64 {
        slot.saturating_mul(self.interval_ms.max(1))
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
