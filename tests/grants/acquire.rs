//! Retries taken ahead.
use retryd::budget::{Holder, Payers, State, Store};

use super::{Bench, bucket, budget, ratio, throttle};

#[test]
fn every_budget_pays_for_as_many_as_all_of_them_cover() {
    let budgets = [budget("r", ratio(5)), budget("b", bucket(10)), budget("t", throttle(10))];
    for (wanted, granted, left) in
        [(1, 1, [4, 2, 3]), (3, 3, [2, 0, 1]), (4, 3, [2, 0, 1]), (1_000, 3, [2, 0, 1])]
    {
        let bench = Bench::of(&budgets);
        let (grant, state) = bench.memory.acquire(bench.holder("a"), wanted, 0);
        assert_eq!(grant.retries(), granted, "{wanted}");
        assert_eq!(bench.available(bench.holder("a"), 0), left, "{wanted}");
        let scarcest = State { budget: "b", available: left[1], capacity: 3 };
        assert_eq!(state, Some(scarcest), "{wanted}");
    }
}

#[test]
fn one_budget_that_grants_nothing_keeps_all_others_whole() {
    let bench = Bench::of(&[budget("r", ratio(5)), budget("none", ratio(0))]);
    let (grant, state) = bench.memory.acquire(bench.holder("a"), 3, 0);
    assert_eq!(grant.retries(), 0);
    assert_eq!(state, Some(State { budget: "none", available: 0, capacity: 0 }));
    assert_eq!(bench.balances(), 0, "nothing was written");
}

#[test]
fn without_budgets_all_of_them_are_granted() {
    let bench = Bench::of(&[]);
    let (grant, state) = bench.memory.acquire(bench.holder("a"), 7, 0);
    assert_eq!((grant.retries(), state), (7, None));
}

#[test]
fn what_is_taken_twice_is_there_once() {
    let bench = Bench::of(&[budget("r", ratio(5)), budget("b", bucket(12))]);
    let granted = [3, 3, 3].map(|wanted| bench.acquire(bench.holder("a"), wanted).retries());
    assert_eq!(granted, [3, 1, 0]);
    assert_eq!(bench.available(bench.holder("a"), 0), [1, 0]);
}

#[test]
fn a_twin_pays_under_a_policy_that_observes() {
    let bench = Bench::of(&[budget("r", ratio(5)), budget("t", throttle(10))]);
    assert_eq!(bench.acquire(bench.twin("a"), 2).retries(), 2);
    assert_eq!(bench.available(bench.twin("a"), 0), [3, 2]);
    assert_eq!(bench.available(bench.holder("a"), 0), [5, 4]);
}

#[test]
fn a_balance_in_the_overflow_covers_what_it_has() {
    let bench = Bench::with_room(&[budget("r", ratio(5))], 1);
    let granted =
        ["own", "over", "flow"].map(|name| bench.acquire(bench.holder(name), 3).retries());
    assert_eq!(granted, [3, 3, 2]);
}

#[test]
fn a_budget_that_the_store_does_not_know_grants_nothing() {
    let bench = Bench::of(&[budget("r", ratio(5))]);
    let elsewhere = Bench::of(&[]);
    let holder = Holder { payers: &bench.payers, ..elsewhere.holder("a") };
    assert_eq!(elsewhere.acquire(holder, 1).retries(), 0);
    let none = Holder { payers: &Payers::default(), ..bench.holder("a") };
    assert_eq!(bench.acquire(none, 1).retries(), 1);
}
