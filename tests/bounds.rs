//! What is bounded in the store of balances: how many there are, how long they are kept, and the
//! work that one call does for it.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed"
)]
use retryd::budget::{
    Account, Ask, Budget, BudgetId, Holder, Limits, Memory, Occupancy, OnStoreLoss, Payers,
    Purpose, Scope, Store, Usage, bucket, ratio, throttle,
};
use retryd::engine::{Class, Coverage};

const IDLE_MS: u64 = 600_000;

fn budget(name: &str, limits: Limits) -> Budget {
    Budget {
        name: name.into(),
        scope: Scope::Tenant,
        limits,
        on_store_loss: OnStoreLoss::default(),
    }
}

/// Two retries without reports, and the floor fills up within the hour.
fn ratio() -> Limits {
    let floor = ratio::Floor { count: 2, interval_ms: 3_600_000 };
    Limits::Ratio(ratio::Limits { percent: 100, interval_ms: 10_000, floor })
}

fn bucket() -> Limits {
    Limits::TokenBucket(bucket::Limits { capacity: 5, costs: bucket::Costs::AWS_LEGACY })
}

fn throttle() -> Limits {
    Limits::Throttle(throttle::Limits { tokens_max: 4, token_ratio_thousandths: 1 })
}

/// A store, and a policy for each of its budgets.
struct Bench {
    memory: Memory,
    policies: Vec<Payers>,
}

impl Bench {
    fn new(budgets: &[Budget], balances_max: usize) -> Bench {
        let only = |place| Payers::new(&[BudgetId(place)], budgets).unwrap();
        let policies = (0..budgets.len()).map(only).collect();
        Bench { memory: Memory::with_room(budgets, balances_max), policies }
    }

    fn holder<'a>(&'a self, policy: usize, tenant: &'a str) -> Holder<'a> {
        Holder { payers: &self.policies[policy], tenant, operation: "op", twins: false }
    }

    fn ask<'a>(&'a self, policy: usize, tenant: &'a str, now_ms: u64) -> Ask<'a> {
        Ask {
            holder: self.holder(policy, tenant),
            usage: &Usage::NOTHING,
            counts: true,
            purpose: Purpose::Attempt(Class::Transient),
            dry_run: false,
            now_ms,
        }
    }

    /// Asks once, and tells whether it was granted.
    fn pay(&self, policy: usize, tenant: &str, now_ms: u64) -> bool {
        let ask = self.ask(policy, tenant, now_ms);
        let mut account = self.memory.open(&ask, None);
        matches!(account.coverage(), Coverage::Covered(_)) && account.charge(None).is_ok()
    }

    /// So many new tenants that every balance gets its turn to be looked at.
    fn crowd(&self, policy: usize, now_ms: u64) {
        for tenant in 0..5_000 {
            self.pay(policy, &format!("crowd-{now_ms}-{tenant}"), now_ms);
        }
    }

    /// How many were dropped once the search has come to every balance: it goes on where it stood,
    /// and tables that grow move their balances about, so one crowd may not be enough.
    fn dropped(&self, policy: usize, now_ms: u64) -> u64 {
        let crowd = |turn| {
            (0..5_000).for_each(|tenant| {
                self.pay(policy, &format!("crowd-{now_ms}-{turn}-{tenant}"), now_ms);
            })
        };
        (0..10).for_each(crowd);
        self.occupancy().evicted
    }

    fn available(&self, policy: usize, tenant: &str, now_ms: u64) -> u32 {
        self.memory.look(self.holder(policy, tenant), now_ms)[0].available
    }

    fn occupancy(&self) -> Occupancy {
        self.memory.occupancy()
    }
}

#[test]
fn a_balance_that_nobody_uses_for_ten_minutes_is_dropped() {
    for (limits, drained) in [(bucket(), 0), (throttle(), 0)] {
        let bench = Bench::new(&[budget("b", limits)], 100_000);
        assert!((0..1_000).any(|_| !bench.pay(0, "a", 0)));
        bench.crowd(0, IDLE_MS - 1);
        assert_eq!(bench.available(0, "a", IDLE_MS - 1), drained, "it is still there");
        assert_eq!(bench.occupancy().evicted, 0);
        assert_eq!(bench.dropped(0, IDLE_MS), 1);
        // It heals by successes alone, so it comes back full, as after a restart.
        assert_ne!(bench.available(0, "a", IDLE_MS), drained, "it is gone");
    }
}

/// Whether somebody has looked for room meanwhile makes no difference.
#[test]
fn an_idle_balance_reads_as_a_fresh_one_before_it_is_dropped() {
    let bench = Bench::new(&[budget("b", bucket())], 100_000);
    assert!(bench.pay(0, "a", 0) && !bench.pay(0, "a", IDLE_MS - 1_000));
    let idle_ms = 2 * IDLE_MS - 1_000;
    assert_eq!(bench.available(0, "a", idle_ms - 1), 0);
    assert_eq!(bench.available(0, "a", idle_ms), 1);
    assert!(bench.pay(0, "a", idle_ms) && !bench.pay(0, "a", idle_ms));
    assert_eq!(bench.occupancy().evicted, 0);
}

#[test]
fn a_ratio_is_dropped_only_when_a_fresh_one_is_no_fuller() {
    let bench = Bench::new(&[budget("b", ratio())], 100_000);
    assert!(bench.pay(0, "a", 0) && bench.pay(0, "a", 0) && !bench.pay(0, "a", 0));
    let full_ms = 3_600_000;
    bench.crowd(0, full_ms - 1);
    assert_eq!(bench.available(0, "a", full_ms - 1), 1, "its floor is not full yet");
    assert_eq!(bench.occupancy().evicted, 0);
    assert_eq!((bench.dropped(0, full_ms), bench.available(0, "a", full_ms)), (1, 2));
}

#[test]
fn whoever_asks_or_feeds_keeps_a_balance_and_whoever_looks_does_not() {
    let bench = Bench::new(&[budget("b", bucket())], 100_000);
    for tenant in ["asked", "fed", "looked at", "dry run"] {
        assert!(bench.pay(0, tenant, 0) && !bench.pay(0, tenant, 0));
    }
    let late_ms = IDLE_MS - 1_000;
    assert!(!bench.pay(0, "asked", late_ms));
    let usage = Usage { first_try_successes: 1, ..Usage::NOTHING };
    bench.memory.deposit(bench.holder(0, "fed"), &usage, late_ms);
    assert_eq!(bench.available(0, "looked at", late_ms), 0);
    drop(bench.memory.open(&Ask { dry_run: true, ..bench.ask(0, "dry run", late_ms) }, None));
    bench.crowd(0, IDLE_MS);
    let available =
        ["asked", "fed", "looked at", "dry run"].map(|tenant| bench.available(0, tenant, IDLE_MS));
    assert_eq!(available, [0, 0, 1, 1]);
}

#[test]
fn a_balance_that_somebody_holds_is_not_dropped() {
    let bench = Bench::new(&[budget("b", bucket()), budget("c", bucket())], 1);
    assert!(bench.pay(0, "a", 0));
    let ask = bench.ask(0, "a", 0);
    let held = bench.memory.open(&ask, None);
    // Whoever looks for room passes it by, and does not wait for it.
    assert_eq!(bench.dropped(1, IDLE_MS), 0);
    drop(held);
    assert_eq!(bench.dropped(1, IDLE_MS + 1_000), 1);
}

/// Entries and not time: the machines are shared. Six if another caller takes the last room meanwhile.
#[test]
fn a_call_looks_at_two_balances_at_most_and_at_four_when_there_is_no_room() {
    let budgets = [budget("b", bucket()), budget("c", bucket())];
    let mut bench = Bench::new(&budgets, 1_000);
    // All are in use at first, and all idle in the end; meanwhile their sizes change.
    for now_ms in [0, 1_000, IDLE_MS + 2_000] {
        let before = bench.occupancy().looked_at;
        asks_look_at_few(&bench, now_ms);
        assert!(1_000 < bench.occupancy().looked_at - before);
        let costs = bucket::Costs::AWS_LEGACY;
        let limits = Limits::TokenBucket(bucket::Limits { capacity: 6, costs });
        let later = budgets.clone().map(|budget| Budget { limits, ..budget });
        bench.memory = bench.memory.succeeded_by(&later, now_ms);
    }
    assert!(0 < bench.occupancy().evicted);
}

/// Asks once for each of many new tenants, who crowd each other.
fn asks_look_at_few(bench: &Bench, now_ms: u64) {
    for (policy, turn) in (0..2).flat_map(|policy| (0..2_000).map(move |turn| (policy, turn))) {
        let before = bench.occupancy();
        bench.pay(policy, &format!("{now_ms}-{turn}"), now_ms);
        let now = bench.occupancy();
        let most = if before.balances < 1_000 { 2 } else { 4 };
        assert!(now.looked_at - before.looked_at <= most, "{before:?} {now:?}");
        // Another ask of the same tenant finds what the first one has made, if there was room.
        if before.balances < now.balances {
            bench.pay(policy, &format!("{now_ms}-{turn}"), now_ms);
            assert_eq!(bench.occupancy(), now);
        }
    }
}

#[test]
fn whoever_finds_that_the_last_room_is_taken_shares_the_overflow_balance() {
    let bench = Bench::new(&[budget("b", ratio()), budget("c", bucket())], 1);
    let ask = bench.ask(0, "a", 0);
    let mut slower = bench.memory.open(&ask, None);
    assert!(matches!(slower.coverage(), Coverage::Covered(_)));
    assert!(bench.pay(1, "faster", 0));
    assert!(slower.charge(None).is_ok());
    drop(slower);
    let Occupancy { balances, overflowed, .. } = bench.occupancy();
    assert_eq!((balances, overflowed), (1, 1));
    assert_eq!(bench.available(0, "whoever", 0), 1);
}

#[test]
fn where_the_overflow_balance_is_empty_too_no_other_budget_is_charged() {
    let sum = Budget { scope: Scope::Global, ..budget("sum", ratio()) };
    let budgets = [budget("b", ratio()), budget("c", bucket()), sum];
    let bench = Bench::new(&budgets, 2);
    assert!(bench.pay(2, "a", 0) && bench.pay(1, "idle soon", 0));
    assert!(bench.pay(0, "whoever", 0) && bench.pay(0, "whoever", 0));
    assert!(!bench.pay(0, "whoever", 0), "they share two retries for an hour");
    let searching = bench.ask(0, "whoever", IDLE_MS);
    let search = |_| {
        drop(bench.memory.open(&searching, None));
        bench.occupancy().balances == 1
    };
    assert!((0..5_000).any(search), "there is room for one");
    let both = Payers::new(&[BudgetId(0), BudgetId(2)], &budgets).unwrap();
    let holder = Holder { payers: &both, ..bench.holder(0, "a") };
    let ask = Ask { holder, ..bench.ask(0, "a", IDLE_MS) };
    let mut slower = bench.memory.open(&ask, None);
    assert!(matches!(slower.coverage(), Coverage::Covered(_)));
    assert!(bench.pay(1, "faster", IDLE_MS));
    assert!(slower.charge(None).is_err());
    drop(slower);
    assert_eq!(bench.available(2, "a", IDLE_MS), 1);
}

#[test]
fn what_one_budget_does_not_use_any_more_makes_room_for_another() {
    let bench = Bench::new(&[budget("b", bucket()), budget("c", bucket())], 1_000);
    (0..1_000).for_each(|tenant| assert!(bench.pay(0, &format!("tenant-{tenant}"), 0)));
    bench.crowd(1, 0);
    assert_eq!(bench.occupancy().evicted, 0);
    assert_eq!(bench.occupancy().overflowed, 5_000);
    assert_eq!(bench.dropped(1, IDLE_MS), 1_000);
    assert_eq!(bench.occupancy().balances, 1_000);
}

#[test]
fn twins_and_the_balances_of_all_budgets_share_the_room() {
    let bench = Bench::new(&[budget("b", bucket()), budget("c", bucket())], 3);
    for (policy, twins) in [(0, false), (0, true), (1, true), (1, false)] {
        let ask = bench.ask(policy, "a", 0);
        let ask = Ask { holder: Holder { twins, ..ask.holder }, ..ask };
        assert!(bench.memory.open(&ask, None).charge(None).is_ok());
    }
    let Occupancy { balances, overflowed, .. } = bench.occupancy();
    assert_eq!((balances, overflowed), (3, 1));
}

#[test]
fn a_budget_that_is_gone_leaves_its_room() {
    let budgets = [budget("b", bucket()), budget("c", bucket())];
    let bench = Bench::new(&budgets, 1_000);
    bench.crowd(0, 0);
    assert_eq!(bench.occupancy().balances, 1_000);
    let [_, kept] = budgets;
    let Bench { memory, policies } = bench;
    let later = Bench { memory: memory.succeeded_by(&[kept], 0), policies };
    drop(memory);
    assert_eq!(later.occupancy().balances, 0);
    later.crowd(0, 0);
    assert_eq!(later.occupancy().balances, 1_000);
}
