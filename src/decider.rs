//! The whole decision: policy, budgets and engine, between a parsed question and an answer.
use std::sync::Arc;

use crate::admin::metrics::Metrics;
use crate::budget::{Account as _, Ask, Receipt, State, Store, Usage};
use crate::clock::{Clock, Dice, Now};
use crate::engine::{
    self, Class, Coverage, Denied, Evidence, Facts, Failure, Hint, Idempotency, Judged, Retry,
    Rule, Step,
};
use crate::policy::{Policies, Policy};

/// Answers questions by one set of policies and one store of budgets.
#[derive(Debug)]
pub struct Decider<S> {
    policies: Arc<Policies>,
    store: S,
    clock: Clock,
    dice: Dice,
    metrics: Arc<Metrics>,
}

impl<S: Store> Decider<S> {
    /// A decider over `store`, which keeps the budgets of `policies`.
    pub fn new(
        policies: Arc<Policies>,
        store: S,
        clock: Clock,
        dice: Dice,
        metrics: Arc<Metrics>,
    ) -> Decider<S> {
        Decider { policies, store, clock, dice, metrics }
    }

    /// The time by this decider's clock.
    pub fn now(&self) -> Now {
        self.clock.now()
    }

    /// Decides about one failed attempt, as of `now`, and hands the answer to `tell`.
    ///
    /// Deposits the usage and counts the failure first, asks the rules while the balances are
    /// held, and charges last, only on yes.
    pub fn decide<R>(
        &self,
        question: &Question<'_>,
        now: Now,
        tell: impl FnOnce(&Answer<'_>) -> R,
    ) -> R {
        let policy = self.policies.find(question.tenant, question.operation);
        let mut facts = question.facts(policy, self.dice.roll());
        let mut account = self.store.open(&Ask {
            payers: &policy.payers,
            tenant: question.tenant,
            operation: question.operation,
            usage: &question.usage,
            counts: facts.counts(),
            class: facts.failure.class(),
            dry_run: question.dry_run,
            now_ms: now.monotonic_ms,
        });
        facts.budget = account.coverage();
        let outcome = match engine::decide(&facts) {
            Err(denied) => Outcome::DoNotRetry(denied),
            Ok(retry) => match account.charge() {
                Ok(receipt) => Outcome::Retry(retry, receipt),
                Err(coverage) => Outcome::Outrun(retry, coverage),
            },
        };
        let budget = account.scarcest();
        let degraded = account.is_degraded();
        // Other callers wait for these balances: let go before anything is written.
        drop(account);
        self.metrics.decided(outcome.reason());
        if question.usage != Usage::NOTHING && !question.dry_run {
            self.metrics.usage_reports.inc();
        }
        // Even an addition of nothing would take the counters from the other cores' caches.
        if question.oddities != Oddities::default() {
            self.metrics.unknown_enum_values.inc_by(question.oddities.unknown_enums);
            self.metrics.malformed_hints.inc_by(question.oddities.malformed_hints);
        }
        tell(&Answer {
            outcome,
            policy: &policy.name,
            revision: self.policies.revision(),
            budget,
            degraded,
            class: facts.failure.class(),
        })
    }

    /// Deposits what the callers of one tenant and operation did, and tells the scarcest budget.
    pub fn deposit(&self, tenant: &str, operation: &str, usage: &Usage) -> Option<State<'_>> {
        let policy = self.policies.find(tenant, operation);
        self.metrics.usage_reports.inc();
        self.store.deposit(&policy.payers, tenant, operation, usage, self.now().monotonic_ms)
    }

    /// The state of every budget that would pay, in the policy's order.
    pub fn look(&self, tenant: &str, operation: &str) -> Vec<State<'_>> {
        let policy = self.policies.find(tenant, operation);
        self.store.look(&policy.payers, tenant, operation, self.now().monotonic_ms)
    }
}

/// One failed attempt, checked.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// Whose budgets pay. 1 to 128 bytes.
    pub tenant: &'a str,
    /// What was called. 1 to 256 bytes.
    pub operation: &'a str,
    /// See [`Facts::attempts_made`]. At least 1.
    pub attempts_made: u32,
    /// See [`Facts::remaining_ms`].
    pub remaining_ms: Option<u64>,
    /// See [`Facts::body_replayable`].
    pub body_replayable: bool,
    /// See [`Facts::first_byte_delivered`].
    pub first_byte_delivered: bool,
    /// See [`Facts::runtime_draining`].
    pub runtime_draining: bool,
    /// See [`Facts::idempotency`].
    pub idempotency: Idempotency,
    /// What is judged.
    pub failure: Failure,
    /// See [`Facts::evidence`].
    pub evidence: Option<Evidence>,
    /// See [`Facts::hint`].
    pub hint: Hint,
    /// What the caller did since its last report.
    pub usage: Usage,
    /// The caller wants to see the rules.
    pub explain: bool,
    /// Write nothing.
    pub dry_run: bool,
    /// What was odd about the message, and is counted.
    pub oddities: Oddities,
}

impl Question<'_> {
    fn facts<'p>(&self, policy: &'p Policy, draw: u32) -> Facts<'p> {
        Facts {
            rules: &policy.rules,
            attempts_made: self.attempts_made,
            budget: Coverage::Unbudgeted,
            body_replayable: self.body_replayable,
            first_byte_delivered: self.first_byte_delivered,
            runtime_draining: self.runtime_draining,
            remaining_ms: self.remaining_ms,
            failure: Judged::by(&policy.rules, self.failure),
            evidence: self.evidence,
            idempotency: self.idempotency,
            hint: self.hint,
            draw,
        }
    }
}

/// Things in a message that are no error, and that an operator wants to know of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Oddities {
    /// Enum numbers that this version does not know.
    pub unknown_enums: u64,
    /// Hints and dates that could not be read.
    pub malformed_hints: u64,
}

/// The answer to one question.
#[derive(Debug)]
pub struct Answer<'a> {
    /// Yes or no, and why.
    pub outcome: Outcome<'a>,
    /// The policy that answered.
    pub policy: &'a str,
    /// The revision of the file that it stands in.
    pub revision: &'a str,
    /// The budget with the fewest retries available, after this decision.
    pub budget: Option<State<'a>>,
    /// The shared store was out of reach.
    pub degraded: bool,
    /// How a token bucket sees the failure.
    pub class: Class,
}

/// Yes or no, and why.
#[derive(Debug)]
pub enum Outcome<'a> {
    /// Every rule let the attempt pass, and every budget has paid.
    Retry(Retry<'a>, Receipt),
    /// A rule objected.
    DoNotRetry(Denied<'a>),
    /// Every rule let the attempt pass, and then another caller took the last retry.
    Outrun(Retry<'a>, Coverage<'a>),
}

impl<'a> Outcome<'a> {
    /// The rule that decided.
    pub fn reason(&self) -> Rule {
        match self {
            Outcome::Retry(..) => Rule::Retryable,
            Outcome::DoNotRetry(denied) => denied.rule(),
            Outcome::Outrun(..) => Rule::BudgetExhausted,
        }
    }

    /// The rules that were asked. Of a no, the last one objected.
    pub fn steps(&self) -> Vec<Step<'a>> {
        match self {
            Outcome::Retry(retry, _) => retry.steps().collect(),
            Outcome::DoNotRetry(denied) => denied.steps().collect(),
            Outcome::Outrun(retry, coverage) => {
                let passed = retry.steps().filter(|step| step.rule != Rule::Retryable);
                passed.chain([Step::budget_exhausted(*coverage)]).collect()
            }
        }
    }
}
