//! `serve --shadow`: a second set of policies that sees everything and changes nothing.
use std::{fs, time::Instant};

use retryd::decision_log::Line;
use retryd::wire::pb::{
    self, AcquireRetriesRequest, DecidedAttempt, GetBudgetRequest, ReleaseRetriesRequest,
    RetryContext, Usage, release_retries_request::Grant,
};

use crate::command_line::retryd;
use crate::decision_log::fresh;
use crate::support::{Process, SOON, context, policy_file, report};

const SAME: &str = "retryd_shadow_decisions_total{outcome=\"same\"}";
const DIFFERS: &str = "retryd_shadow_decisions_total{outcome=\"differs\"}";

fn difference(active: &str, shadow: &str) -> String {
    format!("retryd_shadow_differences_total{{active=\"{active}\",shadow=\"{shadow}\"}}")
}

/// One budget of a tenant, with so many retries an hour and 20 % of what is reported.
fn policy(count: u32, more: &str) -> String {
    format!(
        "version: 1
budgets: [{{name: b, scope: tenant, ratio: {{percent: 20, interval: 1h, min_retry_rate: {{count: {count}, interval: 1h}}}}}}]
policies: [{{name: all, budgets: [b], backoff: {{jitter: none}}{more}}}]
"
    )
}

fn start(name: &str, active: &str, shadow: &str, more: &[&str]) -> Process {
    let active = policy_file(&format!("{name}-active.yaml"), active);
    let shadow = policy_file(&format!("{name}-shadow.yaml"), shadow);
    Process::start(&[&["--policy", &*active, "--shadow", &*shadow], more].concat())
}

async fn ask(process: &Process, context: RetryContext) -> pb::Decision {
    process.client().await.decide(context).await.unwrap().into_inner()
}

async fn available(process: &Process, tenant: &str) -> u32 {
    let asked = GetBudgetRequest { tenant: tenant.to_owned(), operation: "op".to_owned() };
    let shown = process.budgets().await.get_budget(asked).await.unwrap().into_inner();
    shown.budgets[0].retries_available
}

#[tokio::test]
async fn differences_are_counted_by_both_reasons_and_logged_and_the_answer_stays() {
    let path = fresh("shadow.jsonl");
    let log = ["--decision-log", path.to_str().unwrap(), "--decision-log-sample", "0"];
    let shadow = policy(3, ", max_attempts: 2").replace("name: all", "name: strict");
    let process = start("shadow-differs", &policy(5, ""), &shadow, &log);
    for place in 0..7 {
        let decision = ask(&process, context("t")).await;
        let reason = if place < 5 { pb::Reason::Retryable } else { pb::Reason::BudgetExhausted };
        assert_eq!((decision.reason(), &*decision.policy), (reason, "all"), "{place}");
        assert!(!decision.shadow);
    }
    let second = RetryContext { attempts_made: 2, ..context("other") };
    assert_eq!(ask(&process, second).await.reason(), pb::Reason::Retryable);

    process.metric_is(SAME, 5).await;
    process.metric_is(DIFFERS, 3).await;
    process.metric_is(&difference("RETRYABLE", "BUDGET_EXHAUSTED"), 2).await;
    process.metric_is(&difference("RETRYABLE", "ATTEMPTS_EXHAUSTED"), 1).await;
    assert_eq!(available(&process, "t").await, 0);
    // What is counted for real is not touched by it.
    let yes = "retryd_decisions_total{verdict=\"RETRY\",reason=\"RETRYABLE\",policy=\"all\"}";
    process.metric_is(yes, 6).await;
    process.metric_is("retryd_balances", 2).await;

    // Three differ, and two are denials in both.
    let end = Instant::now() + SOON;
    let lines = loop {
        let text = fs::read_to_string(&path).unwrap();
        if 5 <= text.lines().count() {
            break text
                .lines()
                .map(|line| Line::read(line.as_bytes()).unwrap())
                .collect::<Vec<_>>();
        }
        assert!(Instant::now() < end, "{text}");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    };
    assert_eq!(lines.len(), 5);
    let said: Vec<_> = lines
        .iter()
        .map(|line| {
            let shadow = line.shadow.as_ref().unwrap();
            assert_eq!(shadow.policy, "strict");
            assert_ne!(shadow.policy_revision, line.decision.policy_revision);
            (line.decision.verdict(), shadow.verdict(), shadow.reason().as_str_name())
        })
        .collect();
    let (yes, no) = (pb::Verdict::Retry, pb::Verdict::DoNotRetry);
    let budget = "REASON_BUDGET_EXHAUSTED";
    let differs = (yes, no, budget);
    let last = (yes, no, "REASON_ATTEMPTS_EXHAUSTED");
    assert_eq!(said, [differs, differs, (no, no, budget), (no, no, budget), last]);
}

#[tokio::test]
async fn another_delay_is_a_difference_and_the_draw_is_one() {
    let longer = policy(100, "").replace("jitter: none", "base: 200ms, jitter: none");
    let process = start("shadow-delay", &policy(100, ""), &longer, &[]);
    let decision = ask(&process, context("t")).await;
    assert_eq!(decision.delay.unwrap().nanos, 100_000_000);
    process.metric_is(&difference("RETRYABLE", "RETRYABLE"), 1).await;

    // With full jitter they only agree where both have drawn the same.
    let jitter = policy(100, "").replace("jitter: none", "jitter: full");
    let process = start("shadow-draw", &jitter, &format!("{jitter}# another revision\n"), &[]);
    for _ in 0..50 {
        ask(&process, context("t")).await;
    }
    assert_eq!((process.metric(SAME).await, process.metric(DIFFERS).await), (50, 0));
}

/// Whether both have one state is seen by what both answer.
#[tokio::test]
async fn it_sees_repeats_dry_runs_reports_leases_and_releases() {
    let text = policy(3, "");
    let process = start("shadow-sees", &text, &format!("{text}# another revision\n"), &[]);
    let mut budgets = process.budgets().await;
    // Dry runs write nothing; a repeat pays once; what rides on a question and what is reported earns.
    for _ in 0..20 {
        ask(&process, RetryContext { dry_run: true, ..context("t") }).await;
    }
    let named = RetryContext {
        call_id: "c".to_owned(),
        usage: Some(Usage { requests: 10, ..Default::default() }),
        ..context("t")
    };
    for _ in 0..3 {
        assert_eq!(ask(&process, named.clone()).await.verdict(), pb::Verdict::Retry);
    }
    report(&process, "t", 50).await;
    // A lease, a part of which comes back; and the first ask's retry, too.
    let acquired = budgets
        .acquire_retries(AcquireRetriesRequest {
            tenant: "t".to_owned(),
            operation: "op".to_owned(),
            wanted: 9,
        })
        .await
        .unwrap()
        .into_inner();
    assert_eq!(acquired.granted, 9);
    let release = |grant, unused| ReleaseRetriesRequest {
        tenant: "t".to_owned(),
        operation: "op".to_owned(),
        unused,
        grant: Some(grant),
    };
    let released = budgets.release_retries(release(Grant::Lease(acquired.lease), 6)).await.unwrap();
    assert_eq!(released.into_inner().released, 6);
    let decided = Grant::Decided(DecidedAttempt { call_id: "c".to_owned(), attempts_made: 1 });
    assert_eq!(
        budgets.release_retries(release(decided, 1)).await.unwrap().into_inner().released,
        1
    );
    // Now drain what is left: where the two differ by one retry, one answer differs.
    let left = available(&process, "t").await;
    assert!(5 < left, "{left}");
    for place in 0..left + 5 {
        let reason = ask(&process, context("t")).await.reason();
        assert_eq!(reason == pb::Reason::Retryable, place < left, "{place} of {left}");
    }
    assert_eq!(process.metric(DIFFERS).await, 0);
    process.metric_is(SAME, u64::from(20 + 3 + left + 5)).await;
}

#[tokio::test]
async fn its_file_is_read_again_and_a_broken_one_hurts_nobody() {
    let process = start("shadow-reload", &policy(100, ""), &policy(100, ""), &[]);
    ask(&process, context("t")).await;
    process.metric_is(SAME, 1).await;
    policy_file(
        "shadow-reload-shadow.yaml",
        "version: 1\npolicies: [{name: a, max_attempts: 0}]\n",
    );
    process.signal("HUP");
    process.logged("shadow-reload-shadow.yaml");
    let reloads =
        |outcome: &str| format!("retryd_shadow_policy_reloads_total{{outcome=\"{outcome}\"}}");
    process.metric_reaches(&reloads("refused"), 1).await;
    assert_eq!(process.metric(&reloads("applied")).await, 0);
    // It is no word on the policy in force.
    process.metric_is("retryd_policy_last_reload_successful", 1).await;
    ask(&process, context("t")).await;
    process.metric_is(SAME, 2).await;

    policy_file("shadow-reload-shadow.yaml", &policy(100, ", max_attempts: 1"));
    process.signal("HUP");
    let end = Instant::now() + SOON;
    loop {
        assert_eq!(ask(&process, context("t")).await.reason(), pb::Reason::Retryable);
        if process.page("/metrics").await.contains(&difference("RETRYABLE", "ATTEMPTS_EXHAUSTED")) {
            break;
        }
        assert!(Instant::now() < end, "the shadow's file is not read again");
    }
    process.metric_reaches(&reloads("applied"), 1).await;
}

#[test]
fn a_broken_file_at_the_start_is_an_error() {
    let path =
        policy_file("shadow-broken.yaml", "version: 1\npolicies: [{name: a, max_attempts: 0}]\n");
    let quiet = ["serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"];
    let (code, _, error) = retryd(&[&quiet[..], &["--shadow", &path]].concat(), "");
    assert_eq!(code, 2, "{error}");
    assert!(error.contains("shadow-broken.yaml:2:"), "{error}");
}

#[tokio::test]
async fn policies_that_only_observe_are_counted_under_their_name() {
    let process = Process::start(&[]);
    ask(&process, context("t")).await;
    let metrics = process.page("/metrics").await;
    assert!(!metrics.contains("retryd_shadow_decisions_total"), "{metrics}");
    let observed = policy_file("shadow-mode.yaml", &policy(1, ", mode: shadow"));
    let process = Process::start(&["--policy", &observed]);
    for _ in 0..3 {
        assert!(ask(&process, context("t")).await.shadow);
    }
    let metric = |verdict, reason| {
        format!(
            "retryd_decisions_total{{verdict=\"{verdict}\",reason=\"{reason}\",policy=\"all\"}}"
        )
    };
    process.metric_is(&metric("RETRY", "RETRYABLE"), 1).await;
    process.metric_is(&metric("DO_NOT_RETRY", "BUDGET_EXHAUSTED"), 2).await;
}
