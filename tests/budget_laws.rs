//! Each model of a budget against a slow one, written from the contract's text over lists of
//! events; and the guarantee of a ratio over random histories.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]
use proptest::prelude::*;
use retryd::budget::{Usage, bucket, ratio, throttle};
use retryd::engine::Class;

use slow::{SlowBucket, SlowRatio, slow_throttle};

#[path = "budget_laws/slow.rs"]
mod slow;

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
        let mut balance = bucket::Balance::fresh(&limits);
        let mut slow = SlowBucket::new(limits);
        for event in events {
            match event {
                Event::Report { usage, .. } => {
                    slow.report(&usage);
                    balance = balance.deposit(&limits, &usage);
                }
                Event::Ask { class, .. } => {
                    let granted = slow.ask(class);
                    prop_assert_eq!(balance.grants(&limits, class), granted);
                    let next = balance.withdraw(&limits, class, 1).map(|(next, _)| next);
                    prop_assert_eq!(next.is_some(), granted);
                    balance = next.unwrap_or(balance);
                }
            }
            let available = i128::from(balance.available(&limits));
            prop_assert_eq!(available, slow.available());
        }
    }
}
