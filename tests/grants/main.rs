//! What the store of balances grants, remembers, takes back, shows and keeps over a reload.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed"
)]
mod acquire;
mod give_back;
mod list;
mod names;
mod once;
mod paid;
mod reload;

use retryd::budget::{
    Account, Ask, Budget, BudgetId, Grant, Holder, Limits, Memory, OnStoreLoss, Payers, Payment,
    Purpose, Scope, Store, Usage, bucket, ratio, throttle,
};
use retryd::engine::Class;

fn budget(name: &str, limits: Limits) -> Budget {
    Budget {
        name: name.into(),
        scope: Scope::Tenant,
        limits,
        on_store_loss: OnStoreLoss::default(),
    }
}

/// Earns one retry for each request, in slots of a second, and has `count` without.
fn ratio(count: u32) -> Limits {
    let floor = ratio::Floor { count, interval_ms: 3_600_000 };
    Limits::Ratio(ratio::Limits { percent: 100, interval_ms: 10_000, floor })
}

/// Grants `(tokens_max - 1) / 2` retries ahead.
fn throttle(tokens_max: u32) -> Limits {
    Limits::Throttle(throttle::Limits { tokens_max, token_ratio_thousandths: 1_000 })
}

/// Retries cost 3, 2 or 7 tokens.
fn bucket(capacity: u32) -> Limits {
    let costs = bucket::Costs { transient: 3, throttling: 2, timeout: 7 };
    Limits::TokenBucket(bucket::Limits { capacity, costs })
}

/// A store, and one policy that names all of its budgets.
struct Bench {
    memory: Memory,
    payers: Payers,
}

impl Bench {
    fn of(budgets: &[Budget]) -> Bench {
        Bench { memory: Memory::new(budgets), payers: all(budgets) }
    }

    fn with_room(budgets: &[Budget], balances_max: usize) -> Bench {
        Bench { memory: Memory::with_room(budgets, balances_max), payers: all(budgets) }
    }

    /// After a reload that has brought every balance to the sizes of today.
    fn reloaded(&self, budgets: &[Budget], now_ms: u64) -> Bench {
        let later = self.unsettled(budgets, now_ms);
        later.memory.settle();
        later
    }

    /// In the middle of a reload.
    fn unsettled(&self, budgets: &[Budget], now_ms: u64) -> Bench {
        Bench { memory: self.memory.succeeded_by(budgets, now_ms), payers: all(budgets) }
    }

    fn holder<'a>(&'a self, tenant: &'a str) -> Holder<'a> {
        Holder { payers: &self.payers, tenant, operation: "op", twins: false }
    }

    fn twin<'a>(&'a self, tenant: &'a str) -> Holder<'a> {
        Holder { twins: true, ..self.holder(tenant) }
    }

    /// Takes as many as there are, up to `wanted`.
    fn acquire(&self, holder: Holder<'_>, wanted: u32) -> Grant {
        self.memory.acquire(holder, wanted, 0).0
    }

    /// Reports requests and successes.
    fn feed(&self, tenant: &str, count: u64, now_ms: u64) {
        let usage = Usage { requests: count, first_try_successes: count, ..Usage::NOTHING };
        self.memory.deposit(self.holder(tenant), &usage, now_ms);
    }

    /// What every budget has available, in the policy's order.
    fn available(&self, holder: Holder<'_>, now_ms: u64) -> Vec<u32> {
        self.memory.look(holder, now_ms).iter().map(|state| state.available).collect()
    }

    fn balances(&self) -> usize {
        self.memory.occupancy().balances
    }
}

fn all(budgets: &[Budget]) -> Payers {
    let ids: Vec<BudgetId> = (0..budgets.len()).map(BudgetId).collect();
    Payers::new(&ids, budgets).unwrap()
}

/// An attempt that failed without counting.
fn ask(holder: Holder<'_>) -> Ask<'_> {
    let (usage, purpose) = (&Usage::NOTHING, Purpose::Attempt(Class::Transient));
    Ask { holder, usage, counts: false, purpose, dry_run: false, now_ms: 0 }
}

/// Charges for an attempt that was granted `grant` so far. `None`: it was refused.
fn charge(bench: &Bench, ask: Ask<'_>, grant: &mut Grant) -> Option<Payment> {
    let mut account = bench.memory.open(&ask, Some(grant));
    account.charge(Some(grant)).ok().map(|receipt| receipt.payment())
}
