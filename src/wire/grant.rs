//! Retries taken ahead and given back, between wire and domain.
use super::budget::Names;
use super::refusal::{Refusal, Violations};
use super::{duration, name, pb};
use crate::budget::{AttemptName, GrantName, LeaseName};
use crate::decider::Acquired;

/// Retries that one call may take.
pub const WANTED_MAX: u32 = 1_000;

/// Parses a request for retries: whose budgets, and how many.
///
/// # Errors
///
/// Names every wrong field.
pub fn acquire(request: &pb::AcquireRetriesRequest) -> Result<(Names<'_>, u32), Refusal> {
    let mut violations = Violations::default();
    let names = Names::check(&mut violations, &request.tenant, &request.operation);
    let wanted = match request.wanted {
        wanted @ 1..=WANTED_MAX => Ok(wanted),
        _ => Err("must be 1 to 1000"),
    };
    let wanted = violations.check("wanted", wanted);
    violations.or(names.zip(wanted))
}

impl From<Acquired<'_>> for pb::AcquireRetriesResponse {
    fn from(acquired: Acquired<'_>) -> pb::AcquireRetriesResponse {
        pb::AcquireRetriesResponse {
            granted: acquired.granted,
            budget: acquired.budget.map(pb::BudgetState::from),
            valid_for: Some(duration::from_ms(acquired.valid_ms)),
            lease: acquired.lease,
            shadow: acquired.shadow,
        }
    }
}

/// Retries that come back.
#[derive(Clone, Copy, Debug)]
pub struct Release<'a> {
    /// Whose they were.
    pub names: Names<'a>,
    /// What they were granted by.
    pub grant: GrantName<'a>,
    /// How many. At least 1.
    pub unused: u32,
}

/// Parses a release.
///
/// # Errors
///
/// Names every wrong field.
pub fn release(request: &pb::ReleaseRetriesRequest) -> Result<Release<'_>, Refusal> {
    let mut violations = Violations::default();
    let names = Names::check(&mut violations, &request.tenant, &request.operation);
    let unused = violations.check("unused", name::positive(request.unused));
    // Whose grant it is matters only where the names are right.
    let Names { tenant, operation } = names.unwrap_or(Names { tenant: "", operation: "" });
    let grant = match &request.grant {
        None => violations.check("grant", Err("required: a lease, or a decided attempt")),
        Some(pb::release_retries_request::Grant::Lease(lease)) => {
            let lease = violations.check("lease", name::required_id(lease));
            lease.map(|lease| GrantName::Lease(LeaseName { tenant, operation, lease }))
        }
        Some(pb::release_retries_request::Grant::Decided(decided)) => {
            let call_id = violations.check("decided.call_id", name::required_id(&decided.call_id));
            let attempts_made =
                violations.check("decided.attempts_made", name::positive(decided.attempts_made));
            call_id.zip(attempts_made).map(|(call_id, attempts_made)| {
                GrantName::Attempt(AttemptName { tenant, operation, call_id, attempts_made })
            })
        }
    };
    let release = || Some(Release { names: names?, grant: grant?, unused: unused? });
    violations.or(release())
}
