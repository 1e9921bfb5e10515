//! Retries that were not needed, given back to whoever paid.
use retryd::budget::{Ask, Grant, Payment, Purpose, Scope, Store};
use retryd::engine::Class;

use super::{Bench, ask, bucket, budget, charge, ratio, throttle};

#[test]
fn a_grant_gives_back_what_it_has_left_and_no_more() {
    let bench = Bench::of(&[budget("b", bucket(30)), budget("t", throttle(30))]);
    let mut grant = bench.acquire(bench.holder("a"), 5);
    assert_eq!(bench.available(bench.holder("a"), 0), [5, 9]);
    for (asked, released, left, available) in
        [(0, 0, 5, [5, 9]), (2, 2, 3, [7, 11]), (9, 3, 0, [10, 14]), (1, 0, 0, [10, 14])]
    {
        assert_eq!(bench.memory.give_back(bench.holder("a"), &mut grant, asked, 0), released);
        assert_eq!(grant.retries(), left);
        assert_eq!(bench.available(bench.holder("a"), 0), available);
    }
}

#[test]
fn what_the_window_paid_comes_first_and_what_the_floor_paid_is_gone() {
    let bench = Bench::of(&[budget("r", ratio(3))]);
    bench.feed("a", 2, 0);
    let mut grant = bench.acquire(bench.holder("a"), 4);
    for (released, available) in [(1, 2), (1, 3), (1, 3), (1, 3), (0, 3)] {
        assert_eq!(bench.memory.give_back(bench.holder("a"), &mut grant, 1, 0), released);
        assert_eq!(bench.available(bench.holder("a"), 0), [available]);
    }
}

#[test]
fn what_has_left_the_window_is_released_and_gone() {
    for (now_ms, available) in [(9_999, 1), (10_000, 0)] {
        let bench = Bench::of(&[budget("r", ratio(0))]);
        bench.feed("a", 1, 0);
        let mut grant = bench.acquire(bench.holder("a"), 1);
        assert_eq!(bench.memory.give_back(bench.holder("a"), &mut grant, 1, now_ms), 1);
        assert_eq!(bench.available(bench.holder("a"), now_ms), [available], "{now_ms}");
    }
}

#[test]
fn an_attempt_gives_back_its_price_and_no_token_of_a_throttle() {
    let bench = Bench::of(&[budget("b", bucket(30)), budget("t", throttle(30))]);
    let timeout = Purpose::Attempt(Class::Timeout);
    let ask = Ask { purpose: timeout, counts: true, ..ask(bench.holder("a")) };
    let mut grant = Grant::default();
    assert_eq!(charge(&bench, ask, &mut grant), Some(Payment::Paid));
    // 23 tokens of 30, and 29 of 30.
    assert_eq!(bench.available(bench.holder("a"), 0), [7, 13]);
    assert_eq!(bench.memory.give_back(bench.holder("a"), &mut grant, 1, 0), 1);
    assert_eq!(bench.available(bench.holder("a"), 0), [10, 13]);
}

#[test]
fn what_a_twin_paid_goes_to_the_twin() {
    let bench = Bench::of(&[budget("b", bucket(30))]);
    let mut grant = bench.acquire(bench.twin("a"), 4);
    bench.acquire(bench.holder("a"), 4);
    // Whatever the policy is today.
    bench.memory.give_back(bench.holder("a"), &mut grant, 3, 0);
    assert_eq!(bench.available(bench.twin("a"), 0), [9]);
    assert_eq!(bench.available(bench.holder("a"), 0), [6]);
}

#[test]
fn what_the_overflow_paid_goes_to_the_overflow() {
    let (gone, kept) = (budget("gone", bucket(30)), budget("kept", bucket(30)));
    let bench = Bench::with_room(&[kept.clone(), gone], 2);
    bench.acquire(bench.holder("own"), 1);
    let mut grant = bench.acquire(bench.holder("a"), 6);
    assert_eq!(bench.available(bench.holder("a"), 0), [4, 4]);
    // Its own balance comes later, when another budget has left room.
    let later = bench.reloaded(&[kept], 0);
    drop(bench);
    assert_eq!(later.acquire(later.holder("a"), 9).retries(), 9);
    assert_eq!(later.memory.give_back(later.holder("a"), &mut grant, 5, 0), 5);
    assert_eq!(later.available(later.holder("a"), 0), [1]);
    assert_eq!(later.available(later.holder("other"), 0), [9]);
}

#[test]
fn each_budget_gets_back_its_own_part() {
    let budgets = [
        budget("b", bucket(30)),
        super::Budget { scope: Scope::Global, ..budget("g", bucket(300)) },
        budget("r", ratio(9)),
    ];
    let bench = Bench::of(&budgets);
    bench.feed("a", 1, 0);
    let mut grant = bench.acquire(bench.holder("a"), 2);
    assert_eq!(bench.available(bench.holder("a"), 0), [8, 98, 8]);
    assert_eq!(bench.memory.give_back(bench.holder("a"), &mut grant, 2, 0), 2);
    assert_eq!(bench.available(bench.holder("a"), 0), [10, 100, 9]);
}

#[test]
fn a_budget_that_is_gone_gets_nothing_back_nor_does_its_namesake() {
    let budgets = [budget("b", bucket(30)), budget("r", ratio(9))];
    let bench = Bench::of(&budgets);
    let mut grant = bench.acquire(bench.holder("a"), 4);
    let without = bench.reloaded(&budgets[1..], 0);
    let namesake = without.reloaded(&budgets, 0);
    namesake.acquire(namesake.holder("a"), 5);
    assert_eq!(namesake.available(namesake.holder("a"), 0), [5, 0]);
    assert_eq!(namesake.memory.give_back(namesake.holder("a"), &mut grant, 4, 0), 4);
    assert_eq!(namesake.available(namesake.holder("a"), 0), [5, 0]);
    assert_eq!(grant.retries(), 0);
}

#[test]
fn giving_back_creates_no_balance() {
    let bench = Bench::of(&[budget("b", bucket(30))]);
    let mut grant = bench.acquire(bench.holder("a"), 4);
    let balances = bench.balances();
    assert_eq!(bench.memory.give_back(bench.holder("b"), &mut grant, 4, 0), 4);
    assert_eq!((balances, bench.balances()), (1, 1));
}

/// The balance may not have been asked for since the reload.
#[test]
fn what_was_paid_before_a_reload_comes_back_in_the_sizes_of_today() {
    for (before, after, available) in
        [(throttle(10), throttle(20), 3), (bucket(30), bucket(60), 14)]
    {
        let bench = Bench::of(&[budget("b", before)]);
        let mut grant = bench.acquire(bench.holder("a"), 4);
        let later = bench.unsettled(&[budget("b", after)], 0);
        assert_eq!(later.memory.give_back(later.holder("a"), &mut grant, 1, 0), 1);
        assert_eq!(later.available(later.holder("a"), 0), [available], "{after:?}");
    }
}
