//! One process, its callers, and what must hold after each call.
use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};

use arrayvec::ArrayVec;
use retryd::admin::metrics::Metrics;
use retryd::budget::{Budget, Limits, Memory, PAYERS_MAX};
use retryd::clock::{Clock, Dice, Now};
use retryd::decider::Decider;
use retryd::policy::{Mode, Policies};
use retryd::service::Retryd;
use retryd::wire::pb;
use tokio_util::sync::CancellationToken;

use crate::calls::{Attempt, Call, EVERYBODY, Who};
use crate::ledger::{Ledger, Turn};

static POLICIES: LazyLock<[Policies; 3]> = LazyLock::new(|| {
    let read = |name: &str, bytes: &[u8]| {
        Policies::parse(name, bytes).unwrap_or_else(|rejected| panic!("{rejected}"))
    };
    [
        read("first.yaml", include_bytes!("first.yaml")),
        read("second.yaml", include_bytes!("second.yaml")),
        read("third.yaml", include_bytes!("third.yaml")),
    ]
});

/// 2026-01-01T00:00:00Z, as in most vectors.
const NOW: Now = Now { monotonic_ms: 36_000_000, unix_ms: 1_767_225_600_000 };

pub(crate) struct Play {
    room: usize,
    clock: Clock,
    decider: Arc<Decider<Memory>>,
    retryd: Retryd<Memory>,
    policies: &'static Policies,
    ledger: Ledger,
    last: Option<Attempt>,
}

/// How many retries each budget of a policy has, for each of everybody.
type Shown = [Available; EVERYBODY.len()];
type Available = ArrayVec<u32, PAYERS_MAX>;

impl Play {
    pub(crate) fn new(room: usize) -> Play {
        let policies = &POLICIES[0];
        let clock = Clock::standing_at(NOW);
        let metrics = Arc::<Metrics>::default();
        let store = Memory::with_room(policies.budgets(), room);
        let (dice, counts) = (Dice::loaded(0), Arc::clone(&metrics));
        let decider = Arc::new(Decider::new(policies.clone(), store, clock.clone(), dice, counts));
        let retryd = Retryd::new(Arc::clone(&decider), metrics, CancellationToken::new());
        Play { room, clock, decider, retryd, policies, ledger: Ledger::default(), last: None }
    }

    pub(crate) fn call(&mut self, call: Call) {
        match call {
            Call::Decide(attempt) => self.decide(attempt),
            Call::Again => self.last.into_iter().for_each(|last| self.decide(last)),
            Call::Report { id, entries } => self.report(id, &entries),
            Call::Acquire { who, wanted } => self.acquire(who, wanted),
            Call::Release { lease, by, unused } => {
                if let Some((owner, lease)) = self.ledger.lease(lease) {
                    let by = by.unwrap_or(owner);
                    let due = self.ledger.release(by, &lease, unused, self.now_ms());
                    let grant = pb::release_retries_request::Grant::Lease(lease);
                    self.release(by, grant, unused, due);
                }
            }
            Call::ReleaseDecided { who, call_id, attempts_made, unused } => {
                let due = self.ledger.release_decided((who, call_id, attempts_made), self.now_ms());
                let decided = pb::DecidedAttempt { call_id: call_id.to_owned(), attempts_made };
                let grant = pb::release_retries_request::Grant::Decided(decided);
                self.release(who, grant, unused, due);
            }
            Call::Look { page_size } => {
                EVERYBODY.into_iter().for_each(|who| self.get(who));
                self.list(page_size);
            }
            Call::Reload(file) => {
                self.policies = &POLICIES[file];
                self.decider.reload(self.policies.clone());
                self.ledger.reloaded();
            }
            Call::Wait(ms) => self.clock.advance(Duration::from_millis(ms)),
        }
        self.is_within_bounds();
    }

    fn decide(&mut self, attempt: Attempt) {
        self.last = Some(attempt);
        let decide = |dry_run| self.retryd.decide(&attempt.context(dry_run)).expect("it is valid");
        let (before, occupancy) = (self.shown(), self.decider.occupancy());
        let rehearsed = decide(true);
        assert_eq!(self.shown(), before, "a dry run wrote something");
        assert_eq!(self.decider.occupancy(), occupancy, "a dry run wrote something");

        let (turn, is_ample) = (self.ledger.turn(&attempt, self.now_ms()), self.is_ample());
        let decision = decide(false);
        let after = self.shown();
        let is_retry = decision.verdict() == pb::Verdict::Retry;
        let has_dropped = self.decider.occupancy().evicted != occupancy.evicted;
        if is_ample {
            assert_eq!(decision, rehearsed, "a dry run said something else");
        }
        match turn {
            Turn::Paid if !has_dropped => assert_eq!(after, before, "paid twice"),
            Turn::Unpaid if !has_dropped && !is_retry => assert_eq!(after, before, "not charged"),
            Turn::First | Turn::Further if is_ample && attempt.usage.is_none() => {
                self.is_charged(attempt.who, is_retry, &before, &after);
            }
            _ => {}
        }
        let now_ms = self.now_ms();
        if let (Turn::First, Some(usage)) = (turn, attempt.usage) {
            self.ledger.earn(self.policies, attempt.who, &usage, now_ms);
        }
        self.ledger.decided(&attempt, turn, is_retry, now_ms);
    }

    /// Each budget pays for what is granted, and only for that. A throttle counts failures.
    fn is_charged(&self, who: Who, is_retry: bool, before: &Shown, after: &Shown) {
        let policy = self.policies.find(who.tenant, who.operation);
        let available = of(who, before).iter().zip(of(who, after));
        for (id, (before, after)) in policy.payers.ids().iter().zip(available) {
            let lost = before.checked_sub(*after);
            let is_right = match (&self.policies.budgets()[id.0].limits, lost) {
                (Limits::Ratio(_), lost) => lost == Some(u32::from(is_retry)),
                (Limits::TokenBucket(_), lost) => lost.is_some_and(|lost| is_retry || lost == 0),
                (Limits::Throttle(_), lost) => lost.is_some_and(|lost| lost <= 1),
            };
            assert!(is_right, "retry: {is_retry}, before: {before}, after: {after}");
        }
    }

    fn report(&mut self, report_id: &'static str, entries: &[(Who, pb::Usage)]) {
        let (before, occupancy) = (self.shown(), self.decider.occupancy());
        let entry = |(who, usage): &(Who, pb::Usage)| pb::TenantUsage {
            tenant: who.tenant.to_owned(),
            operation: who.operation.to_owned(),
            usage: Some(*usage),
        };
        let usage = entries.iter().map(entry).collect();
        let request = pb::ReportUsageRequest { usage, report_id: report_id.to_owned() };
        let told = self.retryd.report_usage(&request).expect("it is valid");
        assert_eq!(told.results.len(), entries.len());
        let now_ms = self.now_ms();
        if self.ledger.is_new_report(report_id, now_ms) {
            for (who, usage) in entries {
                self.ledger.earn(self.policies, *who, usage, now_ms);
            }
        } else {
            assert_eq!(self.shown(), before, "counted twice");
            assert_eq!(self.decider.occupancy(), occupancy, "counted twice");
        }
    }

    fn acquire(&mut self, who: Who, wanted: u32) {
        let policy = self.policies.find(who.tenant, who.operation);
        let (before, is_ample) = (self.available(who), self.is_ample());
        let evicted = self.decider.occupancy().evicted;
        let (tenant, operation) = (who.tenant.to_owned(), who.operation.to_owned());
        let request = pb::AcquireRetriesRequest { tenant, operation, wanted };
        let got = self.retryd.acquire_retries(&request).expect("it is valid");
        let covered = before.iter().copied().fold(wanted, u32::min);
        let covered = if policy.rules.attempts_max <= 1 { 0 } else { covered };
        // Where there was no room, some may have become free.
        let has_dropped = self.decider.occupancy().evicted != evicted;
        assert!(has_dropped || got.granted <= covered, "{got:?} of {before:?}");
        assert_eq!(got.lease.is_empty(), got.granted == 0);
        assert_eq!(got.shadow, policy.mode == Mode::Shadow);
        if is_ample {
            assert_eq!(got.granted, covered, "{before:?}");
            for (before, after) in before.iter().zip(self.available(who)) {
                assert_eq!(after, before - got.granted);
            }
        }
        let valid_for = got.valid_for.expect("it is always told").seconds;
        let valid_ms = u64::try_from(valid_for).expect("it is positive") * 1_000;
        assert!((1_000..=10_000).contains(&valid_ms));
        if 0 < got.granted {
            self.ledger.lend(who, got.lease, got.granted, self.now_ms() + valid_ms);
        }
    }

    fn release(&self, by: Who, grant: pb::release_retries_request::Grant, unused: u32, due: u32) {
        let before = self.shown();
        let (tenant, operation) = (by.tenant.to_owned(), by.operation.to_owned());
        let request = pb::ReleaseRetriesRequest { tenant, operation, unused, grant: Some(grant) };
        let told = self.retryd.release_retries(&request).expect("it is valid");
        assert_eq!(told.released, due);
        let after = self.shown();
        for (before, after) in before.iter().flatten().zip(after.iter().flatten()) {
            let back = after.checked_sub(*before);
            assert!(back.is_some_and(|back| due != 0 || back == 0), "{before} to {after}");
        }
    }

    /// All pages together are one large one: every balance once, in order, as GetBudget shows it.
    fn list(&self, page_size: u32) {
        let occupancy = self.decider.occupancy();
        let page = |page_size, page_token| {
            let request = pb::ListBudgetsRequest { page_size, page_token };
            self.retryd.list_budgets(&request).expect("it is valid")
        };
        let all = page(1_000, String::new()).budgets;
        let (mut paged, mut token) = (Vec::new(), String::new());
        loop {
            let next = page(page_size, token);
            paged.extend(next.budgets);
            token = next.next_page_token;
            if token.is_empty() {
                break;
            }
        }
        assert_eq!(paged, all);
        let place = |row: &pb::TenantBudget| {
            let state = row.budget.clone().unwrap_or_default();
            (state.retries_available, state.budget, row.tenant.clone(), row.operation.clone())
        };
        assert!(all.is_sorted_by(|one, next| place(one) < place(next)), "{all:?}");
        assert!(all.len() <= occupancy.balances);
        assert_eq!(self.decider.occupancy(), occupancy, "looking wrote something");
        for row in all {
            let is_its = |name: &str, of: &str| name.is_empty() || name == of;
            let policy = |who: &Who| self.policies.find(who.tenant, who.operation);
            let mut holders = EVERYBODY.into_iter().filter(|who| {
                is_its(&row.tenant, who.tenant)
                    && is_its(&row.operation, who.operation)
                    && policy(who).mode == Mode::Enforce
            });
            let state = row.budget.expect("it is always told");
            let same = |shown: &pb::BudgetState| shown.budget != state.budget || *shown == state;
            assert!(holders.all(|who| self.states(who).iter().all(same)), "{state:?}");
        }
    }

    /// GetBudget names the budgets of the policy, in its order.
    fn get(&self, who: Who) {
        let policy = self.policies.find(who.tenant, who.operation);
        let budgets = policy.payers.ids().iter().map(|id| &self.policies.budgets()[id.0]);
        let state = |(budget, available): (&Budget, u32)| pb::BudgetState {
            budget: budget.name.to_string(),
            retries_available: available,
            retries_capacity: budget.limits.capacity(),
        };
        let states: Vec<_> = budgets.zip(self.available(who)).map(state).collect();
        assert_eq!(self.states(who), states);
    }

    fn is_within_bounds(&self) {
        let (occupancy, now_ms) = (self.decider.occupancy(), self.now_ms());
        assert!(occupancy.balances <= self.room);
        for who in EVERYBODY {
            let policy = self.policies.find(who.tenant, who.operation);
            let all = self.available(who);
            assert_eq!(all.len(), policy.payers.ids().len());
            for (id, available) in policy.payers.ids().iter().zip(all) {
                let Budget { name, scope, limits, .. } = &self.policies.budgets()[id.0];
                // Keys without a balance of their own share one.
                let scope = (occupancy.overflowed == 0).then_some(*scope);
                let earned = match limits {
                    Limits::Ratio(_) => self.ledger.earned(name, scope, (who, policy.mode), now_ms),
                    Limits::Throttle(_) | Limits::TokenBucket(_) => 0,
                };
                let most = u128::from(limits.capacity()) + earned;
                assert!(u128::from(available) <= most, "{available} of {most} in `{name}`");
            }
        }
    }

    /// Nobody can have been without a balance of its own.
    fn is_ample(&self) -> bool {
        let occupancy = self.decider.occupancy();
        occupancy.overflowed == 0 && occupancy.balances + PAYERS_MAX < self.room
    }

    fn shown(&self) -> Shown {
        EVERYBODY.map(|who| self.available(who))
    }

    fn available(&self, who: Who) -> Available {
        self.decider.look(&self.decider.in_force(), who.tenant, who.operation, |states| {
            states.iter().map(|state| state.available).collect()
        })
    }

    fn states(&self, who: Who) -> Vec<pb::BudgetState> {
        let (tenant, operation) = (who.tenant.to_owned(), who.operation.to_owned());
        let request = pb::GetBudgetRequest { tenant, operation };
        self.retryd.get_budget(&request).expect("it is valid").budgets
    }

    fn now_ms(&self) -> u64 {
        self.clock.now().monotonic_ms
    }
}

fn of(who: Who, shown: &Shown) -> &[u32] {
    let place = EVERYBODY.into_iter().position(|other| other == who);
    place.and_then(|place| shown.get(place)).map_or(&[], |available| available)
}
