//! What callers ask of budgets besides decisions.
use std::sync::atomic::Ordering;

use super::{Decider, InForce};
use crate::budget::{
    BudgetId, GrantName, LEASE_VALID_MS_MAX, LeaseName, Limits, Listed, Payers, ReportName, State,
    Store, Usage,
};
use crate::policy::{Mode, Policies};

/// Retries taken ahead.
#[derive(Debug)]
pub struct Acquired<'a> {
    /// How many.
    pub granted: u32,
    /// The budget with the fewest retries available now.
    pub budget: Option<State<'a>>,
    /// After this long they are lost.
    pub valid_ms: u64,
    /// Names them. Empty if there are none.
    pub lease: String,
    /// The policy only observes.
    pub shadow: bool,
}

impl<S: Store> Decider<S> {
    /// Whether this report is counted, or was before.
    pub fn is_new_report(&self, report: ReportName<'_>) -> bool {
        self.once.is_new_report(report, self.now().monotonic_ms)
    }

    /// Deposits what the callers of one tenant and operation did, and tells the scarcest budget.
    pub fn deposit<R>(
        &self,
        InForce(revision): &InForce<S>,
        tenant: &str,
        operation: &str,
        usage: &Usage,
        tell: impl FnOnce(Option<State<'_>>) -> R,
    ) -> R {
        let policy = revision.policies.find(tenant, operation);
        let holder = policy.holder(tenant, operation);
        self.metrics.usage_reports.inc();
        tell(revision.store.deposit(holder, usage, self.now().monotonic_ms))
    }

    /// The state of every budget that would pay, in the policy's order.
    pub fn look<R>(
        &self,
        InForce(revision): &InForce<S>,
        tenant: &str,
        operation: &str,
        tell: impl FnOnce(&[State<'_>]) -> R,
    ) -> R {
        let policy = revision.policies.find(tenant, operation);
        let holder = policy.holder(tenant, operation);
        tell(&revision.store.look(holder, self.now().monotonic_ms))
    }

    /// Takes as many retries as every budget covers, at most `wanted`, out of each.
    pub fn acquire<R>(
        &self,
        in_force: &InForce<S>,
        tenant: &str,
        operation: &str,
        wanted: u32,
        tell: impl FnOnce(Acquired<'_>) -> R,
    ) -> R {
        self.acquire_as(in_force, tenant, operation, wanted, || self.lease_name(), tell)
    }

    /// The same, under a name that was made elsewhere.
    pub fn acquire_as<R>(
        &self,
        InForce(revision): &InForce<S>,
        tenant: &str,
        operation: &str,
        wanted: u32,
        name: impl FnOnce() -> String,
        tell: impl FnOnce(Acquired<'_>) -> R,
    ) -> R {
        let policy = revision.policies.find(tenant, operation);
        let (holder, now_ms) = (policy.holder(tenant, operation), self.now().monotonic_ms);
        // Where nothing may be repeated, no budget pays for it.
        let wanted = if policy.rules.attempts_max <= 1 { 0 } else { wanted };
        let (grant, budget) = revision.store.acquire(holder, wanted, now_ms);
        let granted = grant.retries();
        let mut acquired = Acquired {
            granted,
            budget,
            valid_ms: LEASE_VALID_MS_MAX,
            lease: String::new(),
            shadow: policy.mode == Mode::Shadow,
        };
        if 0 < granted {
            acquired.valid_ms = valid_ms(&policy.payers, &revision.policies);
            acquired.lease = name();
            let name = LeaseName { tenant, operation, lease: &acquired.lease };
            self.once.lend(name, grant, now_ms.saturating_add(acquired.valid_ms), now_ms);
        }
        tell(acquired)
    }

    /// Takes at most `unused` retries back, and tells how many, and the scarcest budget.
    pub fn release<R>(
        &self,
        InForce(revision): &InForce<S>,
        tenant: &str,
        operation: &str,
        grant: GrantName<'_>,
        unused: u32,
        tell: impl FnOnce(u32, Option<State<'_>>) -> R,
    ) -> R {
        let holder = revision.policies.find(tenant, operation).holder(tenant, operation);
        let now_ms = self.now().monotonic_ms;
        let released = self.once.release(grant, now_ms, |grant| {
            revision.store.give_back(holder, grant, unused, now_ms)
        });
        tell(released, State::scarcest(revision.store.look(holder, now_ms)))
    }

    /// The first `count` balances after a place in the list of those that `shows` lets through by
    /// their tenant. It is empty where a balance has none.
    pub fn list(
        &self,
        InForce(revision): &InForce<S>,
        after: Option<&Listed>,
        count: usize,
        shows: impl Fn(&str) -> bool,
    ) -> Vec<Listed> {
        revision.store.list(after, count, self.now().monotonic_ms, &shows)
    }

    /// No two leases of a process have the same name, and nobody guesses one.
    fn lease_name(&self) -> String {
        let number = self.leases.fetch_add(1, Ordering::Relaxed);
        format!("{number:x}-{:08x}{:08x}", self.dice.roll(), self.dice.roll())
    }
}

/// As long as the budgets take to forget what they paid with, but not for ever.
fn valid_ms(payers: &Payers, policies: &Policies) -> u64 {
    let budgets = payers.ids().iter().filter_map(|BudgetId(place)| policies.budgets().get(*place));
    let intervals = budgets.filter_map(|budget| match &budget.limits {
        Limits::Ratio(ratio) => Some(ratio.interval_ms),
        Limits::Throttle(_) | Limits::TokenBucket(_) => None,
    });
    intervals.fold(LEASE_VALID_MS_MAX, u64::min)
}
