//! Each model of a budget by its examples in the contract, and at its edges.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]
use retryd::budget::{Usage, bucket, ratio, throttle};
use retryd::engine::Class;

fn ratio(percent: u32, floor_count: u32) -> ratio::Limits {
    let floor = ratio::Floor { count: floor_count, interval_ms: 1_000 };
    ratio::Limits { percent, interval_ms: 10_000, floor }
}

fn requests(requests: u64) -> Usage {
    Usage { requests, ..Usage::default() }
}

/// Takes what there is, and counts it.
fn drain(balance: &mut ratio::Balance, limits: &ratio::Limits, now_ms: u64) -> u32 {
    let shown = balance.available(limits, now_ms);
    let mut granted = 0;
    while let Some((next, _)) = balance.withdraw(limits, 1, now_ms) {
        *balance = next;
        granted += 1;
    }
    assert_eq!(granted, shown, "shown and granted");
    assert!(!balance.grants(limits, now_ms));
    granted
}

#[test]
fn a_ratio_never_loses_a_fraction() {
    let limits = ratio(70, 0);
    let mut balance = ratio::Balance::fresh(&limits, 0).deposit(&limits, &requests(7), 0);
    assert_eq!(drain(&mut balance, &limits, 0), 4);
    balance = balance.deposit(&limits, &requests(3), 1);
    assert_eq!(drain(&mut balance, &limits, 1), 3);
}

#[test]
fn b29_a_ratio_grants_exactly_its_share() {
    for (percent, reported, granted) in
        [(60, 100, 60), (30, 10, 3), (15, 1_000, 150), (1_000, 3, 30), (0, 1_000, 0)]
    {
        let limits = ratio(percent, 0);
        let fresh = ratio::Balance::fresh(&limits, 5_000);
        let mut balance = fresh.deposit(&limits, &requests(reported), 5_000);
        assert_eq!(drain(&mut balance, &limits, 5_000), granted, "{percent} % of {reported}");
    }
}

#[test]
fn a_ratio_forgets_a_slot_when_it_leaves_the_window() {
    let limits = ratio(100, 0);
    // Slots are 1 s long, and aligned: what is reported at 1999 ms sits in the slot of 1000 ms.
    for (reported_ms, asked_ms, granted) in [
        (0, 9_999, 1),
        (0, 10_000, 0),
        (999, 9_999, 1),
        (999, 10_000, 0),
        (1_999, 10_999, 1),
        (1_999, 11_000, 0),
        (1_999, u64::MAX, 0),
    ] {
        let fresh = ratio::Balance::fresh(&limits, reported_ms);
        let mut balance = fresh.deposit(&limits, &requests(1), reported_ms);
        let got = drain(&mut balance, &limits, asked_ms);
        assert_eq!(got, granted, "reported at {reported_ms}, asked at {asked_ms}");
    }
}

#[test]
fn a_ratio_takes_the_oldest_units_first() {
    let limits = ratio(100, 0);
    let balance = ratio::Balance::fresh(&limits, 0).deposit(&limits, &requests(2), 0).deposit(
        &limits,
        &requests(2),
        5_000,
    );
    let (balance, _) = balance.withdraw(&limits, 1, 9_000).unwrap();
    // One of the two old ones is gone with its slot; the young ones are untouched.
    assert_eq!(balance.available(&limits, 9_999), 3);
    assert_eq!(balance.available(&limits, 10_000), 2);
}

#[test]
fn a_retry_may_be_paid_from_several_slots_but_not_half_from_the_floor() {
    let limits = ratio(40, 1);
    let mut balance = ratio::Balance::fresh(&limits, 0);
    for now_ms in [0, 1_000, 2_000] {
        balance = balance.deposit(&limits, &requests(1), now_ms);
    }
    // 120 units: one retry from three slots, 20 left; then the floor's only token.
    assert_eq!(drain(&mut balance, &limits, 2_000), 2);
    // 20 + 40 units are no whole retry, and the floor has refilled no whole token either.
    balance = balance.deposit(&limits, &requests(1), 2_999);
    assert!(!balance.grants(&limits, 2_999));
    assert!(balance.grants(&limits, 3_000));
}

#[test]
fn a_floor_refills_continuously_and_keeps_nothing_beyond_its_count() {
    let limits = ratio(0, 3);
    let mut balance = ratio::Balance::fresh(&limits, 0);
    assert_eq!(drain(&mut balance, &limits, 0), 3);
    // A third of a second each; the remainder of 1000 / 3 is carried.
    for (now_ms, granted) in [(333, 0), (334, 1), (666, 0), (667, 1), (999, 0), (1_000, 1)] {
        assert_eq!(drain(&mut balance, &limits, now_ms), granted, "at {now_ms} ms");
    }
    assert_eq!(drain(&mut balance, &limits, 3_600_000), 3);
}

#[test]
fn a_floor_of_nothing_never_grants() {
    let limits = ratio(20, 0);
    assert_eq!(limits.capacity(), 0);
    let balance = ratio::Balance::fresh(&limits, 0);
    assert!(!balance.grants(&limits, 0) && !balance.grants(&limits, u64::MAX));
}

#[test]
fn a_report_older_than_the_window_pays_for_its_share_only() {
    let limits = ratio(100, 0);
    let hour_ms = 3_600_000;
    for (reported, period_ms, granted) in [
        (3_600, None, 3_600),
        (3_600, Some(10_000), 3_600),
        (3_600, Some(10_001), 3_599),
        (3_600, Some(20_000), 1_800),
        (3_600, Some(hour_ms), 10),
        (359, Some(hour_ms), 0),
        (719, Some(hour_ms), 1),
    ] {
        let usage = Usage { period_ms, ..requests(reported) };
        let mut balance = ratio::Balance::fresh(&limits, 0).deposit(&limits, &usage, 0);
        assert_eq!(drain(&mut balance, &limits, 0), granted, "{reported} over {period_ms:?} ms");
    }
}

#[test]
fn a_slot_saturates() {
    let limits = ratio(1_000, 0);
    let mut balance = ratio::Balance::fresh(&limits, 0);
    for _ in 0..3 {
        balance = balance.deposit(&limits, &requests(Usage::COUNT_MAX), 0);
    }
    assert_eq!(balance.available(&limits, 0), u32::MAX / 100);
    balance = balance.deposit(&limits, &requests(u64::MAX), 1_000);
    assert_eq!(balance.available(&limits, 1_000), u32::MAX / 50);
}

#[test]
fn a_clock_that_stands_still_or_goes_back_adds_nothing() {
    let limits = ratio(100, 2);
    let mut balance = ratio::Balance::fresh(&limits, 50_000);
    assert_eq!(drain(&mut balance, &limits, 50_000), 2);
    for now_ms in [50_000, 49_999, 0] {
        assert_eq!(drain(&mut balance, &limits, now_ms), 0, "at {now_ms} ms");
    }
    // A report of the past counts in the present, and time goes on from the latest moment seen.
    balance = balance.deposit(&limits, &requests(1), 0);
    assert_eq!(balance.available(&limits, 50_499), 1);
    assert_eq!(balance.available(&limits, 50_500), 2);
}

#[test]
fn a_ratio_of_no_length_does_not_panic() {
    let floor = ratio::Floor { count: 0, interval_ms: 0 };
    let limits = ratio::Limits { percent: 100, interval_ms: 0, floor };
    let usage = Usage { period_ms: Some(1), ..requests(5) };
    let balance = ratio::Balance::fresh(&limits, 0).deposit(&limits, &usage, u64::MAX);
    assert_eq!(balance.available(&limits, u64::MAX), 0);
}

const A6: throttle::Limits = throttle::Limits { tokens_max: 10, token_ratio_thousandths: 100 };

fn successes(first_try_successes: u64) -> Usage {
    Usage { first_try_successes, ..Usage::default() }
}

#[test]
fn the_fifth_failure_from_a_full_throttle_is_refused() {
    let mut balance = throttle::Balance::fresh(&A6);
    assert_eq!(A6.capacity(), 4);
    for left in [4, 3, 2, 1] {
        assert_eq!(balance.available(&A6), left);
        balance = balance.count_failure();
        assert!(balance.grants(&A6), "{left} left");
    }
    assert_eq!(balance.available(&A6), 0);
    assert!(!balance.count_failure().grants(&A6));
}

#[test]
fn an_empty_throttle_needs_61_successes_until_a_failure_is_granted() {
    let empty = (0..20).fold(throttle::Balance::fresh(&A6), |balance, _| balance.count_failure());
    assert!(!empty.deposit(&A6, &successes(60)).count_failure().grants(&A6));
    assert!(empty.deposit(&A6, &successes(61)).count_failure().grants(&A6));
    // Successes count alike, on the first attempt and later.
    let mixed = Usage { first_try_successes: 1, retried_successes: 60, ..Usage::default() };
    assert!(empty.deposit(&A6, &mixed).count_failure().grants(&A6));
}

#[test]
fn a_throttle_keeps_three_decimals_and_nothing_beyond_full() {
    let limits = throttle::Limits { tokens_max: 3, token_ratio_thousandths: 253 };
    let full = throttle::Balance::fresh(&limits);
    assert_eq!(full.deposit(&limits, &successes(u64::MAX)), full);
    // From 0: more than 1.5 tokens after the take are 2.5 before: ten successes are 2.53.
    let empty = full.count_failure().count_failure().count_failure();
    assert_eq!(empty.count_failure(), empty);
    assert!(!empty.deposit(&limits, &successes(9)).count_failure().grants(&limits));
    assert!(empty.deposit(&limits, &successes(10)).count_failure().grants(&limits));
}

#[test]
fn every_throttle_that_may_be_configured_can_grant() {
    for tokens_max in 3..=1_000 {
        let limits = throttle::Limits { tokens_max, token_ratio_thousandths: 1 };
        assert!(1 <= limits.capacity(), "{tokens_max}");
    }
}

fn bucket(capacity: u32, costs: bucket::Costs) -> bucket::Limits {
    bucket::Limits { capacity, costs }
}

fn spend(limits: &bucket::Limits, class: Class, times: usize) -> bucket::Balance {
    (0..times).fold(bucket::Balance::fresh(limits), |balance, _| {
        balance.withdraw(limits, class, 1).unwrap().0
    })
}

#[test]
fn a_retry_costs_by_the_class_of_its_failure() {
    let limits = bucket(500, bucket::Costs::AWS_2026);
    for (class, granted) in [(Class::Transient, 35), (Class::Throttling, 100), (Class::Timeout, 35)]
    {
        let drained = spend(&limits, class, granted);
        assert!(!drained.grants(&limits, class), "{class:?}");
    }
    assert_eq!(limits.capacity(), 35);
    // 10 tokens are left: too few for a transient failure, two retries after a throttled one.
    let left = spend(&limits, Class::Transient, 35);
    assert_eq!(left.available(&limits), 0);
    assert!(left.grants(&limits, Class::Throttling));
}

#[test]
fn b27_a_drained_bucket_heals_by_successes() {
    let limits = bucket(500, bucket::Costs::AWS_LEGACY);
    let drained = spend(&limits, Class::Transient, 100);
    assert!(!drained.grants(&limits, Class::Transient));
    let healed = drained.deposit(&limits, &successes(50));
    assert_eq!(healed.available(&limits), 10);
    let full = healed.deposit(&limits, &successes(Usage::COUNT_MAX));
    assert_eq!(full, bucket::Balance::fresh(&limits));
}

#[test]
fn a_retried_success_gives_back_what_its_class_costs() {
    let limits = bucket(1_000, bucket::Costs { transient: 14, throttling: 5, timeout: 10 });
    let retried = Usage { retried_successes: 1, ..Usage::default() };
    for (usage, tokens) in [
        (successes(1), 1),
        (Usage { retried_transient: 1, ..retried }, 14),
        (Usage { retried_throttling: 1, ..retried }, 5),
        (Usage { retried_timeout: 1, ..retried }, 10),
        (retried, 5),
        (Usage { retried_successes: 3, retried_transient: 1, ..retried }, 24),
        (requests(100), 0),
    ] {
        // A cost of 1 counts the tokens one by one.
        let empty = spend(&limits, Class::Timeout, 100);
        let counted = bucket(1_000, bucket::Costs { transient: 1, throttling: 1, timeout: 1 });
        assert_eq!(empty.deposit(&limits, &usage).available(&counted), tokens, "{usage:?}");
    }
}
