//! Decides the lines of a log anew, by another policy file.
//!
//! Time and draw are the logged ones, and so is what the budgets said: a log holds neither the
//! retries that were not sampled nor what `ReportUsage` brought, so balances cannot be played again.
//! A budget is believed if the new file has it with the same name, scope, model and sizes. Where
//! the decision hangs on any other budget, it is not known.
use super::line::{Asked, Line, Word};
use crate::decider::{Question, Said};
use crate::engine::{Coverage, Purse};
use crate::policy::{Policies, Policy};
use crate::wire::{
    context::{self, Oddities},
    decision,
    refusal::Refusal,
};

/// A policy file that lines are held against.
#[derive(Debug)]
pub struct Replay {
    policies: Policies,
    /// Of each budget, in the file's order.
    budgets: Vec<Asked>,
}

/// What became of one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Again<'a> {
    /// What was answered.
    pub then: Said,
    /// What would be answered. `None`: it hangs on a budget of which the log knows nothing.
    pub now: Option<Said>,
    /// The policy that would answer.
    pub policy: &'a str,
}

/// Why a line cannot be decided anew.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// The question is one that retryd refuses.
    #[error("retryd would refuse the context ({})", .0.reason().name())]
    Context(Refusal),
    /// The decision is none that retryd makes.
    #[error("the decision has no known reason, or a RETRY has no delay")]
    Decision,
}

impl Replay {
    /// Holds lines against `policies`.
    pub fn new(policies: Policies) -> Replay {
        let budgets = policies.budgets().iter().map(Asked::of).collect();
        Replay { policies, budgets }
    }

    /// The policies.
    pub fn policies(&self) -> &Policies {
        &self.policies
    }

    /// Decides one line anew.
    ///
    /// # Errors
    ///
    /// If the line holds no question or no decision of retryd's.
    pub fn again(&self, line: &Line) -> Result<Again<'_>, Unreadable> {
        let question = context::parse(&line.context, line.unix_ms, &mut Oddities::default())
            .map_err(Unreadable::Context)?;
        let then = decision::said(&line.decision).ok_or(Unreadable::Decision)?;
        let policy = self.policies.find(question.tenant, question.operation);
        let now = self.said(line, &question, policy);
        Ok(Again { then, now, policy: &policy.name })
    }

    fn said(&self, line: &Line, question: &Question<'_>, policy: &Policy) -> Option<Said> {
        let purse = Purse { budget: &line.budgets.by, available: line.budgets.available };
        let [yes, no] = [Coverage::Covered(purse), Coverage::Exhausted(purse)]
            .map(|coverage| question.said_by(policy, line.draw, coverage));
        match self.covers(line, policy) {
            Some(true) => Some(yes),
            Some(false) => Some(no),
            // Perhaps it does not matter what they say.
            None => (yes == no).then_some(yes),
        }
    }

    /// Whether the budgets of `policy` would have granted one more retry, as far as the line knows.
    fn covers(&self, line: &Line, policy: &Policy) -> Option<bool> {
        let asked = &line.budgets.asked;
        let named = policy.payers.ids().iter().filter_map(|id| self.budgets.get(id.0));
        let mut places = named.map(|budget| asked.iter().position(|it| it == budget));
        match line.budgets.said {
            Word::Unbudgeted | Word::Covered | Word::Remembered => {
                places.all(|place| place.is_some()).then_some(true)
            }
            Word::Exhausted => {
                let refusing = asked.iter().position(|it| it.name == line.budgets.by)?;
                if places.clone().any(|place| place == Some(refusing)) {
                    return Some(false);
                }
                // Those before it have granted; those after it were not asked.
                places.all(|place| place.is_some_and(|place| place < refusing)).then_some(true)
            }
        }
    }
}
