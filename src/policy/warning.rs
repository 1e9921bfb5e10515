//! What a policy file may say, and perhaps does not mean.
use std::fmt;

use super::Policy;
use crate::budget::{Budget, BudgetId, Limits, Scope};

/// Something that a policy file may say, and perhaps does not mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Warning {
    /// No policy names the budget.
    UnusedBudget {
        /// The budget's name.
        budget: Box<str>,
    },
    /// Nothing bounds the retries of the policy.
    Unbudgeted {
        /// The policy's name.
        policy: Box<str>,
    },
    /// Every tenant has a balance of its own, and nothing bounds their sum.
    ManyFloors {
        /// The policy's name.
        policy: Box<str>,
    },
    /// Not every replica can hold a token of the floor.
    SmallFloor {
        /// The budget's name.
        budget: Box<str>,
        /// Tokens of the full floor.
        count: u32,
        /// Replicas that share it.
        replicas: u32,
    },
}

impl Warning {
    /// Every warning about budgets that `replicas` replicas share, besides those of the file.
    pub fn of_sharing(budgets: &[Budget], replicas: u32) -> impl Iterator<Item = Warning> {
        budgets.iter().filter_map(move |budget| match budget.limits {
            Limits::Ratio(limits) if 0 < limits.floor.count && limits.floor.count < replicas => {
                let (budget, count) = (budget.name.clone(), limits.floor.count);
                Some(Warning::SmallFloor { budget, count, replicas })
            }
            Limits::Ratio(_) | Limits::Throttle(_) | Limits::TokenBucket(_) => None,
        })
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warning::UnusedBudget { budget } => {
                write!(f, "no policy names budget `{budget}`")
            }
            Warning::Unbudgeted { policy } => {
                write!(f, "policy `{policy}` names no budget: only max_attempts bounds its retries")
            }
            Warning::ManyFloors { policy } => write!(
                f,
                "policy `{policy}` has no budget of scope global or operation: every tenant brings \
                 a balance of its own, and nothing bounds their sum"
            ),
            Warning::SmallFloor { budget, count, replicas } => write!(
                f,
                "budget `{budget}` has a floor of {count}, which is smaller than {replicas} \
                 replicas: not every replica can hold a token of it. Most of a burst is refused \
                 where no token is; a replica may grant one retry on credit there, and no other \
                 until the floor has paid for it"
            ),
        }
    }
}

/// Every warning about these policies, those about budgets first.
pub(super) fn warnings(budgets: &[Budget], policies: &[Policy]) -> Box<[Warning]> {
    let mut used = vec![false; budgets.len()];
    for BudgetId(place) in policies.iter().flat_map(|policy| policy.payers.ids()) {
        if let Some(used) = used.get_mut(*place) {
            *used = true;
        }
    }
    let unused = budgets
        .iter()
        .zip(&used)
        .filter(|(_, used)| !**used)
        .map(|(budget, _)| Warning::UnusedBudget { budget: budget.name.clone() });
    unused.chain(policies.iter().filter_map(|policy| sum_is_open(budgets, policy))).collect()
}

fn sum_is_open(budgets: &[Budget], policy: &Policy) -> Option<Warning> {
    let name = policy.name.clone();
    if policy.payers.ids().is_empty() {
        let repeats = 1 < policy.rules.attempts_max;
        return repeats.then_some(Warning::Unbudgeted { policy: name });
    }
    let mut scopes =
        policy.payers.ids().iter().filter_map(|id| budgets.get(id.0)).map(|budget| budget.scope);
    let bounded = scopes.any(Scope::has_few_keys);
    (!bounded).then_some(Warning::ManyFloors { policy: name })
}
