//! The policy file: read, checked, and asked for the policy of a call.
//!
//! ```text
//! bytes ──> file (the shape; stops at the first error)
//!       ──> check, budgets, retry_on (the values; every error is told)
//!       ──> Policies
//! ```
//!
//! What a [`Policies`] holds has passed every check, so nothing is asked twice: the last policy
//! matches everything, every budget that a policy names exists, every number is in range.
mod budgets;
mod callers;
mod check;
mod decimal;
mod duration;
mod file;
mod guarantee;
mod nearest;
mod pattern;
mod read;
mod rejected;
mod retry_on;
mod source;
mod warning;
pub(crate) mod yaml;

pub(crate) use duration::{Gep2257, parse_ms};
pub(crate) use nearest::nearest;
pub(crate) use read::Reader;
pub(crate) use rejected::{quoted, text};
pub(crate) use source::bytes;

pub use callers::{Caller, CallersError};
pub use guarantee::{guarantee, shared_guarantee};
pub use pattern::Pattern;
pub use rejected::{Place, Problem, Rejected};
pub use source::Source;
pub use warning::Warning;

use std::path::Path;

use sha2::{Digest as _, Sha256};

use crate::{
    budget::{Budget, BudgetId, Holder, Limits, OnStoreLoss, Payers, Scope, ratio},
    engine::Rules,
};

/// The largest policy file, in bytes.
pub const FILE_BYTES_MAX: usize = 1024 * 1024;
/// Policies in one file.
pub const POLICIES_MAX: usize = 1000;
/// Budgets in one file.
pub const BUDGETS_MAX: usize = 1000;

const EMBEDDED: &str = include_str!("default.yaml");

/// One policy file that has passed every check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policies {
    earlier: Box<[Policy]>,
    /// The last policy. It matches everything, so a lookup always ends.
    last: Policy,
    budgets: Box<[Budget]>,
    callers: Option<Box<[Caller]>>,
    operators: Box<[Pattern]>,
    warnings: Box<[Warning]>,
    revision: Box<str>,
}

/// What holds for the calls that it matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Its name, unique in the file.
    pub name: Box<str>,
    /// The tenants it is for.
    pub tenant: Pattern,
    /// The operations it is for.
    pub operation: Pattern,
    /// What the engine goes by.
    pub rules: Rules,
    /// The budgets that pay.
    pub payers: Payers,
    /// Whether its answers bind.
    pub mode: Mode,
}

/// Whether the answers of a policy bind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// They do.
    #[default]
    Enforce,
    /// They are only watched.
    Shadow,
}

impl Policies {
    /// The first policy that matches.
    pub fn find(&self, tenant: &str, operation: &str) -> &Policy {
        self.find_at(tenant, operation).1
    }

    /// The first policy that matches, and its place in the order of matching.
    pub fn find_at(&self, tenant: &str, operation: &str) -> (usize, &Policy) {
        let mut earlier = self.earlier.iter().enumerate();
        let found = earlier.find(|(_, policy)| policy.matches(tenant, operation));
        found.unwrap_or((self.earlier.len(), &self.last))
    }

    /// Reads and checks the file at `path`, or the only one in the directory there.
    ///
    /// # Errors
    ///
    /// [`Rejected`] tells why the file cannot be read, or everything that is wrong with it.
    pub fn load(path: &Path) -> Result<Policies, Rejected> {
        let Source { name, bytes } = Source::read(path)?;
        Policies::parse(&name, &bytes)
    }

    /// Checks the bytes of a policy file. `name` is what errors call it.
    ///
    /// # Errors
    ///
    /// [`Rejected`] tells everything that is wrong with the file.
    pub fn parse(name: &str, bytes: &[u8]) -> Result<Policies, Rejected> {
        let source = text(name, bytes)?;
        let file = file::parse(source).map_err(|problem| Rejected::new(name, source, [problem]))?;
        check::check(source, &file, revision(bytes))
            .map_err(|problems| Rejected::new(name, source, problems))
    }

    /// What holds without a policy file. `parse` makes the same of `default.yaml`.
    pub fn embedded() -> Policies {
        let floor = ratio::Floor { count: 10, interval_ms: 1_000 };
        let budgets = [Budget {
            name: "per-tenant".into(),
            scope: Scope::Tenant,
            limits: Limits::Ratio(ratio::Limits { percent: 20, interval_ms: 10_000, floor }),
            on_store_loss: OnStoreLoss::LocalShare,
        }];
        let last = Policy {
            name: "default".into(),
            tenant: Pattern::everything(),
            operation: Pattern::everything(),
            rules: Rules::default(),
            payers: Payers::new(&[BudgetId(0)], &budgets).unwrap_or_default(),
            mode: Mode::Enforce,
        };
        Policies {
            warnings: [Warning::ManyFloors { policy: last.name.clone() }].into(),
            earlier: [].into(),
            last,
            budgets: budgets.into(),
            callers: None,
            operators: [].into(),
            revision: revision(EMBEDDED.as_bytes()),
        }
    }

    /// Every policy, in the order of matching.
    pub fn policies(&self) -> impl Iterator<Item = &Policy> {
        self.earlier.iter().chain([&self.last])
    }

    /// The budgets, in the file's order. A [`BudgetId`] is a place in it.
    pub fn budgets(&self) -> &[Budget] {
        &self.budgets
    }

    /// The budgets that pay under a policy of this file, in its order.
    pub fn payers_of(&self, policy: &Policy) -> impl Iterator<Item = &Budget> {
        policy.payers.ids().iter().filter_map(|BudgetId(place)| self.budgets.get(*place))
    }

    /// The first 12 hex digits of the SHA-256 of the file's bytes.
    pub fn revision(&self) -> &str {
        &self.revision
    }

    /// Who may speak for which tenants. `None`: the file has no `callers`.
    pub fn callers(&self) -> Option<&[Caller]> {
        self.callers.as_deref()
    }

    /// The identities that may see and do everything.
    pub fn operators(&self) -> &[Pattern] {
        &self.operators
    }

    /// What is allowed, and perhaps not meant.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }
}

impl Policy {
    /// Whether the policy is for this call.
    pub fn matches(&self, tenant: &str, operation: &str) -> bool {
        self.tenant.matches(tenant) && self.operation.matches(operation)
    }

    /// Whose balances pay under it.
    pub(crate) fn holder<'a>(&'a self, tenant: &'a str, operation: &'a str) -> Holder<'a> {
        let twins = self.mode == Mode::Shadow;
        Holder { payers: &self.payers, tenant, operation, twins }
    }

    /// Whether no call gets past this policy to `later`.
    fn covers(&self, later: &Policy) -> bool {
        self.tenant.covers(&later.tenant) && self.operation.covers(&later.operation)
    }
}

/// The first 12 hex digits of the SHA-256 of a file's bytes.
fn revision(bytes: &[u8]) -> Box<str> {
    const REVISION_BYTES: usize = 6;
    let digest = Sha256::digest(bytes);
    digest.iter().take(REVISION_BYTES).map(|byte| format!("{byte:02x}")).collect::<String>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_policies_are_those_of_the_embedded_file() {
        let parsed = Policies::parse("default.yaml", EMBEDDED.as_bytes()).unwrap();
        assert_eq!(Policies::embedded(), parsed);
        assert_eq!(parsed.find("shop", "Pay").payers.ids(), [BudgetId(0)]);
    }
}
