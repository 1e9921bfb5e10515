//! Balances on show.
use retryd::budget::{Holder, Listed, Scope, Store};

use super::{Bench, Budget, bucket, budget, ratio, throttle};

fn rows(bench: &Bench, after: Option<&Listed>, count: usize, now_ms: u64) -> Vec<Listed> {
    bench.memory.list(after, count, now_ms, &|_| true)
}

fn row(available: u32, budget: &str, tenant: &str, operation: &str, capacity: u32) -> Listed {
    let (budget, tenant, operation) = (budget.into(), tenant.into(), operation.into());
    Listed { available, budget, tenant, operation, capacity }
}

/// One balance for each of the four scopes, and more in two of them.
fn bench() -> Bench {
    let scoped = |scope, name, limits| Budget { scope, ..budget(name, limits) };
    let bench = Bench::of(&[
        scoped(Scope::TenantOperation, "d", bucket(30)),
        scoped(Scope::Global, "c", bucket(60)),
        scoped(Scope::Operation, "b", ratio(10)),
        scoped(Scope::Tenant, "a", throttle(21)),
    ]);
    for (tenant, operation, retries) in [("t", "y", 2), ("t", "x", 2), ("s", "y", 4)] {
        bench.acquire(Holder { operation, ..bench.holder(tenant) }, retries);
    }
    bench
}

fn in_order() -> Vec<Listed> {
    vec![
        row(4, "b", "", "y", 10),
        row(6, "a", "s", "", 10),
        row(6, "a", "t", "", 10),
        row(6, "d", "s", "y", 10),
        row(8, "b", "", "x", 10),
        row(8, "d", "t", "x", 10),
        row(8, "d", "t", "y", 10),
        row(12, "c", "", "", 20),
    ]
}

#[test]
fn the_emptiest_come_first_with_the_names_of_their_scope() {
    assert_eq!(rows(&bench(), None, 100, 0), in_order());
    assert_eq!(rows(&Bench::of(&[]), None, 100, 0), []);
}

#[test]
fn a_page_has_the_first_rows_after_a_place() {
    let (bench, all) = (bench(), in_order());
    for count in 0..=9 {
        assert_eq!(rows(&bench, None, count, 0), all[..count.min(8)]);
        for place in 0..8 {
            let page = &all[place + 1..];
            let page = &page[..count.min(page.len())];
            assert_eq!(rows(&bench, Some(&all[place]), count, 0), page, "{count} after {place}");
        }
    }
}

#[test]
fn a_place_may_be_one_where_nothing_is_any_more() {
    let (bench, all) = (bench(), in_order());
    for (place, next) in [
        (row(0, "", "", "", 0), 0),
        (row(5, "z", "z", "z", 0), 1),
        (row(6, "a", "s", "a", 0), 2),
        (row(6, "a", "z", "", 0), 3),
        (row(8, "c", "", "", 0), 5),
        // What it held when it was shown does not count.
        (row(8, "d", "t", "x", 99), 6),
        (row(13, "", "", "", 0), 8),
    ] {
        assert_eq!(rows(&bench, Some(&place), 100, 0), all[next..], "{place:?}");
    }
}

#[test]
fn balances_are_shown_as_they_are_at_that_time() {
    let bench = Bench::of(&[budget("r", ratio(2))]);
    bench.acquire(bench.holder("a"), 2);
    for (now_ms, available) in [(1_799_999, 0), (1_800_000, 1), (3_599_999, 1)] {
        assert_eq!(rows(&bench, None, 9, now_ms), [row(available, "r", "a", "", 2)]);
    }
    // Idle, and as good as a fresh one: as if it were gone.
    assert_eq!(rows(&bench, None, 9, 3_600_000), []);
}

#[test]
fn twins_and_the_overflow_are_left_out() {
    let bench = Bench::with_room(&[budget("b", bucket(30))], 2);
    bench.acquire(bench.twin("twin"), 1);
    for tenant in ["own", "overflow"] {
        bench.acquire(bench.holder(tenant), 1);
    }
    assert_eq!(rows(&bench, None, 9, 0), [row(9, "b", "own", "", 10)]);
}

#[test]
fn a_reload_shows_in_every_row_at_once() {
    let bench = Bench::of(&[budget("b", bucket(30)), budget("gone", bucket(30))]);
    bench.acquire(bench.holder("a"), 5);
    let later = bench.unsettled(&[budget("b", bucket(60))], 0);
    assert_eq!(rows(&later, None, 9, 0), [row(10, "b", "a", "", 20)]);
}

#[test]
fn a_page_is_full_of_what_is_shown() {
    let bench = bench();
    let of_t: Vec<Listed> = in_order().into_iter().filter(|row| &*row.tenant == "t").collect();
    assert!(2 <= of_t.len() && of_t.len() < in_order().len());
    let page =
        |after: Option<&Listed>, count| bench.memory.list(after, count, 0, &|tenant| tenant == "t");
    assert_eq!(page(None, 100), of_t);
    let mut seen: Vec<Listed> = Vec::new();
    loop {
        let one = page(seen.last(), 1);
        if one.is_empty() {
            break;
        }
        seen.extend(one);
    }
    assert_eq!(seen, of_t);
}
