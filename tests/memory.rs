//! What a balance takes in memory, as it is asked of the allocator. No neighbour on the machine changes that, so the limits are
//! near to today's figures. What the whole process takes is printed by `tests/process/tenants.rs`.
//!
//! A change that costs more must raise a limit here, and say in its commit what it is worth.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
use allocation_counter::measure;
use retryd::budget::{
    Account, Ask, Budget, BudgetId, Holder, Limits, Memory, OnStoreLoss, Payers, Purpose, Scope,
    Store, Usage, ratio,
};
use retryd::engine::Class;

/// So many that the tables are half full, as with a million.
const TENANTS: i64 = 70_000;
/// Today: one, and the tables.
const ALLOCATIONS_MAX: f64 = 1.01;
/// Today: 96 for the balance and its key, and 17 for a place in a table.
const BYTES_MAX: f64 = 114.0;

#[test]
fn a_balance_with_a_name_of_sixteen_bytes_takes_little() {
    let floor = ratio::Floor { count: 10, interval_ms: 1_000 };
    let limits = Limits::Ratio(ratio::Limits { percent: 20, interval_ms: 10_000, floor });
    let (name, on_store_loss) = ("b".into(), OnStoreLoss::default());
    let budgets = [Budget { name, scope: Scope::Tenant, limits, on_store_loss }];
    let (memory, payers) = (Memory::new(&budgets), Payers::new(&[BudgetId(0)], &budgets).unwrap());
    let taken = measure(|| {
        for tenant in 0..TENANTS {
            let tenant = format!("tenant-{tenant:09}");
            let holder = Holder { payers: &payers, tenant: &tenant, operation: "x", twins: false };
            let (usage, purpose) = (&Usage::NOTHING, Purpose::Attempt(Class::Transient));
            let ask = Ask { holder, usage, counts: false, purpose, dry_run: false, now_ms: 0 };
            assert!(memory.open(&ask, None).charge(None).is_ok());
        }
    });
    let each = |number: i64| number as f64 / TENANTS as f64;
    let (allocations, bytes) = (each(taken.count_current), each(taken.bytes_current));
    println!("{allocations:.3} allocations and {bytes:.1} bytes a balance");
    assert!(allocations <= ALLOCATIONS_MAX, "{allocations:.3} allocations a balance");
    assert!(bytes <= BYTES_MAX, "{bytes:.1} bytes a balance");
}
