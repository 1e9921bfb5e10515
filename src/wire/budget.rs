//! Usage and balances between wire and domain.
use super::duration::Span;
use super::refusal::{Refusal, Violations};
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

    fn check(
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

/// Checks a report as a whole: the number of its entries, and its id.
///
/// # Errors
///
/// Names every wrong field.
pub fn report(request: &pb::ReportUsageRequest) -> Result<(), Refusal> {
    let mut violations = Violations::default();
    let entries = match request.usage.len() {
        1..=REPORT_ENTRIES_MAX => Ok(()),
        _ => Err("must have 1 to 1000 entries"),
    };
    let entries = violations.check("usage", entries);
    let id = violations.check("report_id", name::id(&request.report_id));
    violations.or(entries.zip(id)).map(|_| ())
}

/// Parses a usage. An absent one is zeros.
pub(super) fn usage(violations: &mut Violations, usage: Option<&pb::Usage>) -> Option<Usage> {
    let Some(usage) = usage else { return Some(Usage::default()) };
    let requests = violations.check("usage.requests", count(usage.requests));
    let first_try_successes =
        violations.check("usage.first_try_successes", count(usage.first_try_successes));
    let retried_transient =
        violations.check("usage.retried_transient", count(usage.retried_transient));
    let retried_throttling =
        violations.check("usage.retried_throttling", count(usage.retried_throttling));
    let retried_timeout = violations.check("usage.retried_timeout", count(usage.retried_timeout));
    let classes = usage
        .retried_transient
        .saturating_add(usage.retried_throttling)
        .saturating_add(usage.retried_timeout);
    let retried = count(usage.retried_successes).and_then(|retried| {
        if classes <= retried { Ok(retried) } else { Err("less than the sum of its classes") }
    });
    let retried_successes = violations.check("usage.retried_successes", retried);
    let period_ms = violations.check("usage.period", period_ms(usage));
    Some(Usage {
        requests: requests?,
        first_try_successes: first_try_successes?,
        retried_successes: retried_successes?,
        retried_transient: retried_transient?,
        retried_throttling: retried_throttling?,
        retried_timeout: retried_timeout?,
        period_ms: period_ms?,
    })
}

fn count(count: u64) -> Result<u64, &'static str> {
    if count <= Usage::COUNT_MAX { Ok(count) } else { Err("more than 1000000000") }
}

fn period_ms(usage: &pb::Usage) -> Result<Option<u64>, &'static str> {
    let Some(period) = &usage.period else { return Ok(None) };
    let period = Span::parse(period)?;
    if period.is_positive() { Ok(Some(period.ms_ceil())) } else { Err("must be positive") }
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
