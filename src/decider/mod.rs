//! The whole decision: policy, budgets and engine, between a parsed question and an answer.
mod budgets;
mod question;
mod said;

use std::sync::{Arc, atomic::AtomicU64};

use arc_swap::{ArcSwap, Guard};
use parking_lot::Mutex;

pub use self::budgets::Acquired;
pub use self::question::{Answer, Outcome, Question};
pub use self::said::Said;
use crate::admin::metrics::{Metrics, NamedCounts};
use crate::budget::{
    Account as _, Ask, BudgetId, Grant, Occupancy, Once, Purpose, Store, Turn, Usage,
};
use crate::clock::{Clock, Dice, Now};
use crate::engine;
use crate::policy::{Mode, Policies, Policy};

/// Answers questions by one set of policies and one store of budgets.
#[derive(Debug)]
pub struct Decider<S> {
    revision: ArcSwap<Revision<S>>,
    /// Held while a reload goes on: one at a time.
    reloading: Mutex<()>,
    once: Once,
    /// How many leases were named so far.
    leases: AtomicU64,
    clock: Clock,
    dice: Dice,
    metrics: Arc<Metrics>,
}

/// One policy file, and the store of its budgets. A decision is made by exactly one.
#[derive(Debug)]
struct Revision<S> {
    policies: Policies,
    store: S,
    counts: NamedCounts,
}

/// The revision of now, held: what is asked of it is answered by it, whatever is put in force
/// meanwhile. Not to be kept: it holds its policies in memory.
pub struct InForce<S>(Guard<Arc<Revision<S>>>);

impl<S> InForce<S> {
    /// Its policies.
    pub fn policies(&self) -> &Policies {
        &self.0.policies
    }
}

impl<S: Store> Decider<S> {
    /// A decider over `store`, which keeps the budgets of `policies`.
    pub fn new(
        policies: Policies,
        store: S,
        clock: Clock,
        dice: Dice,
        metrics: Arc<Metrics>,
    ) -> Decider<S> {
        let counts = counts_of(&policies, &metrics, clock.now());
        Decider {
            revision: ArcSwap::from_pointee(Revision { policies, store, counts }),
            reloading: Mutex::new(()),
            once: Once::new(),
            leases: AtomicU64::new(0),
            clock,
            dice,
            metrics,
        }
    }

    /// The time by this decider's clock.
    pub fn now(&self) -> Now {
        self.clock.now()
    }

    /// The revision that is in force now. Whoever checks something by it, asks by it too.
    pub fn in_force(&self) -> InForce<S> {
        InForce(self.revision.load())
    }

    /// Decides about one failed attempt, as of `now`, and hands the answer to `tell`.
    ///
    /// Deposits the usage and counts the failure first, asks the rules while the balances are
    /// held, and charges last, only on yes.
    pub fn decide<R>(
        &self,
        in_force: &InForce<S>,
        question: &Question<'_>,
        now: Now,
        tell: impl FnOnce(&Answer<'_>) -> R,
    ) -> R {
        self.decide_drawn(in_force, question, now, self.dice.roll(), tell)
    }

    /// The same, with a draw that was made elsewhere.
    pub fn decide_drawn<R>(
        &self,
        InForce(revision): &InForce<S>,
        question: &Question<'_>,
        now: Now,
        draw: u32,
        tell: impl FnOnce(&Answer<'_>) -> R,
    ) -> R {
        self.once.ask(question.attempt(), question.dry_run, now.monotonic_ms, |turn, grant| {
            if turn == Turn::First && question.usage != Usage::NOTHING && !question.dry_run {
                self.metrics.usage_reports.inc();
            }
            revision.decide(question, turn, grant, now.monotonic_ms, draw, |answer| {
                if answer.degraded {
                    self.metrics.degraded.inc();
                }
                tell(answer)
            })
        })
    }

    /// Goes by other policies from now on. Decisions that have begun end by the old ones.
    pub fn reload(&self, policies: Policies) {
        let _one_at_a_time = self.reloading.lock();
        let now = self.now();
        let store = {
            let before = self.revision.load();
            before.store.succeeded_by(policies.budgets(), now.monotonic_ms)
        };
        let counts = counts_of(&policies, &self.metrics, now);
        self.revision.store(Arc::new(Revision { policies, store, counts }));
        self.revision.load().store.settle();
    }

    /// Reads the policies in force.
    pub fn with_policies<R>(&self, read: impl FnOnce(&Policies) -> R) -> R {
        read(&self.revision.load().policies)
    }

    /// How full the store of budgets is.
    pub fn occupancy(&self) -> Occupancy {
        self.revision.load().store.occupancy()
    }
}

impl<S: Store> Revision<S> {
    fn decide<R>(
        &self,
        question: &Question<'_>,
        turn: Turn,
        grant: Option<&mut Grant>,
        now_ms: u64,
        draw: u32,
        tell: impl FnOnce(&Answer<'_>) -> R,
    ) -> R {
        let (place, policy) = self.policies.find_at(question.tenant, question.operation);
        let mut facts = question.facts(policy, draw);
        let ask = Ask {
            holder: policy.holder(question.tenant, question.operation),
            usage: if turn == Turn::First { &question.usage } else { &Usage::NOTHING },
            counts: turn != Turn::Repeat && facts.counts(),
            purpose: Purpose::Attempt(facts.failure.class()),
            dry_run: question.dry_run,
            now_ms,
        };
        let mut account = self.store.open(&ask, grant.as_deref());
        facts.budget = account.coverage();
        let outcome = match engine::decide(&facts) {
            Err(denied) => Outcome::DoNotRetry(denied),
            Ok(retry) => match account.charge(grant) {
                Ok(receipt) => Outcome::Retry(retry, receipt),
                Err(coverage) => Outcome::Outrun(retry, coverage),
            },
        };
        let budget = account.scarcest();
        let degraded = account.is_degraded();
        // Other callers wait for these balances: let go before anything is written. With a `call_id`, those
        // whose attempts are remembered beside this one wait until it is told.
        drop(account);
        let coverage = match &outcome {
            Outcome::Outrun(_, coverage) => *coverage,
            Outcome::Retry(..) | Outcome::DoNotRetry(_) => facts.budget,
        };
        self.counts.decided(place, outcome.reason());
        if let Some(budget) = outcome.refused_by(&facts) {
            self.count_denial(policy, budget);
        }
        tell(&Answer {
            outcome,
            coverage,
            draw,
            ruling: policy,
            policies: &self.policies,
            policy: &policy.name,
            revision: self.policies.revision(),
            budget,
            degraded,
            shadow: policy.mode == Mode::Shadow,
            class: facts.failure.class(),
        })
    }

    /// Counts a no of the budget with this name, which is one of the policy's few.
    fn count_denial(&self, policy: &Policy, budget: &str) {
        let is_it = |BudgetId(place): &&BudgetId| {
            self.policies.budgets().get(*place).is_some_and(|known| &*known.name == budget)
        };
        if let Some(BudgetId(place)) = policy.payers.ids().iter().find(is_it) {
            self.counts.denied(*place);
        }
    }
}

/// Says that these policies are in force, and takes their counters.
fn counts_of(policies: &Policies, metrics: &Metrics, now: Now) -> NamedCounts {
    let names: Vec<&str> = policies.policies().map(|policy| &*policy.name).collect();
    let budgets: Vec<&str> = policies.budgets().iter().map(|budget| &*budget.name).collect();
    metrics.in_force(policies.revision(), &names, &budgets, now.unix_ms)
}
