//! Asking twice about one attempt, from many connections at once.
use retryd::wire::pb::{self, GetBudgetRequest, RetryContext, TenantUsage, Usage};
use tokio::task::JoinSet;

use crate::support::{Process, context, policy_file, report};

const CONNECTIONS: u32 = 64;

/// Retries by what was reported, which nothing refills while a test runs, and a throttle of 1,000 tokens.
const POLICY: &str = "version: 1
budgets:
  - {name: paid, scope: tenant, ratio: {percent: 100, interval: 1h, min_retry_rate: {count: 0, interval: 1h}}}
  - {name: counted, scope: tenant, throttle: {max_tokens: 1000, token_ratio: 1}}
policies: [{name: all, budgets: [paid, counted]}]
";

/// With 1,000 retries for the tenant `t`.
async fn started(policy: &str) -> Process {
    let process = Process::start(&["--policy", &policy_file(policy, POLICY)]);
    report(&process, "t", 1_000).await;
    process
}

async fn available(process: &Process, tenant: &str) -> Vec<u32> {
    let asked = GetBudgetRequest { tenant: tenant.to_owned(), operation: "op".to_owned() };
    let shown = process.budgets().await.get_budget(asked).await.unwrap().into_inner();
    shown.budgets.iter().map(|state| state.retries_available).collect()
}

/// Asks the same from many connections at once, and tells how many were answered RETRY.
async fn ask_at_once(process: &Process, context: RetryContext) -> usize {
    let mut asks = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let (mut client, context) = (process.client().await, context.clone());
        asks.spawn(async move { client.decide(context).await.unwrap().into_inner().verdict() });
    }
    let verdicts = asks.join_all().await;
    verdicts.into_iter().filter(|verdict| *verdict == pb::Verdict::Retry).count()
}

#[tokio::test]
async fn one_id_from_many_connections_pays_once_and_for_each_repeat_beyond_three() {
    let process = started("once.yaml").await;
    let usage = Some(Usage { requests: 7, first_try_successes: 0, ..Default::default() });
    let context = RetryContext { call_id: "one call".to_owned(), usage, ..context("t") };
    assert_eq!(ask_at_once(&process, context).await, 64);
    // The first pays, three are free, the others pay; what it reports is counted once.
    let further = CONNECTIONS - 1 - 3;
    let charged = 1 + further;
    // Of 1,000 tokens, 499 failures in a row are granted.
    assert_eq!(available(&process, "t").await, [1_000 + 7 - charged, 499 - charged]);
}

#[tokio::test]
async fn calls_of_their_own_pay_each() {
    let process = started("once-each.yaml").await;
    assert_eq!(ask_at_once(&process, context("t")).await, 64);
    assert_eq!(available(&process, "t").await, [1_000 - CONNECTIONS, 499 - CONNECTIONS]);
}

#[tokio::test]
async fn a_constant_id_for_all_calls_lifts_no_budget() {
    let process = started("once-constant.yaml").await;
    let mut client = process.client().await;
    let constant = RetryContext { call_id: "constant".to_owned(), ..context("t") };
    let mut granted = 0;
    for _ in 0..700 {
        let decision = client.decide(constant.clone()).await.unwrap().into_inner();
        granted += u32::from(decision.verdict() == pb::Verdict::Retry);
    }
    // The throttle grants 499 failures in a row, and three repeats were not counted.
    assert_eq!(granted, 499 + 3);
    assert_eq!(available(&process, "t").await, [1_000 - 499, 0]);
}

#[tokio::test]
async fn a_report_that_comes_from_many_connections_counts_once() {
    let process = started("once-report.yaml").await;
    let once = pb::ReportUsageRequest {
        report_id: "one report".to_owned(),
        usage: vec![TenantUsage {
            tenant: "t".to_owned(),
            operation: "op".to_owned(),
            usage: Some(Usage { requests: 5, ..Default::default() }),
        }],
    };
    let mut reports = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let (mut client, once) = (process.budgets().await, once.clone());
        reports.spawn(async move { client.report_usage(once).await.unwrap().into_inner() });
    }
    for answer in reports.join_all().await {
        assert!(matches!(answer.results[0].outcome, Some(pb::usage_result::Outcome::Budget(_))));
    }
    assert_eq!(available(&process, "t").await, [1_005, 499]);
}
