//! What `/metrics` shows of the built binary, and that nobody can make it show more.
use std::collections::BTreeSet;

use retryd::wire::pb::{GetBudgetRequest, RetryContext};

use crate::support::{DECIDE, Process, call, connection, context, encoded, grpc, policy_file};

const POLICY: &str = "version: 1
budgets: [{name: own, scope: tenant, ratio: {interval: 1h, min_retry_rate: {count: 1, interval: 1h}}}]
policies:
  - {name: special, match: {tenant: special}, max_attempts: 1}
  - {name: all, budgets: [own]}
";

/// The series: what stands before the values.
async fn series(process: &Process) -> BTreeSet<String> {
    let text = process.page("/metrics").await;
    let (_, body) = text.split_once("\r\n\r\n").unwrap();
    let samples = body.lines().filter(|line| !line.starts_with('#'));
    samples.map(|line| line.rsplit_once(' ').unwrap().0.to_owned()).collect()
}

/// One call for each of so many tenants and operations that nobody knows.
async fn invented(process: &Process, from: u32, count: u32) {
    let mut client = process.client().await;
    let mut send = connection(process.calls).await;
    for place in from..from + count {
        let operation = format!("operation-{place}");
        let asked = RetryContext { operation, ..context(&format!("tenant-{place}")) };
        client.decide(asked).await.unwrap();
        if place % 10 == 0 {
            // A wrong field, a number that no enum has, and a method that is not there.
            let wrong = RetryContext { attempts_made: 0, evidence: 4_000, ..context("t") };
            client.decide(wrong).await.unwrap_err();
            let path = format!("/retryd.v1.RetryService/Invented{place}");
            call(&mut send, grpc(&path), encoded(&context("t"))).await.unwrap();
        }
    }
}

#[tokio::test]
async fn b57_ten_thousand_tenants_and_operations_make_no_series() {
    let path = policy_file("metrics.yaml", POLICY);
    let process = Process::start(&["--policy", &path]);
    invented(&process, 0, 20).await;
    let before = series(&process).await;
    let resident = process.resident_bytes();
    invented(&process, 20, 10_000).await;
    assert_eq!(series(&process).await, before);
    let grown = process.resident_bytes().saturating_sub(resident);
    assert!(grown < 24 << 20, "{grown} bytes");
}

#[tokio::test]
async fn what_is_decided_and_refused_is_counted_by_its_names() {
    let path = policy_file("metrics-names.yaml", POLICY);
    let process = Process::start(&["--policy", &path]);
    let mut client = process.client().await;
    for tenant in ["special", "t", "t", "t"] {
        client.decide(context(tenant)).await.unwrap();
    }
    let wrong = RetryContext { attempts_made: 0, ..context("") };
    client.decide(wrong).await.unwrap_err();
    let asked = GetBudgetRequest { tenant: "t".to_owned(), operation: String::new() };
    process.budgets().await.get_budget(asked).await.unwrap_err();

    let decided = |verdict, reason, policy| {
        let labels = format!("verdict=\"{verdict}\",reason=\"{reason}\",policy=\"{policy}\"");
        format!("retryd_decisions_total{{{labels}}}")
    };
    let ended = |method, status| {
        let labels = format!("method=\"retryd.v1.{method}\",status=\"{status}\"");
        format!("retryd_rpc_server_call_duration_seconds_count{{{labels}}}")
    };
    for (line, expected) in [
        (decided("DO_NOT_RETRY", "ATTEMPTS_EXHAUSTED", "special"), 1),
        (decided("RETRY", "RETRYABLE", "all"), 1),
        (decided("DO_NOT_RETRY", "BUDGET_EXHAUSTED", "all"), 2),
        (decided("RETRY", "RETRYABLE", "special"), 0),
        ("retryd_budget_denials_total{budget=\"own\"}".to_owned(), 2),
        ("retryd_context_violations_total{field=\"tenant\"}".to_owned(), 1),
        ("retryd_context_violations_total{field=\"attempts_made\"}".to_owned(), 1),
        ("retryd_context_violations_total{field=\"operation\"}".to_owned(), 1),
        (ended("RetryService/Decide", "OK"), 4),
        (ended("RetryService/Decide", "INVALID_ARGUMENT"), 1),
        (ended("BudgetService/GetBudget", "INVALID_ARGUMENT"), 1),
        ("retryd_ready".to_owned(), 1),
        ("retryd_connections_limit{port=\"calls\"}".to_owned(), 10_000),
    ] {
        process.metric_is(&line, expected).await;
    }

    // Under another file the names are others, and what goes on is counted on.
    policy_file("metrics-names.yaml", &POLICY.replace("special", "other"));
    process.signal("HUP");
    process.logged("the policy file is in force");
    client.decide(context("t")).await.unwrap();
    process.metric_is(&decided("DO_NOT_RETRY", "BUDGET_EXHAUSTED", "all"), 3).await;
    assert!(!process.page("/metrics").await.contains("\"special\""));
}

#[tokio::test]
async fn who_knows_no_openmetrics_gets_the_older_text() {
    let process = Process::start(&[]);
    let mut send = connection(process.calls).await;
    call(&mut send, grpc(DECIDE), encoded(&RetryContext::default())).await.unwrap();
    let text = process.page_as("/metrics", "text/plain;version=0.0.4").await;
    assert!(text.contains("content-type: text/plain; version=0.0.4"), "{text}");
    assert!(text.contains("\n# TYPE retryd_panics_total counter\n"), "{text}");
    let both = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5";
    for accept in [both, "*/*"] {
        let text = process.page_as("/metrics", accept).await;
        assert!(text.contains("content-type: application/openmetrics-text"), "{text}");
        assert!(text.ends_with("# EOF\n"), "{text}");
    }
}
