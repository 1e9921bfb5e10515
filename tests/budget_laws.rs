//! Each model of a budget against a slow one, written from the contract's text over lists of
//! events; and the guarantee of a ratio over random histories.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]
use proptest::prelude::*;
use retryd::budget::{Usage, bucket, ratio, throttle};
use retryd::engine::Class;

/// What happens to a balance, `after_ms` later than what happened before.
#[derive(Clone, Copy, Debug)]
enum Event {
    Report { after_ms: i64, usage: Usage },
    Ask { after_ms: i64, class: Class },
}

impl Event {
    fn after_ms(self) -> i64 {
        match self {
            Event::Report { after_ms, .. } | Event::Ask { after_ms, .. } => after_ms,
        }
    }
}

fn class() -> impl Strategy<Value = Class> {
    prop_oneof![Just(Class::Transient), Just(Class::Throttling), Just(Class::Timeout)]
}

fn usage() -> impl Strategy<Value = Usage> {
    let count = || prop_oneof![8 => 0..40_u64, 1 => 0..=Usage::COUNT_MAX];
    let retried = (0..9_u64, 0..9_u64, 0..9_u64, 0..9_u64);
    let period_ms = prop_oneof![Just(None), (1..100_000_u64).prop_map(Some)];
    (count(), count(), retried, period_ms).prop_map(|(requests, first_try, retried, period_ms)| {
        let (retried_transient, retried_throttling, retried_timeout, without_class) = retried;
        let with_class = retried_transient + retried_throttling + retried_timeout;
        Usage {
            requests,
            first_try_successes: first_try,
            retried_successes: with_class + without_class,
            retried_transient,
            retried_throttling,
            retried_timeout,
            period_ms,
        }
    })
}

/// Gaps at the edges of slots and of the window, and now and then a step back.
fn after_ms(interval_ms: u64) -> impl Strategy<Value = i64> {
    let (slot_ms, window_ms) = (interval_ms as i64 / 10, interval_ms as i64);
    prop_oneof![
        6 => Just(0),
        4 => 0..50_i64,
        4 => slot_ms - 1..=slot_ms + 1,
        2 => 0..2 * window_ms,
        1 => window_ms - 1..=window_ms + 1,
        1 => -slot_ms..0,
    ]
}

fn events(interval_ms: u64) -> impl Strategy<Value = Vec<Event>> {
    let report = (after_ms(interval_ms), usage())
        .prop_map(|(after_ms, usage)| Event::Report { after_ms, usage });
    let ask = (after_ms(interval_ms), class())
        .prop_map(|(after_ms, class)| Event::Ask { after_ms, class });
    prop::collection::vec(prop_oneof![1 => report, 4 => ask], 1..120)
}

fn ratio_limits() -> impl Strategy<Value = ratio::Limits> {
    let percent = prop_oneof![Just(0), Just(70), 1..=100_u32, 0..=1_000_u32];
    let interval_ms = prop_oneof![Just(1_000), Just(10_000), 1_000..20_000_u64];
    let floor = (0..12_u32, prop_oneof![Just(1_000), 1_000..5_000_u64])
        .prop_map(|(count, interval_ms)| ratio::Floor { count, interval_ms });
    (percent, interval_ms, floor).prop_map(|(percent, interval_ms, floor)| ratio::Limits {
        percent,
        interval_ms,
        floor,
    })
}

/// A ratio by its text: what each report put in, and when the floor paid.
struct SlowRatio {
    limits: ratio::Limits,
    started_ms: u64,
    now_ms: u64,
    /// Slot and units left of each report, the oldest first.
    reports: Vec<(u128, u128)>,
    /// When the floor paid.
    floor_paid_ms: Vec<u64>,
}

impl SlowRatio {
    fn new(limits: ratio::Limits, now_ms: u64) -> SlowRatio {
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

    fn report(&mut self, now_ms: u64, usage: &Usage) {
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
    fn ask(&mut self, now_ms: u64) -> bool {
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

    fn available(&mut self, now_ms: u64) -> u128 {
        let seen_ms = self.now_ms;
        self.now_ms = seen_ms.max(now_ms);
        let available =
            self.window() / 100 + self.floor() / u128::from(self.limits.floor.interval_ms);
        self.now_ms = seen_ms;
        available
    }
}

/// The moments of a history, each after the one before.
fn timed(events: &[Event], start_ms: u64) -> impl Iterator<Item = (u64, Event)> {
    let mut now_ms = start_ms;
    events.iter().map(move |event| {
        now_ms = now_ms.saturating_add_signed(event.after_ms());
        (now_ms, *event)
    })
}

fn start_ms() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), 0..30_000_u64, Just(u64::from(u32::MAX) * 1_000)]
}

fn ratio_history() -> impl Strategy<Value = (ratio::Limits, u64, Vec<Event>)> {
    ratio_limits().prop_flat_map(|limits| (Just(limits), start_ms(), events(limits.interval_ms)))
}

proptest! {
    #[test]
    fn a_ratio_does_what_its_text_says((limits, start_ms, events) in ratio_history()) {
        let mut slow = SlowRatio::new(limits, start_ms);
        let mut balance = ratio::Balance::fresh(&limits, start_ms);
        for (now_ms, event) in timed(&events, start_ms) {
            match event {
                Event::Report { usage, .. } => {
                    slow.report(now_ms, &usage);
                    balance = balance.deposit(&limits, &usage, now_ms);
                }
                Event::Ask { .. } => {
                    let granted = balance.grants(&limits, now_ms);
                    prop_assert_eq!(granted, slow.ask(now_ms), "at {} ms", now_ms);
                    let next = balance.withdraw(&limits, 1, now_ms).map(|(next, _)| next);
                    prop_assert_eq!(next.is_some(), granted);
                    balance = next.unwrap_or(balance);
                }
            }
            let available = balance.available(&limits, now_ms);
            prop_assert_eq!(u128::from(available), slow.available(now_ms), "at {} ms", now_ms);
        }
    }

    /// Retries granted in any time T <= percent x requests reported in (T + interval)
    /// + floor count x (1 + T / floor interval). Every ask takes all it can get.
    #[test]
    fn a_ratio_keeps_its_guarantee((limits, start_ms, events) in ratio_history()) {
        let mut balance = ratio::Balance::fresh(&limits, start_ms);
        let (mut grants, mut reports) = (Vec::new(), Vec::new());
        let mut latest_ms = start_ms;
        for (now_ms, event) in timed(&events, start_ms) {
            latest_ms = latest_ms.max(now_ms);
            match event {
                Event::Report { usage, .. } => {
                    let usage = Usage { requests: usage.requests.min(40), ..usage };
                    reports.push((latest_ms, usage.requests));
                    balance = balance.deposit(&limits, &usage, latest_ms);
                }
                Event::Ask { .. } => {
                    let mut granted = 0_u64;
                    while let Some((next, _)) = balance.withdraw(&limits, 1, latest_ms) {
                        balance = next;
                        granted += 1;
                    }
                    grants.push((latest_ms, granted));
                }
            }
        }
        for (first, (from_ms, _)) in grants.iter().enumerate() {
            let mut granted = 0;
            for (to_ms, count) in &grants[first..] {
                granted += count;
                let time_ms = to_ms - from_ms;
                let reported: u64 = reports
                    .iter()
                    .filter(|(at_ms, _)| {
                        from_ms.saturating_sub(limits.interval_ms) <= *at_ms && at_ms <= to_ms
                    })
                    .map(|(_, requests)| requests)
                    .sum();
                // Both sides times 100 and times the floor's interval, to stay whole.
                let floor = limits.floor;
                let bound = u64::from(limits.percent) * reported * floor.interval_ms
                    + 100 * u64::from(floor.count) * (floor.interval_ms + time_ms);
                prop_assert!(
                    granted * 100 * floor.interval_ms <= bound,
                    "{} granted from {} to {} ms, {} reported", granted, from_ms, to_ms, reported
                );
            }
        }
    }

    #[test]
    fn a_throttle_does_what_its_text_says(
        tokens_max in 3..=1_000_u32,
        token_ratio_thousandths in prop_oneof![1..2_000_u32, 1..=1_000_000_u32],
        events in events(1_000),
        failures_first in 0..600_usize,
    ) {
        let limits = throttle::Limits { tokens_max, token_ratio_thousandths };
        let mut counted = Vec::new();
        let mut balance = throttle::Balance::fresh(&limits);
        for _ in 0..failures_first {
            counted.push(None);
            balance = balance.count_failure();
        }
        for event in events {
            match event {
                Event::Report { usage, .. } => {
                    counted.push(Some(usage.first_try_successes + usage.retried_successes));
                    balance = balance.deposit(&limits, &usage);
                }
                Event::Ask { .. } => {
                    counted.push(None);
                    balance = balance.count_failure();
                }
            }
            let mut tokens = slow_throttle(&limits, &counted);
            let grants = |tokens: i128| 2 * tokens > 1_000 * i128::from(tokens_max);
            prop_assert_eq!(balance.grants(&limits), grants(tokens));
            let mut granted_ahead = 0;
            while grants(tokens - 1_000) {
                tokens -= 1_000;
                granted_ahead += 1;
            }
            prop_assert_eq!(balance.available(&limits), granted_ahead);
        }
    }

    #[test]
    fn a_bucket_does_what_its_text_says(
        capacity in 1..=600_u32,
        shares in (1..=1_000_u32, 1..=1_000_u32, 1..=1_000_u32),
        events in events(1_000),
    ) {
        let cost = |share: u32| (capacity * share / 5_000).max(1);
        let costs = bucket::Costs {
            transient: cost(shares.0), throttling: cost(shares.1), timeout: cost(shares.2),
        };
        let limits = bucket::Limits { capacity, costs };
        let price = |class| i128::from(match class {
            Class::Transient => costs.transient,
            Class::Throttling => costs.throttling,
            Class::Timeout => costs.timeout,
        });
        let mut balance = bucket::Balance::fresh(&limits);
        let mut tokens = i128::from(capacity);
        for event in events {
            match event {
                Event::Report { usage, .. } => {
                    // Reports of every call of its own: one by one is the same as all at once.
                    let of_class = [
                        (Class::Transient, usage.retried_transient),
                        (Class::Throttling, usage.retried_throttling),
                        (Class::Timeout, usage.retried_timeout),
                    ];
                    tokens += i128::from(usage.first_try_successes);
                    let mut unnamed = i128::from(usage.retried_successes);
                    for (class, successes) in of_class {
                        tokens += i128::from(successes) * price(class);
                        unnamed -= i128::from(successes);
                    }
                    let classes = [Class::Transient, Class::Throttling, Class::Timeout];
                    tokens += unnamed * classes.into_iter().map(price).min().unwrap();
                    tokens = tokens.min(i128::from(capacity));
                    balance = balance.deposit(&limits, &usage);
                }
                Event::Ask { class, .. } => {
                    let granted = price(class) <= tokens;
                    prop_assert_eq!(balance.grants(&limits, class), granted);
                    let next = balance.withdraw(&limits, class, 1).map(|(next, _)| next);
                    prop_assert_eq!(next.is_some(), granted);
                    if let Some(next) = next {
                        balance = next;
                        tokens -= price(class);
                    }
                }
            }
            let available = i128::from(balance.available(&limits));
            prop_assert_eq!(available, tokens / price(Class::Transient));
        }
    }
}

/// What a throttle holds after all of `counted`, in thousandths. A failure is `None`.
fn slow_throttle(limits: &throttle::Limits, counted: &[Option<u64>]) -> i128 {
    let full = 1_000 * i128::from(limits.tokens_max);
    counted.iter().fold(full, |tokens, event| match event {
        None => (tokens - 1_000).max(0),
        Some(successes) => {
            let earned = i128::from(*successes) * i128::from(limits.token_ratio_thousandths);
            (tokens + earned).min(full)
        }
    })
}
