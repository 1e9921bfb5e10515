//! The policies in force, in the words of the policy file.
use std::sync::Arc;

use askama::Template;
use axum::{extract::State, http::StatusCode, response::Response};

use super::Running;
use super::page;
use crate::budget::{Budget, BudgetId, Limits, OnStoreLoss, Store};
use crate::engine::{
    Backoff, Categories, Category, GrpcCode, GrpcCodes, HttpStatus, HttpStatuses, Jitter,
};
use crate::policy::{Caller, Gep2257, Mode, Pattern, Policies, Policy, guarantee};

#[derive(Template)]
#[template(path = "policies.html")]
struct Page {
    revision: String,
    policies: Vec<PolicyRow>,
    budgets: Vec<BudgetRow>,
    /// `None`: the file does not say, and everybody may ask for every tenant.
    callers: Option<Vec<CallerRow>>,
}

impl Page {
    /// Which link at the top leads here.
    fn tab(&self) -> &'static str {
        "policies"
    }
}

struct PolicyRow {
    name: String,
    tenant: String,
    operation: String,
    attempts_max: u32,
    budgets: String,
    mode: &'static str,
    /// The keys of the policy file, with their values.
    rules: Vec<(&'static str, String)>,
}

struct BudgetRow {
    name: String,
    scope: &'static str,
    model: String,
    on_store_loss: &'static str,
    guarantee: String,
}

struct CallerRow {
    identity: String,
    tenants: String,
}

pub(super) async fn page<S: Store>(State(running): State<Arc<Running<S>>>) -> Response {
    let page = running.console.retryd.decider().with_policies(|policies| Page {
        revision: policies.revision().to_owned(),
        policies: policies.policies().map(|policy| policy_row(policy, policies)).collect(),
        budgets: policies.budgets().iter().map(budget_row).collect(),
        callers: policies.callers().map(|callers| caller_rows(callers, policies.operators())),
    });
    page::show(StatusCode::OK, &page)
}

fn policy_row(policy: &Policy, policies: &Policies) -> PolicyRow {
    let Policy { name, tenant, operation, rules, payers, mode } = policy;
    let budgets = payers.ids().iter().filter_map(|BudgetId(place)| policies.budgets().get(*place));
    let budgets: Vec<&str> = budgets.map(|budget| &*budget.name).collect();
    PolicyRow {
        name: name.to_string(),
        tenant: tenant.as_str().to_owned(),
        operation: operation.as_str().to_owned(),
        attempts_max: rules.attempts_max,
        budgets: or_none(&budgets),
        mode: match mode {
            Mode::Enforce => "enforce",
            Mode::Shadow => "shadow",
        },
        rules: vec![
            ("max_attempts", rules.attempts_max.to_string()),
            ("min_attempt_budget", Gep2257(rules.min_attempt_budget_ms).to_string()),
            ("backoff", backoff(&rules.backoff)),
            ("max_hint", Gep2257(rules.hint_ms_max).to_string()),
            ("retry_on.http", http(&rules.retry_on.statuses.http)),
            ("retry_on.grpc", grpc(&rules.retry_on.statuses.grpc)),
            ("retry_on.failures", categories(&rules.retry_on.categories)),
            ("refusal_statuses.http", http(&rules.refusal_statuses.http)),
            ("refusal_statuses.grpc", grpc(&rules.refusal_statuses.grpc)),
        ],
    }
}

fn budget_row(budget: &Budget) -> BudgetRow {
    BudgetRow {
        name: budget.name.to_string(),
        scope: budget.scope.name(),
        model: model(&budget.limits),
        on_store_loss: match budget.on_store_loss {
            OnStoreLoss::LocalShare => "local_share",
            OnStoreLoss::Deny => "deny",
        },
        guarantee: guarantee(budget),
    }
}

fn caller_rows(callers: &[Caller], operators: &[Pattern]) -> Vec<CallerRow> {
    let of_tenants = callers.iter().map(|Caller { identity, tenants }| CallerRow {
        identity: identity.as_str().to_owned(),
        tenants: or_none(&tenants.iter().map(Pattern::as_str).collect::<Vec<_>>()),
    });
    let of_all = operators.iter().map(|operator| CallerRow {
        identity: operator.as_str().to_owned(),
        tenants: "every tenant, as an operator".to_owned(),
    });
    of_tenants.chain(of_all).collect()
}

fn model(limits: &Limits) -> String {
    match limits {
        Limits::Ratio(ratio) => format!(
            "ratio: {{percent: {}, interval: {}, min_retry_rate: {{count: {}, interval: {}}}}}",
            ratio.percent,
            Gep2257(ratio.interval_ms),
            ratio.floor.count,
            Gep2257(ratio.floor.interval_ms)
        ),
        Limits::Throttle(throttle) => format!(
            "throttle: {{max_tokens: {}, token_ratio: {}}}",
            throttle.tokens_max,
            decimal(throttle.token_ratio_thousandths)
        ),
        Limits::TokenBucket(bucket) => format!(
            "token_bucket: {{capacity: {}, costs: {{transient: {}, throttling: {}, timeout: {}}}}}",
            bucket.capacity, bucket.costs.transient, bucket.costs.throttling, bucket.costs.timeout
        ),
    }
}

fn backoff(backoff: &Backoff) -> String {
    let jitter = match backoff.jitter {
        Jitter::None => "none",
        Jitter::Full => "full",
        Jitter::Equal => "equal",
    };
    format!(
        "{{base: {}, multiplier: {}, max: {}, jitter: {jitter}}}",
        Gep2257(backoff.base_ms),
        decimal(backoff.multiplier_thousandths),
        Gep2257(backoff.max_ms)
    )
}

fn http(statuses: &HttpStatuses) -> String {
    let all = (HttpStatus::MIN..=HttpStatus::MAX).filter_map(HttpStatus::new);
    let listed = all.filter(|status| statuses.contains(*status));
    or_none(&listed.map(|status| status.get().to_string()).collect::<Vec<_>>())
}

fn grpc(codes: &GrpcCodes) -> String {
    let listed = GrpcCode::ALL.into_iter().filter(|code| codes.contains(*code));
    or_none(&listed.map(GrpcCode::name).collect::<Vec<_>>())
}

fn categories(categories: &Categories) -> String {
    let listed = Category::ALL.into_iter().filter(|category| categories.contains(*category));
    or_none(&listed.map(Category::name).collect::<Vec<_>>())
}

fn or_none<T: AsRef<str>>(names: &[T]) -> String {
    if names.is_empty() {
        return "none".to_owned();
    }
    names.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(", ")
}

/// Three decimals are exact.
fn decimal(thousandths: u32) -> String {
    (f64::from(thousandths) / 1_000.0).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a page says about a file can be written into a file again.
    #[test]
    fn sizes_are_told_in_the_words_of_the_file() {
        let file = "
            version: 1
            budgets:
              - {name: a, scope: tenant, ratio: {percent: 20, interval: 10s, min_retry_rate: {count: 10, interval: 1s}}}
              - {name: b, scope: global, throttle: {max_tokens: 10, token_ratio: 0.125}}
              - {name: c, scope: operation, token_bucket: {capacity: 500, costs: {transient: 14, throttling: 5, timeout: 14}}}
            policies:
              - {name: p, backoff: {base: 1s500ms, multiplier: 1.5, max: 1m, jitter: equal}, budgets: [a, b, c]}
        ";
        let policies = Policies::parse("file", file.as_bytes()).unwrap();
        for budget in policies.budgets() {
            assert!(file.contains(&model(&budget.limits)), "{}", model(&budget.limits));
        }
        let row = policy_row(policies.policies().next().unwrap(), &policies);
        let (_, backoff) = row.rules.iter().find(|(key, _)| *key == "backoff").unwrap();
        assert!(file.contains(&**backoff), "{backoff}");
        assert_eq!(row.budgets, "a, b, c");
    }
}
