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
fn the_capacity_of_a_ratio_is_its_floor() {
    let limits = ratio(20, 7);
    assert_eq!(
        [limits.capacity(), ratio::Balance::fresh(&limits, 0).available(&limits, 0)],
        [7, 7]
    );
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

/// `reported` holds when, and how many requests.
fn fed(limits: &ratio::Limits, reported: &[(u64, u64)]) -> ratio::Balance {
    let fresh = ratio::Balance::fresh(limits, 0);
    reported
        .iter()
        .fold(fresh, |balance, (now_ms, of)| balance.deposit(limits, &requests(*of), *now_ms))
}

#[test]
fn a_ratio_pays_for_several_retries_or_for_none() {
    let limits = ratio(100, 3);
    let balance = fed(&limits, &[(0, 2)]);
    assert_eq!(balance.withdraw(&limits, 6, 0), None);
    assert!(balance.withdraw(&limits, u32::MAX, 0).is_none());
    let (mut rest, _) = balance.withdraw(&limits, 4, 0).unwrap();
    // The window first, then the floor: one token is left, and what the window earns.
    assert_eq!(rest.available(&limits, 0), 1);
    rest = rest.deposit(&limits, &requests(1), 0);
    assert_eq!(drain(&mut rest, &limits, 0), 2);
}

#[test]
fn what_the_window_paid_comes_back_and_what_the_floor_paid_does_not() {
    let limits = ratio(100, 3);
    for (retries, come_back) in [(0, 0), (1, 1), (2, 2), (3, 2), (4, 2), (u32::MAX, 2)] {
        let (paid, debit) = fed(&limits, &[(0, 2)]).withdraw(&limits, 4, 0).unwrap();
        let (paid, left) = paid.give_back(&limits, debit, retries, 0);
        assert_eq!(paid.available(&limits, 0), 1 + come_back, "{retries} given back");
        // The rest comes back later, and nothing comes back twice.
        let (paid, left) = paid.give_back(&limits, left, 4, 0);
        assert_eq!(paid.available(&limits, 0), 3, "after {retries}, all given back");
        assert_eq!(paid.give_back(&limits, left, 4, 0), (paid, left));
    }
}

#[test]
fn units_come_back_into_the_oldest_slot_that_paid() {
    let limits = ratio(100, 0);
    let balance = fed(&limits, &[(0, 1), (1_000, 1), (5_000, 1)]);
    let (balance, first) = balance.withdraw(&limits, 1, 5_000).unwrap();
    let (balance, second) = balance.withdraw(&limits, 2, 5_000).unwrap();
    for (now_ms, debit, retries, available) in [
        (9_999, first, 1, 1),
        (10_000, first, 1, 0),
        // Both come back into the slot of 1000 ms, which was the older of the two.
        (10_999, second, 2, 2),
        (10_999, second, 1, 1),
        (11_000, second, 2, 0),
        (u64::MAX, second, 2, 0),
    ] {
        let (given_back, _) = balance.give_back(&limits, debit, retries, now_ms);
        assert_eq!(given_back.available(&limits, now_ms), available, "{debit:?} at {now_ms} ms");
    }
    let (given_back, _) = balance.give_back(&limits, second, 2, 6_000);
    assert_eq!([10_999, 11_000].map(|now_ms| given_back.available(&limits, now_ms)), [2, 0]);
}

#[test]
fn a_reload_keeps_the_filled_part_of_a_floor() {
    let sized = |count, interval_ms| {
        let floor = ratio::Floor { count, interval_ms };
        ratio::Limits { floor, ..ratio(0, 0) }
    };
    let old = sized(10, 1_000);
    let full = ratio::Balance::fresh(&old, 0);
    let (seven, _) = full.withdraw(&old, 3, 0).unwrap();
    for (balance, new, available) in [
        (full, sized(5, 1_000), 5),
        (full, sized(20, 1_000), 20),
        (full, sized(10, 60_000), 10),
        (seven, sized(20, 1_000), 14),
        (seven, sized(5, 1_000), 3),
        (seven, sized(5, 60_000), 3),
        (seven, sized(1, 1_000), 0),
        (seven, sized(0, 1_000), 0),
        (seven, old, 7),
    ] {
        let moved = balance.rescaled(&old, &new, 0);
        assert_eq!(moved.available(&new, 0), available, "{new:?}");
    }
    // Half a token is kept: the other half refills in a tenth of a second.
    let five = sized(5, 1_000);
    let moved = seven.rescaled(&old, &five, 0);
    assert_eq!([99, 100].map(|now_ms| moved.available(&five, now_ms)), [3, 4]);
    // The old rate held until now: 3 tokens came back by it, and none by the new one.
    let moved = seven.rescaled(&old, &five, 300);
    assert_eq!(moved.available(&five, 300), 5);
    // A floor that had no size starts empty.
    let moved = ratio::Balance::fresh(&sized(0, 1_000), 0).rescaled(&sized(0, 1_000), &old, 0);
    assert_eq!([0, 99, 100].map(|now_ms| moved.available(&old, now_ms)), [0, 0, 1]);
}

#[test]
fn a_reload_moves_units_to_the_slot_that_holds_their_old_slots_start() {
    let every = |interval_ms| ratio::Limits { interval_ms, ..ratio(100, 0) };
    for (from_s, to_s, reported_ms, reloaded_ms, last_ms) in [
        // Slots of 1 s become slots of 0.5 s, ten of which reach 5 s back.
        (10, 5, 24_999, 28_499, Some(28_999)),
        (10, 5, 24_999, 29_000, None),
        (10, 5, 25_000, 29_499, Some(29_999)),
        (10, 5, 25_999, 29_999, Some(29_999)),
        (10, 5, 25_999, 30_000, None),
        // Slots of 0.5 s become slots of 1 s: what came at 25.5 s goes with what came at 25 s.
        (5, 10, 25_999, 30_000, Some(34_999)),
        (5, 10, 26_000, 30_000, Some(35_999)),
        (5, 10, 25_499, 30_000, None),
        (10, 10, 25_999, 30_000, Some(34_999)),
    ] {
        let (old, new) = (every(from_s * 1_000), every(to_s * 1_000));
        let moved = fed(&old, &[(reported_ms, 1)]).rescaled(&old, &new, reloaded_ms);
        let case = format!("{from_s} s to {to_s} s, reported at {reported_ms} ms");
        let Some(last_ms) = last_ms else {
            assert_eq!(moved.available(&new, reloaded_ms), 0, "{case}");
            continue;
        };
        let at_its_end = [last_ms, last_ms + 1].map(|now_ms| moved.available(&new, now_ms));
        assert_eq!(at_its_end, [1, 0], "{case}");
    }
}

#[test]
fn what_was_paid_before_a_reload_comes_back_into_its_slot() {
    let every = |interval_ms| ratio::Limits { interval_ms, ..ratio(100, 0) };
    // Its slot began at 1000.5 ms, and is now the one of 900.9 ms, which ends before 1001 ms.
    let (old, new) = (every(10_005), every(1_001));
    let (paid, debit) = fed(&old, &[(1_500, 1)]).withdraw(&old, 1, 1_500).unwrap();
    let moved = paid.rescaled(&old, &new, 1_500);
    let (given_back, _) = moved.give_back(&new, debit, 1, 1_500);
    assert_eq!([1_901, 1_902].map(|now_ms| given_back.available(&new, now_ms)), [1, 0]);
}

#[test]
fn a_reload_keeps_units_and_earns_by_the_new_percent_from_then_on() {
    let (old, new) = (ratio(70, 0), ratio(30, 0));
    let mut balance = fed(&old, &[(0, 10)]).rescaled(&old, &new, 1_000);
    balance = balance.deposit(&new, &requests(10), 1_000);
    assert_eq!(drain(&mut balance, &new, 1_000), 10);
}

#[test]
fn only_a_ratio_with_an_empty_window_and_a_full_floor_is_fresh() {
    let limits = ratio(1, 2);
    let fresh = ratio::Balance::fresh(&limits, 0);
    let fed = fresh.deposit(&limits, &requests(1), 0);
    let (paid, _) = fresh.withdraw(&limits, 1, 0).unwrap();
    for (balance, now_ms, is_fresh) in [
        (fresh, 0, true),
        (fed, 9_999, false),
        (fed, 10_000, true),
        (paid, 499, false),
        (paid, 500, true),
    ] {
        assert_eq!(balance.is_fresh(&limits, now_ms), is_fresh, "{balance:?} at {now_ms} ms");
    }
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

#[test]
fn a_throttle_lets_callers_take_ahead_what_further_failures_would_be_granted() {
    let full = throttle::Balance::fresh(&A6);
    let four = full.withdraw(&A6, 4).unwrap();
    assert_eq!(four, (0..4).fold(full, |balance, _| balance.count_failure()));
    assert_eq!([full.withdraw(&A6, 5), full.withdraw(&A6, 11)], [None, None]);
    assert_eq!([four.withdraw(&A6, 1), full.withdraw(&A6, u32::MAX)], [None, None]);
    // Half of an odd number: 3 tokens of 5 are more, 2 are not.
    let five = throttle::Limits { tokens_max: 5, ..A6 };
    let full = throttle::Balance::fresh(&five);
    assert_eq!([2, 3].map(|retries| full.withdraw(&five, retries).is_some()), [true, false]);
}

#[test]
fn what_was_taken_ahead_comes_back_into_a_throttle_up_to_full() {
    let full = throttle::Balance::fresh(&A6);
    let four = full.withdraw(&A6, 4).unwrap();
    assert_eq!(four.give_back(&A6, 10, 3).available(&A6), 3);
    assert_eq!(four.give_back(&A6, 10, 3).give_back(&A6, 10, 1), full);
    assert_eq!(four.deposit(&A6, &successes(30)).give_back(&A6, 10, 4), full);
}

#[test]
fn a_reload_keeps_the_filled_part_of_a_throttle() {
    let sized = |tokens_max| throttle::Limits { tokens_max, ..A6 };
    let tokens = |limits: &throttle::Limits, taken| {
        (0..taken).fold(throttle::Balance::fresh(limits), |balance, _| balance.count_failure())
    };
    let seven_and_a_half = tokens(&A6, 3).deposit(&A6, &successes(5));
    let twenty = sized(20);
    let fifteen = seven_and_a_half.rescaled(&A6, &twenty);
    assert_eq!(fifteen, tokens(&twenty, 5));
    assert_eq!(fifteen.rescaled(&twenty, &A6), seven_and_a_half);
    assert_eq!(tokens(&A6, 0).rescaled(&A6, &twenty), tokens(&twenty, 0));
    // 7 of 10 are 2.1 of 3; 2 of 3 are 6.666 of 10, rounded down to a thousandth.
    let three = sized(3);
    assert_eq!(tokens(&A6, 3).rescaled(&A6, &three).available(&three), 0);
    assert!(tokens(&A6, 3).rescaled(&A6, &three).grants(&three));
    let thousandths = throttle::Limits { token_ratio_thousandths: 1, ..A6 };
    let six = tokens(&three, 1).rescaled(&three, &thousandths);
    assert_ne!(six.deposit(&thousandths, &successes(333)), tokens(&thousandths, 3));
    assert_eq!(six.deposit(&thousandths, &successes(334)), tokens(&thousandths, 3));
    // What was taken ahead of 10 comes back as its part of 20.
    let paid = tokens(&A6, 0).withdraw(&A6, 2).unwrap().rescaled(&A6, &twenty);
    assert_eq!(paid.give_back(&twenty, 10, 1), tokens(&twenty, 2));
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
        let counted = bucket(1_000, ONE_EACH);
        assert_eq!(empty.deposit(&limits, &usage).available(&counted), tokens, "{usage:?}");
    }
}

const ONE_EACH: bucket::Costs = bucket::Costs { transient: 1, throttling: 1, timeout: 1 };

#[test]
fn a_bucket_pays_for_several_retries_or_for_none() {
    let limits = bucket(500, bucket::Costs::AWS_2026);
    let full = bucket::Balance::fresh(&limits);
    for (class, most) in [(Class::Transient, 35), (Class::Throttling, 100), (Class::Timeout, 35)] {
        let (rest, _) = full.withdraw(&limits, class, most).unwrap();
        assert_eq!(rest, spend(&limits, class, most as usize));
        assert_eq!(full.withdraw(&limits, class, most + 1), None, "{class:?}");
    }
    assert_eq!(full.withdraw(&limits, Class::Transient, u32::MAX), None);
}

#[test]
fn a_retry_comes_back_into_a_bucket_at_the_price_that_was_paid() {
    let limits = bucket(500, bucket::Costs::AWS_2026);
    let counted = bucket(500, ONE_EACH);
    let full = bucket::Balance::fresh(&limits);
    let (paid, debit) = full.withdraw(&limits, Class::Throttling, 100).unwrap();
    assert_eq!(paid.give_back(&limits, debit, 3).available(&counted), 15);
    assert_eq!(paid.give_back(&counted, debit, 3).available(&counted), 15);
    assert_eq!(paid.deposit(&limits, &successes(490)).give_back(&limits, debit, 3), full);
    // What 500 paid comes back as its part of 100.
    let fifth = bucket(100, ONE_EACH);
    assert_eq!(paid.rescaled(&limits, &fifth).give_back(&fifth, debit, 3).available(&fifth), 3);
}

#[test]
fn a_reload_keeps_the_filled_part_of_a_bucket() {
    let old = bucket(500, ONE_EACH);
    let held = |tokens: usize| spend(&old, Class::Transient, 500 - tokens);
    for (tokens, capacity, moved) in [
        (123, 100, 24),
        (500, 100, 100),
        (499, 100, 99),
        (123, 500, 123),
        (123, 1_000, 246),
        (500, 1_000_000, 1_000_000),
        (4, 100, 0),
        (0, 1_000, 0),
    ] {
        let new = bucket(capacity, ONE_EACH);
        let got = held(tokens).rescaled(&old, &new).available(&new);
        assert_eq!(got, moved, "{tokens} of 500 in {capacity}");
    }
    // A new cost holds from then on.
    let dearer = bucket(500, bucket::Costs::AWS_LEGACY);
    assert_eq!(held(123).rescaled(&old, &dearer).available(&dearer), 24);
}
