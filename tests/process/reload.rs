//! SIGHUP: the policy file is read again, and taken whole or not at all.
use retryd::wire::pb::{GetBudgetRequest, RetryContext};

use crate::support::{Process, SOON, context, policy_file};

fn policy(max_attempts: u32, scope: &str, count: u32) -> String {
    format!(
        "version: 1
budgets: [{{name: b, scope: {scope}, ratio: {{interval: 1h, min_retry_rate: {{count: {count}, interval: 1h}}}}}}]
policies: [{{name: all, max_attempts: {max_attempts}, budgets: [b]}}]
"
    )
}

async fn available(process: &Process, tenant: &str) -> u32 {
    let asked = GetBudgetRequest { tenant: tenant.to_owned(), operation: "op".to_owned() };
    let shown = process.budgets().await.get_budget(asked).await.unwrap().into_inner();
    shown.budgets[0].retries_available
}

async fn revision(process: &Process) -> String {
    let dry_run = RetryContext { dry_run: true, ..context("witness") };
    process.client().await.decide(dry_run).await.unwrap().into_inner().policy_revision
}

#[tokio::test]
async fn a_reload_takes_hold_and_budgets_keep_what_is_in_them() {
    let path = policy_file("reload.yaml", &policy(3, "tenant", 10));
    let process = Process::start(&["--policy", &path]);
    let before = revision(&process).await;
    let mut client = process.client().await;
    for _ in 0..4 {
        client.decide(context("t")).await.unwrap();
    }
    assert_eq!(available(&process, "t").await, 6);

    policy_file("reload.yaml", &policy(1, "tenant", 20));
    process.signal("HUP");
    process.logged("the policy file is in force");
    assert_ne!(revision(&process).await, before);
    assert_eq!(available(&process, "t").await, 12, "6 of 10 are 12 of 20");
    // The connection stays, and the new rules hold on it.
    let decision = client.decide(context("t")).await.unwrap().into_inner();
    assert_eq!(decision.reason().as_str_name(), "REASON_ATTEMPTS_EXHAUSTED");
    assert_ne!(process.metric("retryd_policy_reloads_total{outcome=\"applied\"}").await, 0);
}

#[tokio::test]
async fn a_broken_file_changes_nothing_and_is_told() {
    let path = policy_file("reload-broken.yaml", &policy(3, "tenant", 10));
    let process = Process::start(&["--policy", &path]);
    let before = revision(&process).await;
    for (broken, told) in [
        (policy(0, "tenant", 10), "reload-broken.yaml:3:"),
        (
            "version: 1\npolicies: [{name: a}]\noperators: [x]\n".to_owned(),
            "nobody proves who they are",
        ),
        (String::new(), "reload-broken.yaml:1:"),
    ] {
        let lines = process.log_lines();
        policy_file("reload-broken.yaml", &broken);
        process.signal("HUP");
        let read = async {
            while process.log_lines() == lines {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(SOON, read).await.expect("the file is not read again");
        assert!(process.logged(told).contains("refused"), "{told}");
        assert_eq!(revision(&process).await, before);
    }
    std::fs::remove_file(&path).unwrap();
    process.signal("HUP");
    process.logged("cannot be read");
    // A pipe that nobody writes to.
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    process.signal("HUP");
    process.logged("the path is no file");
    std::fs::remove_file(&path).unwrap();
    process.answers().await;
    // More often, where the change was seen before the signal came.
    process.metric_reaches("retryd_policy_reloads_total{outcome=\"refused\"}", 5).await;
    assert_eq!(process.metric("retryd_policy_reloads_total{outcome=\"applied\"}").await, 0);
}

#[tokio::test]
async fn a_budget_with_another_scope_starts_anew_and_the_log_says_so() {
    let path = policy_file("reload-scope.yaml", &policy(3, "tenant", 10));
    let process = Process::start(&["--policy", &path]);
    process.client().await.decide(context("t")).await.unwrap();
    process.metric_is("retryd_balances", 1).await;
    policy_file("reload-scope.yaml", &policy(3, "global", 10));
    process.signal("HUP");
    process.logged("starts anew");
    process.logged("the policy file is in force");
    assert_eq!(available(&process, "t").await, 10);
    assert_eq!(process.metric("retryd_balances").await, 0);
}

#[tokio::test]
async fn without_a_policy_file_there_is_nothing_to_read_again() {
    let process = Process::start(&[]);
    process.signal("HUP");
    process.logged("there is no policy file to read again");
    process.answers().await;
}
