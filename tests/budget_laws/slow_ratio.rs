//! A ratio by its text: what each report put in, and when the floor paid.
use retryd::budget::Usage;
use retryd::budget::ratio::{Floor, Limits};

#[derive(Clone)]
pub(crate) struct Ratio {
    pub(crate) limits: Limits,
    /// The latest moment seen.
    now_ms: u64,
    /// What was put in, the oldest slot first.
    earned: Vec<Earned>,
    /// The level that the floor last started from, and when.
    floor_from: (u64, u128),
    /// When the floor has paid since, and how many tokens.
    floor_paid: Vec<(u64, u128)>,
}

/// Units of one report, or given back at once.
#[derive(Clone, Copy)]
struct Earned {
    /// When their slot began, in tenths of a millisecond: a slot is a tenth of the interval.
    began: u128,
    left: u128,
}

/// What the window paid for a grant.
#[derive(Clone, Copy)]
pub(crate) struct Debit {
    retries: u32,
    /// When the oldest slot that paid began.
    began: u128,
}

impl Ratio {
    pub(crate) fn new(limits: Limits, now_ms: u64) -> Ratio {
        let full = u128::from(limits.floor.count) * u128::from(limits.floor.interval_ms);
        let floor_from = (now_ms, full);
        Ratio { limits, now_ms, earned: Vec::new(), floor_from, floor_paid: Vec::new() }
    }

    /// The same, seen at another moment. Time only goes forward.
    pub(crate) fn at(&self, now_ms: u64) -> Ratio {
        Ratio { now_ms: self.now_ms.max(now_ms), ..self.clone() }
    }

    /// "`requests`, or `requests * interval / period` rounded down if `period` is longer than its
    /// interval", times `percent`, into the current slot.
    pub(crate) fn report(&mut self, usage: &Usage) {
        let interval_ms = u128::from(self.limits.interval_ms);
        let period_ms = u128::from(usage.period_ms.unwrap_or(0)).max(interval_ms);
        let requests = u128::from(usage.requests) * interval_ms / period_ms;
        self.put(u128::from(self.now_ms) * 10, requests * u128::from(self.limits.percent));
    }

    /// Takes one retry after the other, "window first, then floor". `None` leaves things as they
    /// are: not even the moment was seen.
    pub(crate) fn pay(&self, retries: u32) -> Option<(Ratio, Debit)> {
        let mut next = self.clone();
        let mut debit = Debit { retries: 0, began: u128::MAX };
        for _ in 0..retries {
            if 100 <= next.window() {
                debit.retries += 1;
                debit.began = debit.began.min(next.take_oldest());
            } else if u128::from(next.limits.floor.interval_ms) <= next.floor() {
                next.floor_paid.push((next.now_ms, 1));
            } else {
                return None;
            }
        }
        Some((next, debit))
    }

    /// "Window units into the oldest slot that paid, if the window still holds it. What the floor
    /// paid is not given back." After a reload the slot is the one that holds its start.
    pub(crate) fn give_back(&mut self, debit: &mut Debit, retries: u32) {
        let retries = retries.min(debit.retries);
        debit.retries -= retries;
        self.put(debit.began, u128::from(retries) * 100);
    }

    /// "Floor tokens become x * new size / old size, rounded down": to the part of a token that is
    /// kept, 1 / interval. A floor of no size had nothing. "A new `interval` moves each old slot's
    /// units into the new slot that holds the old slot's start."
    pub(crate) fn reload(&mut self, new: Limits) {
        let (old_count, new_count) = (self.limits.floor.count, new.floor.count);
        let old_token = u128::from(self.limits.floor.interval_ms);
        let moved = self.floor() * u128::from(new_count) * u128::from(new.floor.interval_ms);
        let level = moved / (u128::from(old_count.max(1)) * old_token);
        self.floor_from = (self.now_ms, level);
        self.floor_paid.clear();
        let held = self.held().to_vec();
        self.earned.clear();
        self.limits = new;
        for Earned { began, left } in held {
            self.put(began, left);
        }
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.now_ms
    }

    pub(crate) fn available(&self) -> u128 {
        self.window() / 100 + self.floor() / u128::from(self.limits.floor.interval_ms)
    }

    pub(crate) fn is_fresh(&self) -> bool {
        let Floor { count, interval_ms } = self.limits.floor;
        self.window() == 0 && self.floor() == u128::from(count) * u128::from(interval_ms)
    }

    pub(crate) fn window(&self) -> u128 {
        self.held().iter().map(|earned| earned.left).sum()
    }

    /// The floor's level in parts of a token, 1 / interval each: "refills continuously (elapsed *
    /// count / interval, remainder carried, nothing kept beyond `count`)".
    pub(crate) fn floor(&self) -> u128 {
        let Floor { count, interval_ms } = self.limits.floor;
        let (count, token) = (u128::from(count), u128::from(interval_ms));
        let refilled = |level: u128, passed_ms: u64| {
            (level + u128::from(passed_ms) * count).min(count * token)
        };
        let (mut since_ms, mut level) = self.floor_from;
        for (paid_ms, tokens) in &self.floor_paid {
            level = refilled(level, paid_ms - since_ms) - tokens * token;
            since_ms = *paid_ms;
        }
        refilled(level, self.now_ms - since_ms)
    }

    /// "The window is the current slot and the nine before it."
    fn held(&self) -> &[Earned] {
        let current = u128::from(self.now_ms) * 10 / self.tenths();
        let gone = self.earned.partition_point(|earned| earned.began / self.tenths() + 9 < current);
        &self.earned[gone..]
    }

    /// Into the slot that holds `moment`, if the window holds it. "The units of one slot saturate
    /// at 2^32 - 1."
    fn put(&mut self, moment: u128, units: u128) {
        let slot = moment / self.tenths();
        let current = u128::from(self.now_ms) * 10 / self.tenths();
        if 0 < units && current <= slot + 9 {
            let began = slot * self.tenths();
            let there: u128 =
                self.earned.iter().filter(|of| of.began == began).map(|of| of.left).sum();
            let left = units.min(u128::from(u32::MAX) - there);
            let place = self.earned.partition_point(|earned| earned.began <= began);
            self.earned.insert(place, Earned { began, left });
        }
    }

    /// "A retry costs 100 units, taken from the oldest slots first". Tells when the oldest began.
    fn take_oldest(&mut self) -> u128 {
        let gone = self.earned.len() - self.held().len();
        let (mut due, mut oldest) = (100, u128::MAX);
        for earned in &mut self.earned[gone..] {
            let taken = due.min(earned.left);
            if 0 < taken {
                oldest = oldest.min(earned.began);
            }
            earned.left -= taken;
            due -= taken;
        }
        oldest
    }

    /// The length of a slot in tenths of a millisecond.
    fn tenths(&self) -> u128 {
        u128::from(self.limits.interval_ms)
    }
}
