//! The store of balances: who shares one, when it is created, and that all pay or none.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]
use proptest::prelude::*;
use retryd::budget::{
    Account, Ask, Budget, BudgetId, Holder, Limits, Memory, OnStoreLoss, Payers, Payment, Purpose,
    Scope, State, Store, Usage, bucket, ratio, throttle,
};
use retryd::engine::{Class, Coverage, Purse};

fn budget(name: &str, scope: Scope, limits: Limits) -> Budget {
    Budget { name: name.into(), scope, limits, on_store_loss: OnStoreLoss::default() }
}

/// Earns one retry for each request, and has `count` without.
fn ratio(count: u32) -> Limits {
    let floor = ratio::Floor { count, interval_ms: 1_000 };
    Limits::Ratio(ratio::Limits { percent: 100, interval_ms: 10_000, floor })
}

fn throttle() -> Limits {
    Limits::Throttle(throttle::Limits { tokens_max: 10, token_ratio_thousandths: 100 })
}

fn bucket(capacity: u32) -> Limits {
    Limits::TokenBucket(bucket::Limits { capacity, costs: bucket::Costs::AWS_LEGACY })
}

/// A store and one policy that names all of its budgets.
struct Bench {
    memory: Memory,
    payers: Payers,
}

impl Bench {
    fn of(budgets: &[Budget]) -> Bench {
        let ids: Vec<BudgetId> = (0..budgets.len()).map(BudgetId).collect();
        Bench { memory: Memory::new(budgets), payers: Payers::new(&ids, budgets).unwrap() }
    }

    fn holder<'a>(&'a self, tenant: &'a str, operation: &'a str) -> Holder<'a> {
        Holder { payers: &self.payers, tenant, operation, twins: false }
    }

    fn ask<'a>(&'a self, tenant: &'a str, operation: &'a str) -> Ask<'a> {
        Ask {
            holder: self.holder(tenant, operation),
            usage: &Usage::NOTHING,
            counts: false,
            purpose: Purpose::Attempt(Class::Transient),
            dry_run: false,
            now_ms: 0,
        }
    }

    /// Looks, and charges only if every budget would grant.
    fn pay(&self, ask: Ask<'_>) -> bool {
        let mut account = self.memory.open(&ask, None);
        match account.coverage() {
            Coverage::Exhausted(_) => false,
            Coverage::Covered(_) | Coverage::Remembered(_) | Coverage::Unbudgeted => {
                account.charge(None).is_ok()
            }
        }
    }

    fn drain(&self, tenant: &str, operation: &str) -> u32 {
        (0..1_000).take_while(|_| self.pay(self.ask(tenant, operation))).count().try_into().unwrap()
    }

    /// What every budget has available, in the policy's order.
    fn available(&self, tenant: &str, operation: &str) -> Vec<u32> {
        let states = self.memory.look(self.holder(tenant, operation), 0);
        states.into_iter().map(|state| state.available).collect()
    }
}

const TWO_REQUESTS: Usage = Usage { requests: 2, ..Usage::NOTHING };
const ONE_SUCCESS: Usage = Usage { first_try_successes: 1, ..Usage::NOTHING };

#[test]
fn a_balance_is_shared_by_scope() {
    for (scope, other_tenant, other_operation) in [
        (Scope::Tenant, 2, 0),
        (Scope::TenantOperation, 2, 2),
        (Scope::Operation, 0, 2),
        (Scope::Global, 0, 0),
    ] {
        let bench = Bench::of(&[budget("b", scope, ratio(2))]);
        assert_eq!(bench.drain("a", "x"), 2, "{scope:?}");
        assert_eq!(bench.drain("b", "x"), other_tenant, "{scope:?}");
        assert_eq!(bench.drain("a", "y"), other_operation, "{scope:?}");
    }
}

#[test]
fn b34_trouble_of_one_tenant_starves_no_other() {
    let bench = Bench::of(&[budget("mine", Scope::Tenant, bucket(500))]);
    assert_eq!(bench.drain("a", "op1"), 100);
    let refused = bench.memory.open(&bench.ask("a", "op1"), None).coverage();
    assert_eq!(refused, Coverage::Exhausted(Purse { budget: "mine", available: 0 }));
    assert!(bench.pay(bench.ask("b", "op1")));
}

#[test]
fn b54_names_are_never_joined_into_one_key() {
    let bench = Bench::of(&[budget("b", Scope::TenantOperation, ratio(1))]);
    for (tenant, operation) in [
        ("a:b", "c"),
        ("a", "b:c"),
        ("a/b", "c"),
        ("a", "b/c"),
        ("ab", "c"),
        ("a", "bc"),
        ("A", "bc"),
    ] {
        assert_eq!(bench.drain(tenant, operation), 1, "{tenant} + {operation}");
    }
}

#[test]
fn b33_a_wave_of_failures_is_charged_before_any_retry_starts() {
    let floor = ratio::Floor { count: 3, interval_ms: 1_000 };
    let limits = Limits::Ratio(ratio::Limits { percent: 20, interval_ms: 10_000, floor });
    let bench = Bench::of(&[budget("b", Scope::Tenant, limits)]);
    let usage = Usage { requests: 1_000, ..Usage::NOTHING };
    bench.memory.deposit(bench.holder("a", "x"), &usage, 0);
    let granted = (0..1_000).filter(|_| bench.pay(bench.ask("a", "x"))).count();
    assert_eq!(granted, 203);
}

#[test]
fn a_budget_is_one_thing_wherever_it_is_named() {
    let budgets = [budget("b", Scope::Tenant, ratio(3)), budget("wide", Scope::Global, ratio(9))];
    let memory = Memory::new(&budgets);
    let [narrow, both] = [[BudgetId(0)].as_slice(), &[BudgetId(1), BudgetId(0)]]
        .map(|ids| Payers::new(ids, &budgets).unwrap());
    let bench = Bench { memory, payers: narrow };
    assert!(bench.pay(bench.ask("a", "x")));
    assert!(bench.pay(Ask {
        holder: Holder { payers: &both, ..bench.holder("a", "y") },
        ..bench.ask("a", "y")
    }));
    assert_eq!(bench.available("a", "z"), [1]);
}

#[test]
fn looking_creates_no_balance() {
    let bench = Bench::of(&[
        budget("r", Scope::Tenant, ratio(0)),
        budget("t", Scope::Global, throttle()),
        budget("b", Scope::Operation, bucket(500)),
    ]);
    assert_eq!(bench.available("a", "x"), [0, 4, 100]);
    assert!(!bench.pay(bench.ask("a", "x")));
    let dry = Ask { usage: &TWO_REQUESTS, counts: true, dry_run: true, ..bench.ask("a", "x") };
    assert!(bench.pay(dry));
    let nothing = bench.memory.deposit(bench.holder("a", "x"), &Usage::NOTHING, 0);
    assert_eq!(nothing.map(|state| state.available), Some(0));
    assert_eq!(bench.memory.occupancy().balances, 0);
}

#[test]
fn earning_counting_and_charging_create_a_balance_where_they_write() {
    let (requests, success) = (&TWO_REQUESTS, &ONE_SUCCESS);
    let rounded_to_nothing = &Usage { period_ms: Some(40_000), ..TWO_REQUESTS };
    for (limits, usage, counts, charge, created) in [
        (ratio(1), requests, false, false, 1),
        (ratio(1), rounded_to_nothing, false, false, 0),
        (ratio(1), success, false, false, 0),
        (ratio(1), &Usage::NOTHING, true, false, 0),
        (ratio(1), &Usage::NOTHING, false, true, 1),
        (throttle(), requests, false, false, 0),
        (throttle(), success, false, false, 1),
        (throttle(), &Usage::NOTHING, true, false, 1),
        (throttle(), &Usage::NOTHING, false, true, 0),
        (bucket(500), requests, false, false, 0),
        (bucket(500), success, false, false, 1),
        (bucket(500), &Usage::NOTHING, true, false, 0),
        (bucket(500), &Usage::NOTHING, false, true, 1),
    ] {
        let bench = Bench::of(&[budget("b", Scope::Tenant, limits)]);
        let mut account = bench.memory.open(&Ask { usage, counts, ..bench.ask("a", "x") }, None);
        if charge {
            assert_eq!(account.charge(None).unwrap().payment(), Payment::Paid);
        }
        drop(account);
        let case = format!("{limits:?} {usage:?} counts {counts} charge {charge}");
        assert_eq!(bench.memory.occupancy().balances, created, "{case}");
    }
}

#[test]
fn the_first_budget_in_the_policy_that_refuses_is_named() {
    let budgets = [
        budget("plenty", Scope::Global, ratio(5)),
        budget("global", Scope::Global, ratio(0)),
        budget("tenant", Scope::Tenant, ratio(0)),
    ];
    let bench = Bench::of(&budgets);
    let refused = bench.memory.open(&bench.ask("a", "x"), None).coverage();
    assert_eq!(refused, Coverage::Exhausted(Purse { budget: "global", available: 0 }));
    // The order of locking is another one, and does not show.
    let reversed = Payers::new(&[BudgetId(2), BudgetId(1), BudgetId(0)], &budgets).unwrap();
    let refused = bench
        .memory
        .open(
            &Ask {
                holder: Holder { payers: &reversed, ..bench.holder("a", "x") },
                ..bench.ask("a", "x")
            },
            None,
        )
        .coverage();
    assert_eq!(refused, Coverage::Exhausted(Purse { budget: "tenant", available: 0 }));
}

#[test]
fn one_budget_that_refuses_keeps_all_others_whole() {
    let bench = Bench::of(&[
        budget("first", Scope::Tenant, ratio(5)),
        budget("empty", Scope::Global, ratio(0)),
        budget("last", Scope::Operation, bucket(500)),
    ]);
    let empty = Coverage::Exhausted(Purse { budget: "empty", available: 0 });
    // Whoever charges without looking is told the same.
    assert_eq!(bench.memory.open(&bench.ask("a", "x"), None).charge(None), Err(empty));
    assert_eq!(bench.available("a", "x"), [5, 0, 100]);
}

#[test]
fn the_scarcest_is_the_one_with_the_fewest_then_the_first() {
    let bench = Bench::of(&[
        budget("many", Scope::Tenant, ratio(9)),
        budget("few", Scope::Tenant, throttle()),
        budget("as-few", Scope::Tenant, ratio(4)),
    ]);
    let mut account = bench.memory.open(&bench.ask("a", "x"), None);
    let few = State { budget: "few", available: 4, capacity: 4 };
    assert_eq!(account.scarcest(), Some(few));
    assert_eq!(account.coverage(), Coverage::Covered(Purse { budget: "few", available: 4 }));
    // As things stand: after the charge, which a throttle does not pay.
    account.charge(None).unwrap();
    let as_few = State { budget: "as-few", available: 3, capacity: 4 };
    assert_eq!(account.scarcest(), Some(as_few));
}

#[test]
fn a_throttle_counts_before_it_is_asked_and_pays_nothing() {
    let bench = Bench::of(&[budget("t", Scope::Tenant, throttle())]);
    let counting = Ask { counts: true, ..bench.ask("a", "x") };
    let granted: Vec<bool> = (0..5).map(|_| bench.pay(counting)).collect();
    assert_eq!(granted, [true, true, true, true, false]);
    // It counts whatever the rules decide; and what does not count is asked of the value as is.
    let bench = Bench::of(&[budget("t", Scope::Tenant, throttle())]);
    for _ in 0..4 {
        drop(bench.memory.open(&Ask { counts: true, ..bench.ask("a", "x") }, None));
    }
    assert_eq!(bench.available("a", "x"), [0]);
    assert!(bench.pay(bench.ask("a", "x")) && bench.pay(bench.ask("a", "x")));
    assert!(!bench.pay(Ask { counts: true, ..bench.ask("a", "x") }));
}

#[test]
fn usage_is_deposited_before_anything_is_looked_at() {
    let bench = Bench::of(&[budget("b", Scope::Tenant, ratio(0))]);
    let asks = [&TWO_REQUESTS, &Usage::NOTHING, &Usage::NOTHING];
    let granted = asks.map(|usage| bench.pay(Ask { usage, ..bench.ask("a", "x") }));
    assert_eq!(granted, [true, true, false]);
}

#[test]
fn a_deposit_tells_the_scarcest_budget_afterwards() {
    let bench =
        Bench::of(&[budget("r", Scope::Tenant, ratio(1)), budget("t", Scope::Tenant, throttle())]);
    let usage = Usage { requests: 2, ..Usage::NOTHING };
    let told = bench.memory.deposit(bench.holder("a", "x"), &usage, 0);
    assert_eq!(told, Some(State { budget: "r", available: 3, capacity: 1 }));
    assert_eq!(
        bench.memory.deposit(
            Holder { payers: &Payers::default(), ..bench.holder("a", "x") },
            &usage,
            0
        ),
        None
    );
}

#[test]
fn without_budgets_there_is_nothing_to_pay() {
    let bench = Bench::of(&[]);
    for dry_run in [false, true] {
        let mut account = bench.memory.open(&Ask { dry_run, ..bench.ask("a", "x") }, None);
        assert_eq!(account.coverage(), Coverage::Unbudgeted);
        assert_eq!(account.charge(None).unwrap().payment(), Payment::Unbudgeted);
        assert_eq!(account.scarcest(), None);
    }
}

#[test]
fn a_budget_of_another_store_grants_nothing() {
    let bench = Bench::of(&["b", "c"].map(|name| budget(name, Scope::Tenant, ratio(5))));
    let elsewhere = Bench { memory: Memory::new(&[]), payers: bench.payers };
    assert!(!elsewhere.pay(elsewhere.ask("a", "x")));
    assert_eq!(elsewhere.available("a", "x"), [0, 0]);
}

/// Everything that an attempt hears from its budgets.
fn answers(bench: &Bench, ask: Ask<'_>) -> impl PartialEq + std::fmt::Debug + use<> {
    let mut account = bench.memory.open(&ask, None);
    let coverage = format!("{:?}", account.coverage());
    let before = account.scarcest().map(|state| (state.available, state.capacity));
    let charged = account.charge(None).map_err(|refused| format!("{refused:?}"));
    let payment = if ask.dry_run { Payment::DryRun } else { Payment::Paid };
    let charged = charged.map(|receipt| assert_eq!(receipt.payment(), payment));
    let after = account.scarcest().map(|state| (state.available, state.capacity));
    (coverage, before, charged, after)
}

proptest! {
    #[test]
    fn a_dry_run_answers_as_if_it_had_written_and_writes_nothing(
        asks in prop::collection::vec(
            (0..2_usize, 0..2_usize, 0..3_u64, 0..3_u64, any::<bool>(), 0..400_u64),
            1..40,
        ),
    ) {
        let bench = Bench::of(&[
            budget("r", Scope::Tenant, ratio(2)),
            budget("t", Scope::TenantOperation, throttle()),
            budget("b", Scope::Operation, bucket(30)),
            budget("g", Scope::Global, ratio(5)),
        ]);
        let mut now_ms = 0;
        for (tenant, operation, requests, first_try_successes, counts, after_ms) in asks {
            now_ms += after_ms;
            let (tenant, operation) = (["a", "b"][tenant], ["x", "y"][operation]);
            let usage = Usage { requests, first_try_successes, ..Usage::NOTHING };
            let ask = Ask { usage: &usage, counts, now_ms, ..bench.ask(tenant, operation) };
            let (before, created) =
                (bench.memory.look(bench.holder(tenant, operation), now_ms), bench.memory.occupancy().balances);
            let dry = answers(&bench, Ask { dry_run: true, ..ask });
            let after = bench.memory.look(bench.holder(tenant, operation), now_ms);
            prop_assert_eq!(before, after);
            prop_assert_eq!(created, bench.memory.occupancy().balances);
            prop_assert_eq!(dry, answers(&bench, ask));
        }
    }
}

/// A store with room for two balances, of a budget with one retry for each key.
fn crowded() -> Bench {
    let budgets = [budget("b", Scope::Tenant, ratio(1))];
    let payers = Payers::new(&[BudgetId(0)], &budgets).unwrap();
    Bench { memory: Memory::with_room(&budgets, 2), payers }
}

#[test]
fn keys_without_room_share_one_balance() {
    let bench = crowded();
    assert_eq!([bench.drain("a", "op"), bench.drain("b", "op")], [1, 1]);
    assert_eq!(bench.available("c", "op"), [1]);
    assert_eq!([bench.drain("c", "op"), bench.drain("d", "op")], [1, 0]);
    assert_eq!(bench.available("e", "op"), [0]);
    assert_eq!(bench.memory.occupancy().balances, 2);
}

#[test]
fn keys_with_a_balance_keep_it_when_there_is_no_more_room() {
    let bench = crowded();
    for tenant in ["a", "b", "c"] {
        assert!(bench.pay(bench.ask(tenant, "op")));
    }
    let fed = Ask { usage: &TWO_REQUESTS, ..bench.ask("a", "op") };
    assert!(bench.pay(fed));
    assert_eq!(bench.available("a", "op"), [1]);
    assert_eq!(bench.available("c", "op"), [0]);
}

#[test]
fn a_dry_run_takes_no_room() {
    let bench = crowded();
    for tenant in ["a", "b", "c"] {
        assert!(bench.pay(Ask { dry_run: true, ..bench.ask(tenant, "op") }));
    }
    assert_eq!(bench.memory.occupancy().balances, 0);
    assert_eq!(["a", "b", "c", "d"].map(|tenant| bench.drain(tenant, "op")), [1, 1, 1, 0]);
}
