//! BudgetService: reports entry by entry, and balances on show.
use retryd::wire::pb::{
    self, AcquireRetriesRequest, GetBudgetRequest, ReleaseRetriesRequest, ReportUsageRequest,
    TenantUsage, Usage, WatchBudgetRequest, budget_service_client::BudgetServiceClient,
    usage_result::Outcome,
};
use tonic::{Code, Status, transport::Channel};
use tonic_types::StatusExt as _;

use crate::support::{Process, context, policy_file};

const POLICY: &str = "version: 1
budgets:
  - {name: mine, scope: tenant, ratio: {percent: 50, interval: 1h, min_retry_rate: {count: 3, interval: 1h}}}
  - {name: all, scope: global, token_bucket: {capacity: 100, costs: aws-legacy}}
policies:
  - {name: free, match: {tenant: free}}
  - {name: paid, budgets: [mine, all]}
";

async fn started() -> (Process, BudgetServiceClient<Channel>) {
    let process = Process::start(&["--policy", &policy_file("budget-service.yaml", POLICY)]);
    let client = BudgetServiceClient::connect(format!("http://{}", process.calls)).await.unwrap();
    (process, client)
}

fn entry(tenant: &str, requests: u64) -> TenantUsage {
    TenantUsage {
        tenant: tenant.to_owned(),
        operation: "op".to_owned(),
        usage: Some(Usage { requests, ..Default::default() }),
    }
}

fn report(usage: Vec<TenantUsage>) -> ReportUsageRequest {
    ReportUsageRequest { usage, report_id: String::new() }
}

async fn shown(client: &mut BudgetServiceClient<Channel>, tenant: &str) -> Vec<(String, u32, u32)> {
    let asked = GetBudgetRequest { tenant: tenant.to_owned(), operation: "op".to_owned() };
    let answer = client.get_budget(asked).await.unwrap().into_inner();
    let row =
        |state: pb::BudgetState| (state.budget, state.retries_available, state.retries_capacity);
    answer.budgets.into_iter().map(row).collect()
}

#[track_caller]
fn fields(status: &Status) -> Vec<String> {
    assert_eq!(status.code(), Code::InvalidArgument);
    let details = status.get_error_details();
    assert_eq!(details.error_info().unwrap().reason, "CONTEXT_INVALID");
    let violations = &details.bad_request().unwrap().field_violations;
    violations.iter().map(|violation| violation.field.clone()).collect()
}

fn row(budget: &str, available: u32, capacity: u32) -> (String, u32, u32) {
    (budget.to_owned(), available, capacity)
}

#[tokio::test]
async fn every_budget_is_shown_in_the_order_of_the_policy() {
    let (process, mut client) = started().await;
    assert_eq!(shown(&mut client, "a").await, [row("mine", 3, 3), row("all", 20, 20)]);
    assert_eq!(shown(&mut client, "free").await, []);
    process.client().await.decide(context("a")).await.unwrap();
    assert_eq!(shown(&mut client, "a").await, [row("mine", 2, 3), row("all", 19, 20)]);
    assert_eq!(shown(&mut client, "b").await, [row("mine", 3, 3), row("all", 19, 20)]);
}

#[tokio::test]
async fn a_refused_entry_changes_nothing_and_stops_no_other() {
    let (_process, mut client) = started().await;
    let wrong = TenantUsage {
        tenant: "a".to_owned(),
        operation: String::new(),
        usage: Some(Usage { requests: 1_000_000_001, ..Default::default() }),
    };
    let entries = vec![entry("a", 10), wrong, entry("free", 10), entry("a", 10)];
    let answer = client.report_usage(report(entries)).await.unwrap().into_inner();
    let outcomes: Vec<_> = answer.results.into_iter().map(|result| result.outcome).collect();
    let [first, refused, free, last] = outcomes.try_into().unwrap();

    let available = |outcome: Option<Outcome>| match outcome {
        Some(Outcome::Budget(state)) => (state.budget, state.retries_available),
        other => panic!("{other:?}"),
    };
    assert_eq!(available(first), ("mine".to_owned(), 8));
    match refused {
        Some(Outcome::Refusal(refusal)) => {
            assert_eq!(refusal.grpc_code, 3);
            let fields: Vec<&str> = refusal.violations.iter().map(|v| v.field.as_str()).collect();
            assert_eq!(fields, ["operation", "usage.requests"]);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(free, None, "no budget is named, so there is no state");
    assert_eq!(available(last), ("mine".to_owned(), 13), "the same twice counts twice");
}

#[tokio::test]
async fn a_report_as_a_whole_has_limits() {
    let (process, mut client) = started().await;
    let none = client.report_usage(report(vec![])).await.unwrap_err();
    assert_eq!(fields(&none), ["usage"]);
    let long = ReportUsageRequest { usage: vec![entry("a", 1); 1_001], report_id: "r".repeat(65) };
    let long = client.report_usage(long).await.unwrap_err();
    assert_eq!(fields(&long), ["usage", "report_id"]);
    assert_eq!(shown(&mut client, "a").await[0], row("mine", 3, 3), "nothing was counted");
    let most = client.report_usage(report(vec![entry("a", 1); 1_000])).await.unwrap();
    assert_eq!(most.get_ref().results.len(), 1_000);
    assert_eq!(shown(&mut client, "a").await[0], row("mine", 503, 3));
    process.metric_is("retryd_usage_reports_total", 1_000).await;
}

#[tokio::test]
async fn names_are_required_everywhere() {
    let (_process, mut client) = started().await;
    let shown = client.get_budget(GetBudgetRequest::default()).await.unwrap_err();
    assert_eq!(fields(&shown), ["tenant", "operation"]);
    let watched = client.watch_budget(WatchBudgetRequest::default()).await.unwrap_err();
    assert_eq!(fields(&watched), ["tenant", "operation"]);
    let acquired = client.acquire_retries(AcquireRetriesRequest::default()).await.unwrap_err();
    assert_eq!(fields(&acquired), ["tenant", "operation", "wanted"]);
    let released = client.release_retries(ReleaseRetriesRequest::default()).await.unwrap_err();
    assert_eq!(fields(&released), ["tenant", "operation", "unused", "grant"]);
}
