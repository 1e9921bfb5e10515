//! The models once more, slowly: from the contract's text, over lists of events.
use retryd::budget::{Usage, bucket, ratio, throttle};
use retryd::engine::Class;

/// A ratio by its text: what each report put in, and when the floor paid.
pub(crate) struct SlowRatio {
    limits: ratio::Limits,
    started_ms: u64,
    now_ms: u64,
    /// Slot and units left of each report, the oldest first.
    reports: Vec<(u128, u128)>,
    /// When the floor paid.
    floor_paid_ms: Vec<u64>,
}

impl SlowRatio {
    pub(crate) fn new(limits: ratio::Limits, now_ms: u64) -> SlowRatio {
        SlowRatio {
            limits,
            started_ms: now_ms,
            now_ms,
            reports: Vec::new(),
            floor_paid_ms: Vec::new(),
        }
    }

    fn slot(&self) -> u128 {
        u128::from(self.now_ms) * 10 / u128::from(self.limits.interval_ms)
    }

    pub(crate) fn report(&mut self, now_ms: u64, usage: &Usage) {
        self.now_ms = self.now_ms.max(now_ms);
        let interval_ms = self.limits.interval_ms;
        let period_ms = usage.period_ms.unwrap_or(interval_ms).max(interval_ms);
        let requests = u128::from(usage.requests) * u128::from(interval_ms) / u128::from(period_ms);
        let slot = self.slot();
        let in_slot: u128 =
            self.reports.iter().filter(|(of, _)| *of == slot).map(|(_, left)| left).sum();
        let room = u128::from(u32::MAX) - in_slot;
        self.reports.push((slot, room.min(requests * u128::from(self.limits.percent))));
    }

    /// The floor's level in fractions of a token, 1 / interval each, from its whole history.
    fn floor(&self) -> u128 {
        let ratio::Floor { count, interval_ms } = self.limits.floor;
        let (count, token) = (u128::from(count), u128::from(interval_ms));
        let (mut level, mut since_ms) = (count * token, self.started_ms);
        for paid_ms in &self.floor_paid_ms {
            level = (level + u128::from(paid_ms - since_ms) * count).min(count * token) - token;
            since_ms = *paid_ms;
        }
        (level + u128::from(self.now_ms - since_ms) * count).min(count * token)
    }

    fn window(&self) -> u128 {
        let oldest = (self.slot() + 1).saturating_sub(10);
        self.reports.iter().filter(|(slot, _)| oldest <= *slot).map(|(_, left)| left).sum()
    }

    /// A refusal leaves no trace, not even that its moment was seen.
    pub(crate) fn ask(&mut self, now_ms: u64) -> bool {
        let seen_ms = self.now_ms;
        self.now_ms = seen_ms.max(now_ms);
        if 100 <= self.window() {
            let oldest = (self.slot() + 1).saturating_sub(10);
            let mut due = 100;
            for (_, left) in self.reports.iter_mut().filter(|(slot, _)| oldest <= *slot) {
                let taken = due.min(*left);
                *left -= taken;
                due -= taken;
            }
            true
        } else if u128::from(self.limits.floor.interval_ms) <= self.floor() {
            self.floor_paid_ms.push(self.now_ms);
            true
        } else {
            self.now_ms = seen_ms;
            false
        }
    }

    pub(crate) fn available(&mut self, now_ms: u64) -> u128 {
        let seen_ms = self.now_ms;
        self.now_ms = seen_ms.max(now_ms);
        let available =
            self.window() / 100 + self.floor() / u128::from(self.limits.floor.interval_ms);
        self.now_ms = seen_ms;
        available
    }
}

/// What a throttle holds after all of `counted`, in thousandths. A failure is `None`.
pub(crate) fn slow_throttle(limits: &throttle::Limits, counted: &[Option<u64>]) -> i128 {
    let full = 1_000 * i128::from(limits.tokens_max);
    counted.iter().fold(full, |tokens, event| match event {
        None => (tokens - 1_000).max(0),
        Some(successes) => {
            let earned = i128::from(*successes) * i128::from(limits.token_ratio_thousandths);
            (tokens + earned).min(full)
        }
    })
}

/// A bucket by its text, a token at a time.
pub(crate) struct SlowBucket {
    limits: bucket::Limits,
    tokens: i128,
}

impl SlowBucket {
    pub(crate) fn new(limits: bucket::Limits) -> SlowBucket {
        SlowBucket { limits, tokens: limits.capacity.into() }
    }

    fn price(&self, class: Class) -> i128 {
        let bucket::Costs { transient, throttling, timeout } = self.limits.costs;
        i128::from(match class {
            Class::Transient => transient,
            Class::Throttling => throttling,
            Class::Timeout => timeout,
        })
    }

    /// A report of many calls is as good as one of each.
    pub(crate) fn report(&mut self, usage: &Usage) {
        let of_class = [
            (Class::Transient, usage.retried_transient),
            (Class::Throttling, usage.retried_throttling),
            (Class::Timeout, usage.retried_timeout),
        ];
        let mut tokens = self.tokens + i128::from(usage.first_try_successes);
        let mut unnamed = i128::from(usage.retried_successes);
        for (class, successes) in of_class {
            tokens += i128::from(successes) * self.price(class);
            unnamed -= i128::from(successes);
        }
        let classes = [Class::Transient, Class::Throttling, Class::Timeout];
        let cheapest = classes.into_iter().map(|class| self.price(class)).min().unwrap();
        tokens += unnamed * cheapest;
        self.tokens = tokens.min(i128::from(self.limits.capacity));
    }

    pub(crate) fn ask(&mut self, class: Class) -> bool {
        let granted = self.price(class) <= self.tokens;
        if granted {
            self.tokens -= self.price(class);
        }
        granted
    }

    pub(crate) fn available(&self) -> i128 {
        self.tokens / self.price(Class::Transient)
    }
}
