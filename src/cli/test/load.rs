//! A test file, read and checked: what is played has passed every check.
use std::{fs, path::Path, sync::Arc, time::Duration};

use serde_saphyr::Spanned;

use super::check::{Checker, Defaults};
use super::expect::Expected;
use super::file::File;
use super::message::problem;
use crate::clock::Now;
use crate::policy::{self, Policies, Problem, Rejected, quoted, text, yaml};
use crate::wire::pb;

/// The policy of a file that names none.
const POLICY: &str = "policy.yaml";

/// One test file.
#[derive(Debug)]
pub(super) struct Suite {
    pub(super) path: String,
    pub(super) policies: Arc<Policies>,
    /// At least one.
    pub(super) cases: Vec<Case>,
}

/// A question, what happened before it, and what must be the answer.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) name: String,
    pub(super) line: usize,
    pub(super) now: Now,
    pub(super) draw: u32,
    pub(super) before: Vec<Step>,
    pub(super) context: pb::RetryContext,
    pub(super) expect: Expected,
}

/// One step of what happened before.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) line: usize,
    pub(super) doing: Doing,
    pub(super) repeat: u32,
    /// How many of the repeats must be answered with RETRY.
    pub(super) granted: Option<u32>,
    /// What each answer must be.
    pub(super) expect: Option<Expected>,
}

#[derive(Debug)]
pub(super) enum Doing {
    Ask(Box<pb::RetryContext>),
    Report(pb::TenantUsage),
    Advance(Duration),
}

/// Reads the test file at `path` and its policy.
pub(super) fn load(path: &Path) -> Result<Suite, Rejected> {
    let name = path.display().to_string();
    let bytes = policy::bytes(path)?;
    let source = text(&name, &bytes)?;
    let rejected = |problems: Vec<Problem>| Rejected::new(&name, source, problems);
    let File { policy, base, clock, draw, cases } =
        yaml::read(source).map_err(|problem| rejected(vec![problem]))?;

    let beside = path.parent().unwrap_or(Path::new("")).join(policy_name(policy.as_ref()));
    // Of a policy file that is not there, this file's own line says more.
    if let Err(error) = fs::metadata(&beside) {
        let message =
            format!("cannot read the policy {}: {error}", quoted(&beside.display().to_string()));
        return Err(rejected(vec![Problem { place: policy.as_ref().map(yaml::place), message }]));
    }
    let policies = Policies::load(&beside)?;
    let mut checker = Checker::default();
    let defaults = Defaults::new(&mut checker, base.as_ref(), clock.as_ref(), draw.as_ref());
    if cases.value.is_empty() {
        checker.note(problem(yaml::place(&cases), "no tests found: there are no cases".to_owned()));
    }
    let checked: Vec<Option<Case>> =
        cases.value.into_iter().map(|case| checker.case(&defaults, case)).collect();
    match checked.into_iter().collect() {
        Some(cases) if checker.problems.is_empty() => {
            Ok(Suite { path: name, policies: Arc::new(policies), cases })
        }
        _ => Err(rejected(checker.problems)),
    }
}

fn policy_name(policy: Option<&Spanned<String>>) -> &str {
    policy.map_or(POLICY, |policy| &policy.value)
}
