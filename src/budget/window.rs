//! What requests earned, by the time they were made: the sliding window of a ratio.
use super::saturated;

/// Slots of the window: the current one and the nine before it.
pub(super) const SLOTS: usize = 10;

/// What a retry costs. A request earns `percent` of these, so that no fraction is ever lost.
pub(super) const RETRY_UNITS: u64 = 100;

/// Units in ten slots, which are aligned to the clock and not to the first request. A moment that
/// a slot begins at is told in tenths of a millisecond, which makes it a whole number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    /// The oldest slot first. The last one is the slot of `at_ms`.
    units: [u32; SLOTS],
    /// The latest time seen.
    at_ms: u64,
}

impl Window {
    pub(super) fn empty(now_ms: u64) -> Window {
        Window { units: [0; SLOTS], at_ms: now_ms }
    }

    /// Moves on to `now_ms`, and tells how much time has passed. A time before the latest one seen
    /// changes nothing.
    pub(super) fn move_on(&mut self, interval_ms: u64, now_ms: u64) -> u64 {
        let elapsed_ms = now_ms.saturating_sub(self.at_ms);
        if 0 < elapsed_ms {
            let passed = slot(now_ms, interval_ms).saturating_sub(slot(self.at_ms, interval_ms));
            let passed = usize::try_from(passed).map_or(SLOTS, |passed| passed.min(SLOTS));
            self.units.rotate_left(passed);
            self.units.iter_mut().rev().take(passed).for_each(|left| *left = 0);
            self.at_ms = now_ms;
        }
        elapsed_ms
    }

    /// Earns in the slot of now.
    pub(super) fn deposit(&mut self, units: u64) {
        let [.., current] = &mut self.units;
        put(current, units);
    }

    pub(super) fn units(&self) -> u64 {
        self.units.iter().copied().map(u64::from).sum()
    }

    /// Whole retries that it would pay for.
    pub(super) fn retries(&self) -> u32 {
        saturated(self.units() / RETRY_UNITS)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.units == [0; SLOTS]
    }

    /// Puts units into the slot that holds a moment, if the window holds it. A moment to come
    /// counts as now: a unit never gets younger than it is.
    pub(super) fn add(&mut self, began: u64, units: u64, interval_ms: u64) {
        let age = slot(self.at_ms, interval_ms).saturating_sub(slot_at(began, interval_ms));
        let place = usize::try_from(age).ok().and_then(|age| self.units.iter_mut().nth_back(age));
        if let Some(held) = place {
            put(held, units);
        }
    }

    /// Takes units out of the oldest slots. Tells when the oldest of these began; 0 if none is
    /// taken.
    pub(super) fn take_oldest(&mut self, units: u64, interval_ms: u64) -> u64 {
        if units == 0 {
            return 0;
        }
        let oldest = self.slots(interval_ms).filter(|(_, units)| 0 < *units).last();
        let mut due = units;
        for slot in &mut self.units {
            due -= u64::from(take(slot, due));
        }
        oldest.map_or(0, |(began, _)| began)
    }

    /// Takes units out of the newest slots. Tells when each of these began, and what it gave.
    pub(super) fn take_newest(&mut self, units: u64, interval_ms: u64) -> Vec<(u64, u32)> {
        let began = self.slots(interval_ms).map(|(began, _)| began);
        let mut due = units;
        let taken = began.zip(self.units.iter_mut().rev()).map(|(began, slot)| {
            let taken = take(slot, due);
            due -= u64::from(taken);
            (began, taken)
        });
        taken.filter(|(_, taken)| 0 < *taken).collect()
    }

    /// Carries each slot's units over into the slot of another length that holds its start.
    #[must_use]
    pub(super) fn rescaled(&self, old_interval_ms: u64, new_interval_ms: u64) -> Window {
        let mut next = Window::empty(self.at_ms);
        for (began, units) in self.slots(old_interval_ms) {
            next.add(began, u64::from(units), new_interval_ms);
        }
        next
    }

    /// When each slot began, and what is in it, the newest first. A slot from before the clock
    /// began is empty.
    fn slots(&self, interval_ms: u64) -> impl Iterator<Item = (u64, u32)> + use<> {
        let current = slot(self.at_ms, interval_ms);
        let began = move |age| current.saturating_sub(age).saturating_mul(interval_ms.max(1));
        (0..).map(began).zip(self.units.into_iter().rev())
    }
}

fn slot(now_ms: u64, interval_ms: u64) -> u64 {
    slot_at(now_ms.saturating_mul(10), interval_ms)
}

/// The slot that holds a moment. In tenths of a millisecond every slot begins on a whole one.
fn slot_at(tenths: u64, interval_ms: u64) -> u64 {
    tenths / interval_ms.max(1)
}

fn put(slot: &mut u32, units: u64) {
    *slot = saturated(u64::from(*slot).saturating_add(units));
}

/// Takes up to `due` out of a slot, and tells how much.
fn take(slot: &mut u32, due: u64) -> u32 {
    let taken = saturated(due.min(u64::from(*slot)));
    *slot -= taken;
    taken
}
