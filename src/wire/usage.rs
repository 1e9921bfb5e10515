//! What callers did: a `Usage`, checked.
use super::duration::Span;
use super::pb;
use super::refusal::Violations;
use crate::budget::Usage;

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
