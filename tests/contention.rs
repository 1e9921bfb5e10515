//! Many callers at once: never one retry too many, all pay or none, and nobody waits for ever.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Barrier, mpsc};
use std::thread;
use std::time::Duration;

use retryd::budget::{
    Account, Ask, Budget, BudgetId, Holder, Limits, Memory, OnStoreLoss, Payers, Purpose, Scope,
    Store, Usage, ratio,
};
use retryd::engine::{Class, Coverage};

const CALLERS: usize = 16;

/// Has `count` retries on a clock that stands still.
fn budget(scope: Scope, count: u32) -> Budget {
    let floor = ratio::Floor { count, interval_ms: 1_000 };
    let limits = Limits::Ratio(ratio::Limits { percent: 100, interval_ms: 10_000, floor });
    let name = format!("{scope:?}-{count}").into();
    Budget { name, scope, limits, on_store_loss: OnStoreLoss::default() }
}

fn payers(ids: &[usize], budgets: &[Budget]) -> Payers {
    let ids: Vec<BudgetId> = ids.iter().copied().map(BudgetId).collect();
    Payers::new(&ids, budgets).unwrap()
}

fn holder<'a>(payers: &'a Payers, tenant: &'a str) -> Holder<'a> {
    Holder { payers, tenant, operation: "x", twins: false }
}

fn ask<'a>(payers: &'a Payers, tenant: &'a str) -> Ask<'a> {
    Ask {
        holder: holder(payers, tenant),
        usage: &Usage::NOTHING,
        counts: false,
        purpose: Purpose::Attempt(Class::Transient),
        dry_run: false,
        now_ms: 0,
    }
}

fn pay(memory: &Memory, ask: &Ask<'_>) -> bool {
    let mut account = memory.open(ask, None);
    matches!(account.coverage(), Coverage::Covered(_)) && account.charge(None).is_ok()
}

/// Lets all callers loose at one moment, and counts how often they were paid.
fn paid(asks_each: usize, pay: impl Fn(usize) -> bool + Sync) -> usize {
    let (start, paid) = (Barrier::new(CALLERS), AtomicUsize::new(0));
    thread::scope(|scope| {
        for caller in 0..CALLERS {
            let (start, paid, pay) = (&start, &paid, &pay);
            scope.spawn(move || {
                start.wait();
                let granted = (0..asks_each).filter(|_| pay(caller)).count();
                paid.fetch_add(granted, Ordering::Relaxed);
            });
        }
    });
    paid.into_inner()
}

#[test]
fn one_balance_never_grants_one_too_many() {
    let budgets = [budget(Scope::Tenant, 1_000)];
    let (memory, payers) = (Memory::new(&budgets), payers(&[0], &budgets));
    assert_eq!(paid(200, |_| pay(&memory, &ask(&payers, "a"))), 1_000);
}

#[test]
fn an_absent_balance_is_created_once_and_grants_not_one_too_many() {
    let budgets = [budget(Scope::Global, 1_000_000), budget(Scope::Tenant, 1)];
    let (memory, payers) = (Memory::new(&budgets), payers(&[0, 1], &budgets));
    for round in 0..200 {
        let tenant = format!("tenant-{round}");
        let granted = paid(1, |_| {
            let ask = ask(&payers, &tenant);
            let mut account = memory.open(&ask, None);
            let is_covered = matches!(account.coverage(), Coverage::Covered(_));
            // Nobody comes between looking and charging, although there is no balance yet.
            assert_eq!(account.charge(None).is_ok(), is_covered);
            is_covered
        });
        assert_eq!(granted, 1, "{tenant}");
    }
    let states = memory.look(holder(&payers, "tenant-0"), 0);
    let available: Vec<u32> = states.iter().map(|state| state.available).collect();
    assert_eq!(available, [1_000_000 - 200, 0]);
}

#[test]
fn three_budgets_pay_together_or_not_at_all_and_in_one_instant() {
    let budgets =
        [budget(Scope::Tenant, 900), budget(Scope::Global, 500), budget(Scope::Operation, 700)];
    let (memory, payers) = (Memory::new(&budgets), payers(&[0, 1, 2], &budgets));
    let done = AtomicBool::new(false);
    let available = || {
        let states = memory.look(holder(&payers, "a"), 0);
        states.iter().map(|state| i64::from(state.available)).collect::<Vec<_>>()
    };
    thread::scope(|scope| {
        let onlooker = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let seen = available();
                assert_eq!([seen[0] - seen[1], seen[2] - seen[1]], [400, 200], "{seen:?}");
            }
        });
        let granted = paid(100, |_| pay(&memory, &ask(&payers, "a")));
        done.store(true, Ordering::Relaxed);
        onlooker.join().unwrap();
        assert_eq!(granted, 500);
    });
    assert_eq!(available(), [400, 0, 200]);
}

/// Two policies that name the same budgets in different orders would wait for each other, if they
/// locked in the order of naming.
#[test]
fn policies_that_name_budgets_in_any_order_never_wait_for_each_other() {
    let (finished, waited) = mpsc::channel();
    thread::spawn(move || {
        let few = 1_000_000;
        let scopes = [Scope::Global, Scope::Tenant, Scope::Operation, Scope::TenantOperation];
        let budgets = scopes.map(|scope| budget(scope, few));
        let memory = Memory::new(&budgets);
        let orders =
            [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]].map(|order| payers(&order, &budgets));
        let granted = paid(3_000, |caller| pay(&memory, &ask(&orders[caller % 3], "a")));
        finished.send(granted).unwrap();
    });
    assert_eq!(waited.recv_timeout(Duration::from_secs(60)), Ok(CALLERS * 3_000));
}

#[test]
fn there_is_room_for_exactly_as_many_balances_as_allowed() {
    let budgets = [budget(Scope::Tenant, 1)];
    let (memory, payers) = (Memory::with_room(&budgets, 100), payers(&[0], &budgets));
    let next = AtomicUsize::new(0);
    let granted = paid(50, |_| {
        // Two callers for each tenant, so that some create the same balance at once.
        let tenant = format!("tenant-{}", next.fetch_add(1, Ordering::Relaxed) / 2);
        pay(&memory, &ask(&payers, &tenant))
    });
    assert_eq!(memory.occupancy().balances, 100);
    assert_eq!(granted, 101, "one for each balance, and one for all the others");
}
