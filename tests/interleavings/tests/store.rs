//! Few threads at one balance, in orders that the scheduler makes up: whatever comes between two
//! steps of the store, nothing is granted twice, nothing is lost, and nobody waits for ever.
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use retryd_interleavings::budget::{
    Account, Ask, AttemptName, Budget, BudgetId, Grant, GrantName, Holder, Limits, Memory,
    OnStoreLoss, Once, Payers, Purpose, Scope, Store, Turn, Usage, bucket, ratio,
};
use retryd_interleavings::engine::{Class, Coverage};
use shuttle::thread;

/// Orders that each test is played in.
const ORDERS: usize = 3_000;

fn budget(name: &str, scope: Scope, limits: Limits) -> Budget {
    Budget { name: name.into(), scope, limits, on_store_loss: OnStoreLoss::default() }
}

/// `count` retries on a clock that stands still.
fn ratio(count: u32) -> Limits {
    let floor = ratio::Floor { count, interval_ms: 1_000 };
    Limits::Ratio(ratio::Limits { percent: 100, interval_ms: 10_000, floor })
}

/// `capacity` retries, and nothing gives them back.
fn bucket(capacity: u32) -> Limits {
    let costs = bucket::Costs { transient: 1, throttling: 1, timeout: 1 };
    Limits::TokenBucket(bucket::Limits { capacity, costs })
}

fn all(budgets: &[Budget]) -> Payers {
    in_order(budgets, &(0..budgets.len()).collect::<Vec<_>>())
}

fn in_order(budgets: &[Budget], places: &[usize]) -> Payers {
    let ids: Vec<BudgetId> = places.iter().copied().map(BudgetId).collect();
    Payers::new(&ids, budgets).unwrap()
}

fn holder<'a>(payers: &'a Payers, tenant: &'a str) -> Holder<'a> {
    Holder { payers, tenant, operation: "x", twins: false }
}

/// An attempt that reports nothing, and that a throttle does not count.
fn asking(holder: Holder<'_>, now_ms: u64) -> Ask<'_> {
    let purpose = Purpose::Attempt(Class::Transient);
    Ask { holder, usage: &Usage::NOTHING, counts: false, purpose, dry_run: false, now_ms }
}

fn pay(memory: &Memory, holder: Holder<'_>, grant: Option<&mut Grant>, now_ms: u64) -> bool {
    let mut account = memory.open(&asking(holder, now_ms), grant.as_deref());
    !matches!(account.coverage(), Coverage::Exhausted(_)) && account.charge(grant).is_ok()
}

fn available(memory: &Memory, holder: Holder<'_>, now_ms: u64) -> Vec<u32> {
    memory.look(holder, now_ms).iter().map(|state| state.available).collect()
}

/// Runs every step in a thread of its own, to the end of all.
fn at_once(steps: Vec<Box<dyn FnOnce() + Send>>) {
    let threads: Vec<_> = steps.into_iter().map(thread::spawn).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// Plays `steps` in many orders; half of them are chosen so that rare ones come up.
fn in_many_orders(play: impl Fn() + Send + Sync + Clone + 'static) {
    shuttle::check_random(play.clone(), ORDERS);
    shuttle::check_pct(play, ORDERS, 3);
}

#[test]
fn the_last_retry_is_granted_once() {
    in_many_orders(|| {
        let budgets = [budget("b", Scope::Tenant, ratio(1))];
        let shared = Arc::new((Memory::new(&budgets), all(&budgets), AtomicU32::new(0)));
        at_once(
            (0..3)
                .map(|_| {
                    let shared = Arc::clone(&shared);
                    Box::new(move || {
                        let (memory, payers, granted) = &*shared;
                        let ask = asking(holder(payers, "a"), 0);
                        let mut account = memory.open(&ask, None);
                        let is_covered = matches!(account.coverage(), Coverage::Covered(_));
                        // Nobody comes between looking and charging, although there is no balance.
                        assert_eq!(account.charge(None).is_ok(), is_covered);
                        granted.fetch_add(is_covered.into(), Relaxed);
                    }) as Box<dyn FnOnce() + Send>
                })
                .collect(),
        );
        assert_eq!(shared.2.load(Relaxed), 1);
    });
}

fn look_on(memory: &Memory, holder: Holder<'_>) {
    let seen = available(memory, holder, 0);
    assert_eq!([seen[0] - seen[1], seen[2] - seen[1]], [1, 2], "{seen:?}");
}

#[test]
fn all_of_three_budgets_pay_or_none_whatever_order_they_are_named_in() {
    in_many_orders(|| {
        let budgets = [
            budget("own", Scope::Tenant, ratio(3)),
            budget("sum", Scope::Global, ratio(2)),
            budget("route", Scope::Operation, bucket(4)),
        ];
        let orders = [[0, 1, 2], [2, 1, 0], [1, 2, 0]].map(|order| in_order(&budgets, &order));
        let shared = Arc::new((Memory::new(&budgets), orders, AtomicU32::new(0)));
        at_once(
            (0..3)
                .map(|caller| {
                    let shared = Arc::clone(&shared);
                    Box::new(move || {
                        let (memory, orders, granted) = &*shared;
                        let holder = holder(&orders[caller], "a");
                        // An onlooker never sees that one has paid and another has not.
                        look_on(memory, Holder { payers: &orders[0], ..holder });
                        granted.fetch_add(pay(memory, holder, None, 0).into(), Relaxed);
                        look_on(memory, Holder { payers: &orders[0], ..holder });
                    }) as Box<dyn FnOnce() + Send>
                })
                .collect(),
        );
        assert_eq!(shared.2.load(Relaxed), 2);
    });
}

#[test]
fn an_attempt_pays_once_while_it_is_asked_about_and_released() {
    in_many_orders(|| {
        let budgets = [budget("b", Scope::Tenant, bucket(9))];
        let shared = Arc::new((Memory::new(&budgets), all(&budgets), Once::new()));
        let released = Arc::new(AtomicU32::new(0));
        let attempt = AttemptName { tenant: "a", operation: "x", call_id: "c", attempts_made: 1 };
        let ask = || {
            let shared = Arc::clone(&shared);
            Box::new(move || {
                let (memory, payers, once) = &*shared;
                once.ask(attempt, false, 0, |turn, grant| {
                    assert_ne!(turn, Turn::Further);
                    assert!(pay(memory, holder(payers, "a"), grant, 0));
                });
            }) as Box<dyn FnOnce() + Send>
        };
        let release = || {
            let (shared, released) = (Arc::clone(&shared), Arc::clone(&released));
            Box::new(move || {
                let (memory, payers, once) = &*shared;
                let taken_off = once.release(GrantName::Attempt(attempt), 0, |grant| {
                    memory.give_back(holder(payers, "a"), grant, 1, 0)
                });
                released.fetch_add(taken_off, Relaxed);
            }) as Box<dyn FnOnce() + Send>
        };
        at_once(vec![ask(), release(), ask(), release()]);
        // Whatever was released had been paid, and whoever asked last has paid or was covered.
        let (memory, payers, once) = &*shared;
        let left = once.release(GrantName::Attempt(attempt), 0, |grant| grant.retries());
        assert!(left + released.load(Relaxed) <= 2);
        assert_eq!(available(memory, holder(payers, "a"), 0), [9 - left]);
    });
}

#[test]
fn an_idle_balance_is_dropped_by_one_and_used_by_others_and_grants_no_more() {
    const IDLE_MS: u64 = 600_000;
    /// So many that the search for idle balances comes to every shard.
    const TURNS: usize = 512;
    in_many_orders(|| {
        let budgets = [budget("b", Scope::Tenant, bucket(2))];
        let shared = Arc::new((Memory::with_room(&budgets, 1), all(&budgets), AtomicU32::new(0)));
        // One of two is left, and idle by the time that the threads begin.
        assert!(pay(&shared.0, holder(&shared.1, "a"), None, 0));
        let ask = || {
            let shared = Arc::clone(&shared);
            Box::new(move || {
                let (memory, payers, granted) = &*shared;
                granted.fetch_add(pay(memory, holder(payers, "a"), None, IDLE_MS).into(), Relaxed);
            }) as Box<dyn FnOnce() + Send>
        };
        let search = {
            let shared = Arc::clone(&shared);
            Box::new(move || {
                let (memory, payers, _) = &*shared;
                for _ in 0..TURNS {
                    drop(memory.open(&asking(holder(payers, "crowd"), IDLE_MS), None));
                }
            }) as Box<dyn FnOnce() + Send>
        };
        at_once(vec![ask(), ask(), ask(), search]);
        // Dropped before anyone asked, it comes back with two; else it has one.
        assert!(shared.2.load(Relaxed) <= 2);
        assert!(shared.0.occupancy().balances <= 1);
    });
}

#[test]
fn whoever_takes_the_last_room_keeps_nobody_waiting_and_grants_no_more() {
    in_many_orders(|| {
        let budgets = [
            budget("own", Scope::Tenant, ratio(1)),
            budget("pair", Scope::TenantOperation, ratio(1)),
        ];
        let shared = Arc::new((Memory::with_room(&budgets, 2), all(&budgets), AtomicU32::new(0)));
        let ask = |tenant: &'static str| {
            let shared = Arc::clone(&shared);
            Box::new(move || {
                let (memory, payers, granted) = &*shared;
                granted.fetch_add(pay(memory, holder(payers, tenant), None, 0).into(), Relaxed);
            }) as Box<dyn FnOnce() + Send>
        };
        at_once(["a", "b", "c"].map(ask).into());
        // Two find room, and the others share one retry of each budget.
        assert!((1..=2).contains(&shared.2.load(Relaxed)));
        assert_eq!(shared.0.occupancy().balances, 2);
    });
}

#[test]
fn a_reload_between_any_two_steps_mints_nothing_and_loses_nothing() {
    in_many_orders(|| {
        let budgets = |capacity| [budget("b", Scope::Tenant, bucket(capacity))];
        let before = Memory::new(&budgets(8));
        let payers = all(&budgets(8));
        (0..4).for_each(|_| assert!(pay(&before, holder(&payers, "a"), None, 0)));
        let shared = Arc::new((before, payers, AtomicU32::new(0)));
        let ask = |times: usize| {
            let shared = Arc::clone(&shared);
            Box::new(move || {
                let (memory, payers, granted) = &*shared;
                for _ in 0..times {
                    granted.fetch_add(pay(memory, holder(payers, "a"), None, 0).into(), Relaxed);
                }
            }) as Box<dyn FnOnce() + Send>
        };
        let reload = {
            let shared = Arc::clone(&shared);
            Box::new(move || {
                let after = shared.0.succeeded_by(&budgets(16), 0);
                after.settle();
                shared.0.succeeded_by(&budgets(8), 0).settle();
            }) as Box<dyn FnOnce() + Send>
        };
        at_once(vec![ask(1), reload, ask(1)]);
        // 4 of 8 are 8 of 16 and 4 of 8 again; what was granted while it was large cost half.
        let (memory, payers, granted) = &*shared;
        assert_eq!(granted.load(Relaxed), 2);
        let left = available(memory, holder(payers, "a"), 0)[0];
        assert!((2..=3).contains(&left), "{left}");
    });
}
