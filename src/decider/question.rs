//! What is asked, and what is answered.
use crate::budget::{AttemptName, Receipt, State, Usage};
use crate::engine::{
    Class, Coverage, Denied, Evidence, Facts, Failure, Hint, Idempotency, Judged, Retry, Rule, Step,
};
use crate::policy::{Policies, Policy};

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
    /// Names the call, so that asking twice about an attempt pays once. Empty: it has no name.
    pub call_id: &'a str,
    /// The caller wants to see the rules.
    pub explain: bool,
    /// Write nothing.
    pub dry_run: bool,
}

impl<'a> Question<'a> {
    pub(super) fn attempt(&self) -> AttemptName<'a> {
        AttemptName {
            tenant: self.tenant,
            operation: self.operation,
            call_id: self.call_id,
            attempts_made: self.attempts_made,
        }
    }

    pub(super) fn facts<'p>(&self, policy: &'p Policy, draw: u32) -> Facts<'p> {
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
    /// The policy only observes.
    pub shadow: bool,
    /// How a token bucket sees the failure.
    pub class: Class,
    /// What the budgets said to one more retry.
    pub coverage: Coverage<'a>,
    /// What jitter drew.
    pub draw: u32,
    /// The policy named by [`policy`](Answer::policy), and the file that it stands in.
    pub ruling: &'a Policy,
    /// See [`ruling`](Answer::ruling).
    pub policies: &'a Policies,
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

    /// The budget that refused, if one did.
    pub(super) fn refused_by(&self, facts: &Facts<'a>) -> Option<&'a str> {
        let coverage = match self {
            Outcome::DoNotRetry(denied) if denied.rule() == Rule::BudgetExhausted => facts.budget,
            Outcome::Outrun(_, coverage) => *coverage,
            Outcome::DoNotRetry(_) | Outcome::Retry(..) => return None,
        };
        match coverage {
            Coverage::Exhausted(purse) => Some(purse.budget),
            Coverage::Unbudgeted | Coverage::Covered(_) | Coverage::Remembered(_) => None,
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
