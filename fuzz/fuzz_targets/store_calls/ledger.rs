//! What callers are owed, written down beside the service.
use std::collections::HashMap;

use retryd::budget::{Limits, Scope};
use retryd::policy::{Mode, Policies};
use retryd::wire::pb;

use crate::calls::{Attempt, Who};

const ATTEMPT_KEPT_MS: u64 = 10_000;
const REPORT_KEPT_MS: u64 = 600_000;
/// The longest interval of all the policy files: nothing is in a window for longer.
const EARNED_KEPT_MS: u64 = 60_000;
const FREE_REPEATS: u32 = 3;

#[derive(Default)]
pub(crate) struct Ledger {
    attempts: HashMap<(Who, &'static str, u32), Known>,
    reports: HashMap<&'static str, u64>,
    leases: Vec<Lease>,
    earned: Vec<Earned>,
}

struct Known {
    since_ms: u64,
    free_repeats: u32,
    /// It may be released.
    is_granted: bool,
    /// Every budget of the policy in force has paid for it.
    is_paid: bool,
}

struct Lease {
    who: Who,
    name: String,
    left: u32,
    until_ms: u64,
}

/// Units that a report put into a ratio.
struct Earned {
    at_ms: u64,
    who: Who,
    budget: String,
    mode: Mode,
    units: u128,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    First,
    /// Its budgets have paid already.
    Paid,
    Unpaid,
    Further,
}

impl Ledger {
    pub(crate) fn turn(&self, attempt: &Attempt, now_ms: u64) -> Turn {
        match self.attempts.get(&key(attempt)) {
            Some(known) if now_ms < known.since_ms + ATTEMPT_KEPT_MS => {
                match (known.free_repeats, known.is_paid) {
                    (0, _) => Turn::Further,
                    (_, true) => Turn::Paid,
                    (_, false) => Turn::Unpaid,
                }
            }
            Some(_) | None => Turn::First,
        }
    }

    pub(crate) fn decided(&mut self, attempt: &Attempt, turn: Turn, is_retry: bool, now_ms: u64) {
        if attempt.call_id.is_empty() || turn == Turn::Further {
            return;
        }
        let (since_ms, free_repeats) = (now_ms, FREE_REPEATS);
        let first = Known { since_ms, free_repeats, is_granted: is_retry, is_paid: is_retry };
        if turn == Turn::First {
            self.attempts.insert(key(attempt), first);
        } else if let Some(known) = self.attempts.get_mut(&key(attempt)) {
            known.free_repeats -= 1;
            known.is_granted |= is_retry;
            known.is_paid |= is_retry;
        }
    }

    /// How many retries come back. A Decide grants one.
    pub(crate) fn release_decided(&mut self, of: (Who, &'static str, u32), now_ms: u64) -> u32 {
        let known = self.attempts.get_mut(&of);
        let known = known.filter(|it| now_ms < it.since_ms + ATTEMPT_KEPT_MS && it.is_granted);
        let Some(known) = known else { return 0 };
        (known.is_granted, known.is_paid) = (false, false);
        1
    }

    pub(crate) fn lend(&mut self, who: Who, name: String, left: u32, until_ms: u64) {
        self.leases.push(Lease { who, name, left, until_ms });
    }

    /// Who has a lease, and its name.
    pub(crate) fn lease(&self, place: usize) -> Option<(Who, String)> {
        let lease = self.leases.get(place % self.leases.len().max(1))?;
        Some((lease.who, lease.name.clone()))
    }

    /// How many retries come back.
    pub(crate) fn release(&mut self, by: Who, name: &str, unused: u32, now_ms: u64) -> u32 {
        let owned = |lease: &&mut Lease| lease.who == by && lease.name == name;
        let lease = self.leases.iter_mut().find(owned).filter(|lease| now_ms < lease.until_ms);
        let Some(lease) = lease else { return 0 };
        let released = unused.min(lease.left);
        lease.left -= released;
        released
    }

    pub(crate) fn is_new_report(&mut self, id: &'static str, now_ms: u64) -> bool {
        let is_old = |since_ms: &u64| now_ms < since_ms + REPORT_KEPT_MS;
        if !id.is_empty() && self.reports.get(id).is_some_and(is_old) {
            return false;
        }
        self.reports.insert(id, now_ms);
        true
    }

    pub(crate) fn earn(&mut self, policies: &Policies, who: Who, usage: &pb::Usage, now_ms: u64) {
        let policy = policies.find(who.tenant, who.operation);
        for budget in policy.payers.ids().iter().map(|id| &policies.budgets()[id.0]) {
            let Limits::Ratio(ratio) = budget.limits else { continue };
            let interval_ms = u128::from(ratio.interval_ms);
            let period = usage.period.map_or(0, |period| period.seconds);
            let period_ms = u128::try_from(period).expect("it is positive") * 1_000;
            let requests = u128::from(usage.requests) * interval_ms / period_ms.max(interval_ms);
            self.earned.push(Earned {
                at_ms: now_ms,
                who,
                budget: budget.name.to_string(),
                mode: policy.mode,
                units: requests * u128::from(ratio.percent),
            });
        }
    }

    /// The most that a budget can still hold of what was earned, in retries.
    ///
    /// `scope` says who shares the balance; without one all do.
    pub(crate) fn earned(
        &self,
        budget: &str,
        scope: Option<Scope>,
        (who, mode): (Who, Mode),
        now_ms: u64,
    ) -> u128 {
        let shares = |other: Who| match scope {
            Some(Scope::Tenant) => who.tenant == other.tenant,
            Some(Scope::Operation) => who.operation == other.operation,
            Some(Scope::TenantOperation) => who == other,
            Some(Scope::Global) | None => true,
        };
        let is_held = |it: &&Earned| {
            let is_its = it.budget == budget && it.mode == mode && shares(it.who);
            is_its && now_ms < it.at_ms + EARNED_KEPT_MS
        };
        self.earned.iter().filter(is_held).map(|it| it.units).sum::<u128>() / 100
    }

    /// Other budgets pay from now on.
    pub(crate) fn reloaded(&mut self) {
        self.attempts.values_mut().for_each(|known| known.is_paid = false);
    }
}

fn key(attempt: &Attempt) -> (Who, &'static str, u32) {
    (attempt.who, attempt.call_id, attempt.attempts_made)
}
