//! What stays in the balances when sizes, scopes and models change.
use retryd::budget::{Limits, Scope, Store};

use super::{Bench, Budget, bucket, budget, ratio, throttle};

#[test]
fn what_is_in_a_balance_stays_in_proportion_to_its_size() {
    for (before, after, available) in [
        (ratio(10), ratio(20), 12),
        (ratio(10), ratio(3), 1),
        (bucket(30), bucket(60), 12),
        (bucket(30), bucket(15), 3),
        (throttle(21), throttle(42), 12),
        (throttle(21), throttle(21), 6),
    ] {
        let bench = Bench::of(&[budget("b", before)]);
        bench.acquire(bench.holder("a"), 4);
        for later in
            [bench.unsettled(&[budget("b", after)], 0), bench.reloaded(&[budget("b", after)], 0)]
        {
            assert_eq!(later.available(later.holder("a"), 0), [available], "{after:?}");
            assert_eq!(later.available(later.holder("fresh"), 0), [after.capacity()], "{after:?}");
        }
    }
}

/// An overflow balance and a twin are balances like any other.
#[test]
fn every_balance_follows_every_reload_whoever_asks_meanwhile() {
    let sized = |capacity| [budget("b", bucket(capacity))];
    let bench = Bench::with_room(&sized(60), 3);
    let holders = |bench: &Bench, each: &dyn Fn(&Bench, retryd::budget::Holder<'_>)| {
        each(bench, bench.holder("asked"));
        each(bench, bench.holder("left alone"));
        each(bench, bench.twin("twin"));
        each(bench, bench.holder("overflow"));
        each(bench, bench.twin("overflow of twins"));
    };
    holders(&bench, &|bench, holder| assert_eq!(bench.acquire(holder, 10).retries(), 10));
    let half = bench.reloaded(&sized(30), 0);
    assert_eq!(half.available(half.holder("asked"), 0), [5]);
    let double = half.reloaded(&sized(120), 0);
    assert_eq!(double.available(double.holder("asked"), 0), [20]);
    let last = double.reloaded(&sized(60), 0);
    holders(&last, &|last, holder| assert_eq!(last.available(holder, 0), [10], "{holder:?}"));
}

#[test]
fn a_store_in_the_middle_of_a_reload_may_be_followed_by_another() {
    let sized = |capacity| [budget("b", bucket(capacity))];
    let bench = Bench::of(&sized(60));
    bench.acquire(bench.holder("a"), 10);
    let last = bench.unsettled(&sized(30), 0).unsettled(&sized(120), 0);
    assert_eq!(last.available(last.holder("a"), 0), [20]);
}

#[test]
fn a_balance_goes_by_the_old_sizes_until_the_reload() {
    let refilled_in = |interval_ms| {
        let floor = ratio::Floor { count: 10, interval_ms };
        [budget("r", Limits::Ratio(ratio::Limits { percent: 0, interval_ms: 1_000, floor }))]
    };
    let bench = Bench::of(&refilled_in(10_000));
    bench.acquire(bench.holder("a"), 10);
    let slower = bench.unsettled(&refilled_in(20_000), 5_000);
    for (now_ms, available) in [(5_000, 5), (6_999, 5), (7_000, 6), (15_000, 10)] {
        assert_eq!(slower.available(slower.holder("a"), now_ms), [available], "{now_ms}");
    }
}

/// The store that was in force goes on for whoever has begun by it.
#[test]
fn both_stores_of_a_reload_have_one_balance() {
    let sized = |capacity| [budget("b", bucket(capacity))];
    let bench = Bench::of(&sized(30));
    bench.acquire(bench.holder("a"), 4);
    let later = bench.reloaded(&sized(60), 0);
    assert_eq!(bench.acquire(bench.holder("a"), 5).retries(), 5);
    assert_eq!(later.available(later.holder("a"), 0), [7]);
}

#[test]
fn another_name_scope_or_model_starts_anew() {
    let before = budget("b", ratio(10));
    for (after, fresh) in [
        (before.clone(), 6),
        (Budget { name: "c".into(), ..before.clone() }, 10),
        (Budget { scope: Scope::TenantOperation, ..before.clone() }, 10),
        (Budget { limits: bucket(30), ..before.clone() }, 10),
        (Budget { limits: throttle(21), ..before.clone() }, 10),
    ] {
        let bench = Bench::of(std::slice::from_ref(&before));
        bench.acquire(bench.holder("a"), 4);
        let later = bench.reloaded(std::slice::from_ref(&after), 0);
        assert_eq!(later.available(later.holder("a"), 0), [fresh], "{after:?}");
    }
}

#[test]
fn budgets_may_change_places_in_the_file() {
    let [one, other] = [budget("one", bucket(30)), budget("other", bucket(60))];
    let bench = Bench::of(&[one.clone(), other.clone()]);
    bench.acquire(bench.holder("a"), 4);
    let later = bench.reloaded(&[other, budget("new", bucket(9)), one], 0);
    assert_eq!(later.available(later.holder("a"), 0), [16, 3, 6]);
}

#[test]
fn a_budget_that_is_gone_leaves_the_room_of_its_twins_too() {
    let bench = Bench::with_room(&[budget("b", bucket(30)), budget("c", bucket(30))], 100);
    for tenant in ["a", "b", "c"] {
        bench.acquire(bench.holder(tenant), 1);
    }
    bench.acquire(bench.twin("a"), 1);
    assert_eq!(bench.balances(), 8);
    let later = bench.reloaded(&[budget("c", bucket(30))], 0);
    drop(bench);
    assert_eq!(later.balances(), 4);
    drop(later.reloaded(&[], 0));
    assert_eq!(later.balances(), 4, "the store before it has them yet");
}

#[test]
fn what_was_counted_goes_on() {
    let bench = Bench::with_room(&[budget("b", bucket(30))], 1);
    for tenant in ["own", "overflow"] {
        bench.acquire(bench.holder(tenant), 1);
    }
    let later = bench.reloaded(&[budget("b", bucket(60))], 0);
    assert_eq!(later.memory.occupancy(), bench.memory.occupancy());
    assert_eq!(later.memory.occupancy().overflowed, 1);
}
