//! Reports and balances between wire and domain.
use super::refusal::{Refusal, Violations};
use super::usage::usage;
use super::{name, pb};
use crate::budget::{State, Usage};

/// Entries that one report may hold.
pub const REPORT_ENTRIES_MAX: usize = 1_000;

/// Whose budgets, checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Names<'a> {
    /// 1 to 128 bytes.
    pub tenant: &'a str,
    /// 1 to 256 bytes.
    pub operation: &'a str,
}

impl<'a> Names<'a> {
    /// Parses the two names.
    ///
    /// # Errors
    ///
    /// Names every wrong field.
    pub fn parse(tenant: &'a str, operation: &'a str) -> Result<Names<'a>, Refusal> {
        let mut violations = Violations::default();
        let names = Names::check(&mut violations, tenant, operation);
        violations.or(names)
    }

    pub(super) fn check(
        violations: &mut Violations,
        tenant: &'a str,
        operation: &'a str,
    ) -> Option<Names<'a>> {
        let tenant = violations.check("tenant", name::tenant(tenant));
        let operation = violations.check("operation", name::operation(operation));
        Some(Names { tenant: tenant?, operation: operation? })
    }
}

/// Parses one entry of a report. Paths start at the entry.
///
/// # Errors
///
/// Names every wrong field.
pub fn entry(entry: &pb::TenantUsage) -> Result<(Names<'_>, Usage), Refusal> {
    let mut violations = Violations::default();
    let names = Names::check(&mut violations, &entry.tenant, &entry.operation);
    let usage = usage(&mut violations, entry.usage.as_ref());
    violations.or(names.zip(usage))
}

/// Checks a report as a whole: the number of its entries, of which this server takes `entries_max`,
/// and its id.
///
/// # Errors
///
/// Names every wrong field.
pub fn report(request: &pb::ReportUsageRequest, entries_max: usize) -> Result<(), Refusal> {
    let mut violations = Violations::default();
    let entries = match request.usage.len() {
        entries @ 1..=REPORT_ENTRIES_MAX if entries <= entries_max => Ok(()),
        1..=REPORT_ENTRIES_MAX => Err("has more entries than this server takes at once"),
        _ => Err("must have 1 to 1000 entries"),
    };
    let entries = violations.check("usage", entries);
    let id = violations.check("report_id", name::id(&request.report_id));
    violations.or(entries.zip(id)).map(|_| ())
}

impl From<State<'_>> for pb::BudgetState {
    fn from(state: State<'_>) -> pb::BudgetState {
        pb::BudgetState {
            budget: state.budget.to_owned(),
            retries_available: state.available,
            retries_capacity: state.capacity,
        }
    }
}
