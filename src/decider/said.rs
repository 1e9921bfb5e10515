//! What an answer means to whoever asked: two that say the same are one answer.
use super::{Answer, Outcome, Question};
use crate::engine::{self, Coverage, Delay, Rule};
use crate::policy::{Mode, Policy};

/// What an answer means to whoever asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Said {
    /// The rule that decided.
    pub reason: Rule,
    /// How long to wait. Only of a yes.
    pub delay: Option<Delay>,
    /// The caller goes on by its own rules.
    pub shadow: bool,
}

impl Answer<'_> {
    /// What it means to whoever asked.
    pub fn said(&self) -> Said {
        let delay = match &self.outcome {
            Outcome::Retry(retry, _) => Some(retry.delay()),
            Outcome::DoNotRetry(_) | Outcome::Outrun(..) => None,
        };
        Said { reason: self.outcome.reason(), delay, shadow: self.shadow }
    }
}

impl Question<'_> {
    /// What `policy` says with this draw where its budgets say `coverage`. No budget is asked, and
    /// none pays: so this is no answer, for which a store would have to make a receipt.
    pub fn said_by<'a>(&self, policy: &'a Policy, draw: u32, coverage: Coverage<'a>) -> Said {
        let mut facts = self.facts(policy, draw);
        facts.budget = coverage;
        let (reason, delay) = match engine::decide(&facts) {
            Err(denied) => (denied.rule(), None),
            Ok(retry) => (Rule::Retryable, Some(retry.delay())),
        };
        Said { reason, delay, shadow: policy.mode == Mode::Shadow }
    }
}
