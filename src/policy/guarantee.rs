//! What a budget guarantees, in words and numbers.
mod shared;

pub use shared::shared_guarantee;

use super::duration::Gep2257;
use crate::budget::{Budget, LEASE_VALID_MS_MAX, Limits, Scope, bucket, ratio, throttle};

/// What bounds the retries that one process grants from `budget`, as `retryd check` prints it.
///
/// ```
/// use retryd::policy::{Policies, guarantee};
///
/// let policies = Policies::embedded();
/// let text = guarantee(&policies.budgets()[0]);
/// assert!(text.contains("<= 20 % of the requests reported in (T + 10s) + 10 x (1 + T / 1s)"));
/// ```
pub fn guarantee(budget: &Budget) -> String {
    let holds = format!("{}, per process", each_balance(budget.scope));
    match &budget.limits {
        Limits::Ratio(limits) => ratio(limits, &holds, budget.scope),
        Limits::Throttle(limits) => throttle(limits, &holds),
        Limits::TokenBucket(limits) => token_bucket(limits, &holds),
    }
}

fn each_balance(scope: Scope) -> &'static str {
    match scope {
        Scope::Tenant => "per tenant",
        Scope::TenantOperation => "per tenant and operation",
        Scope::Operation => "per operation",
        Scope::Global => "all calls together",
    }
}

fn ratio(limits: &ratio::Limits, holds: &str, scope: Scope) -> String {
    let Some(bound) = earned_and_floor(limits) else { return GRANTS_NOTHING.to_owned() };
    let floors = floors(limits, scope);
    let counted = counted(limits);
    format!(
        "over any time T, retries granted by Decide and not released <= {bound}; {holds}.{floors} \
         {counted}"
    )
}

const GRANTS_NOTHING: &str = "grants nothing";

/// `None`: there is neither.
fn earned_and_floor(limits: &ratio::Limits) -> Option<String> {
    let earned = match limits.percent {
        0 => None,
        percent => Some(format!(
            "{percent} % of the requests reported in (T + {})",
            Gep2257(limits.interval_ms)
        )),
    };
    let floor = match limits.floor.count {
        0 => None,
        count => Some(format!("{count} x (1 + T / {})", Gep2257(limits.floor.interval_ms))),
    };
    let bound: Vec<String> = earned.into_iter().chain(floor).collect();
    (!bound.is_empty()).then(|| bound.join(" + "))
}

fn floors(limits: &ratio::Limits, scope: Scope) -> &'static str {
    match scope {
        Scope::Global => "",
        Scope::Tenant | Scope::TenantOperation | Scope::Operation if limits.floor.count == 0 => "",
        Scope::Tenant => " Every tenant has a floor of its own.",
        Scope::TenantOperation => " Every pair of tenant and operation has a floor of its own.",
        Scope::Operation => " Every operation has a floor of its own.",
    }
}

fn counted(limits: &ratio::Limits) -> String {
    let acquired = Gep2257(limits.interval_ms.min(LEASE_VALID_MS_MAX));
    format!(
        "For acquired retries add the time that they are good for, at most {acquired}, to T. \
         It counts grants, which arrive up to max_hint + backoff.max later."
    )
}

/// A grant takes a token and leaves more than half of them. So the grants of any time cost less
/// than the upper half and what successes added meanwhile.
fn throttle(limits: &throttle::Limits, holds: &str) -> String {
    let (upper_half, token_ratio) = (upper_half(limits), token_ratio(limits));
    format!(
        "over any time T, retries granted and not released < {upper_half} + {token_ratio} x \
         successes reported in T; {holds}. Without a success at most {} from full, then none: time \
         alone heals nothing, but a balance that nobody used for 10m, or a restart, starts full \
         again (add {upper_half} each time).",
        from_full(limits)
    )
}

fn upper_half(limits: &throttle::Limits) -> Thousandths {
    Thousandths(u64::from(limits.tokens_max) * 500)
}

fn token_ratio(limits: &throttle::Limits) -> Thousandths {
    Thousandths(limits.token_ratio_thousandths.into())
}

/// Retries of a full throttle until something succeeds.
fn from_full(limits: &throttle::Limits) -> u32 {
    limits.tokens_max.div_ceil(2).saturating_sub(1)
}

/// Tokens come from successes alone, so what was paid was there or was earned.
fn token_bucket(limits: &bucket::Limits, holds: &str) -> String {
    let bucket::Limits { capacity, costs } = limits;
    let bucket::Costs { transient, throttling, timeout } = costs;
    format!(
        "over any time T, the costs of retries granted and not released <= {capacity} + 1 x first-try \
         successes + the cost of each retried success reported in T; {holds}. A retry costs \
         {transient} (transient), {throttling} (throttling) or {timeout} (timeout), so without a \
         success at most {} from full, then none. A retry that succeeds pays for the next: only \
         failing retries drain the bucket. Time alone heals nothing, but a balance that \
         nobody used for 10m, or a restart, starts full again (add {capacity} each time).",
        capacity / costs.smallest().max(1)
    )
}

/// A decimal without trailing zeros.
struct Thousandths(u64);

impl std::fmt::Display for Thousandths {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let decimals = format!("{:03}", self.0 % 1_000);
        match decimals.trim_end_matches('0') {
            "" => write!(f, "{}", self.0 / 1_000),
            decimals => write!(f, "{}.{decimals}", self.0 / 1_000),
        }
    }
}
