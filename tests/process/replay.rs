//! `retryd replay`: what another policy file would have answered.
use std::{
    fs,
    io::Write as _,
    process::{Command, Stdio},
    time::Instant,
};

use retryd::wire::pb::{Idempotency, RetryContext};

use crate::command_line::retryd;
use crate::decision_log::fresh;
use crate::support::{Process, SOON, context, policy_file};

const THEN: &str = "version: 1
budgets: [{name: b, scope: tenant, ratio: {min_retry_rate: {count: 4, interval: 1h}}}]
policies: [{name: all, max_attempts: 2, budgets: [b], backoff: {jitter: none}}]
";

/// Ten asks of one tenant: four granted, five refused by the budget; and one without attempts left.
async fn log(name: &str) -> String {
    let path = fresh(&format!("{name}.jsonl"));
    let policy = policy_file(&format!("{name}.yaml"), THEN);
    let arguments = ["--policy", &policy, "--decision-log", path.to_str().unwrap()];
    let more = ["--decision-log-sample", "100%", "--drain-delay", "0s"];
    let mut process = Process::start(&[&arguments[..], &more].concat());
    let mut client = process.client().await;
    for _ in 0..9 {
        client.decide(context("shop")).await.unwrap();
    }
    let idempotency = Some(Idempotency { declared: true, ..Default::default() });
    let last = RetryContext { attempts_made: 2, idempotency, ..context("shop") };
    client.decide(last).await.unwrap();
    drop(client);
    process.signal("TERM");
    assert_eq!(process.exit(SOON).code(), Some(0));
    path.to_str().unwrap().to_owned()
}

fn replay(log: &str, policy: &str, format: &str) -> (i32, String, String) {
    retryd(&["replay", log, "--policy", policy, "--format", format], "")
}

#[tokio::test]
async fn the_same_policy_changes_nothing() {
    let log = log("replay-same").await;
    let policy = policy_file("replay-same-again.yaml", THEN);
    let (code, out, error) = replay(&log, &policy, "table");
    assert_eq!((code, &*error), (0, ""), "{out}");
    assert!(out.starts_with(&format!("10 decisions, anew by {policy}, revision ")), "{out}");
    assert!(out.contains("10  the same\n        0  changed\n        0  not known"), "{out}");
    // From the standard input, too.
    let text = fs::read_to_string(&log).unwrap();
    let (code, out, _) = retryd(&["replay", "-", "--policy", &policy], &text);
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &report["same"]), (0, &10.into()));
}

#[tokio::test]
async fn changes_are_told_by_reason_with_examples() {
    let log = log("replay-changed").await;
    let longer =
        THEN.replace("max_attempts: 2", "max_attempts: 3").replace("jitter", "base: 200ms, jitter");
    let policy = policy_file("replay-longer.yaml", &longer.replace("name: all", "name: other"));
    let (code, out, error) = replay(&log, &policy, "table");
    assert_eq!((code, &*error), (1, ""), "{out}");
    assert!(out.contains("5  the same\n        5  changed\n        0  not known"), "{out}");
    assert!(out.contains("4  RETRYABLE -> RETRYABLE, after another delay\n"), "{out}");
    let example = "line 1: shop op, policy `all` -> `other`, 100 ms -> 200 ms\n";
    assert!(
        out.contains(example) && out.contains("line 3: ") && !out.contains("line 4: "),
        "{out}"
    );
    // The fifth refused one is still refused, but for attempts it would now be.
    assert!(out.contains("1  ATTEMPTS_EXHAUSTED -> BUDGET_EXHAUSTED\n"), "{out}");

    let strict =
        policy_file("replay-strict.yaml", &THEN.replace("max_attempts: 2", "max_attempts: 1"));
    let (code, out, _) = replay(&log, &strict, "json");
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &report["changed"], &report["same"]), (1, &9.into(), &1.into()));
    assert_eq!(report["changes"][0]["then"], "BUDGET_EXHAUSTED");
    assert_eq!(report["changes"][0]["count"], 5);
    assert_eq!(report["changes"][1]["then"], "RETRYABLE");
    assert_eq!(report["changes"][1]["now"], "ATTEMPTS_EXHAUSTED");
    assert_eq!(report["changes"][1]["examples"][0]["tenant"], "shop");
    assert_eq!(report["changes"][1]["examples"][0]["delayMsThen"], 100);

    let shadow =
        policy_file("replay-shadow.yaml", &THEN.replace("name: all", "name: all, mode: shadow"));
    let (code, out, _) = replay(&log, &shadow, "table");
    assert_eq!(code, 1);
    assert!(out.contains("5  BUDGET_EXHAUSTED -> BUDGET_EXHAUSTED (shadow)"), "{out}");
}

#[tokio::test]
async fn another_budget_is_not_known_and_none_is() {
    let log = log("replay-budgets").await;
    let larger = policy_file("replay-larger.yaml", &THEN.replace("count: 4", "count: 40"));
    let (code, out, _) = replay(&log, &larger, "table");
    assert_eq!(code, 1, "what is not known is no proof");
    assert!(out.contains("1  the same\n        0  changed\n        9  not known"), "{out}");
    assert!(out.contains("line 1: shop op, policy `all`"), "{out}");
    let none = policy_file("replay-none.yaml", &THEN.replace(", budgets: [b]", ""));
    let (code, out, _) = replay(&log, &none, "table");
    assert_eq!(code, 1);
    assert!(out.contains("5  the same\n        5  changed\n        0  not known"), "{out}");
    assert!(out.contains("5  BUDGET_EXHAUSTED -> RETRYABLE\n"), "{out}");
}

#[tokio::test]
async fn lines_that_cannot_be_read_are_told_and_the_others_decided() {
    let log = log("replay-broken").await;
    let text = fs::read_to_string(&log).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let torn = &lines[0][..100];
    let strange = lines[1].replace("\"attemptsMade\":1", "\"attemptsMade\":0");
    let reason = lines[2].replace("REASON_RETRYABLE", "REASON_UNSPECIFIED");
    let broken = format!("{torn}\n{}\n\n{{}}\n{strange}\n{reason}\n\u{7}x\n", lines[3]);
    fs::write(&log, broken).unwrap();
    let policy = policy_file("replay-broken-again.yaml", THEN);
    let (code, out, error) = replay(&log, &policy, "table");
    assert_eq!(code, 2);
    assert!(out.contains("1 decisions") && out.contains("5  lines could not be read"), "{out}");
    for told in [
        "line 1: no line",
        "line 4: no line",
        "line 5: retryd would refuse",
        "line 6: the decision",
        "line 7: no",
    ] {
        assert!(error.contains(told), "{told}: {error}");
    }
    assert!(!error.contains('\u{7}'));

    fs::write(&log, "nonsense\n".repeat(30)).unwrap();
    let (code, _, error) = replay(&log, &policy, "table");
    assert_eq!((code, error.lines().count()), (2, 11), "{error}");
    assert!(error.contains("20 more lines"), "{error}");
    for empty in ["", "\n\n"] {
        fs::write(&log, empty).unwrap();
        let (code, _, error) = replay(&log, &policy, "table");
        assert_eq!(code, 2);
        assert!(error.contains("holds no decision"), "{error}");
    }
}

#[tokio::test]
async fn a_long_log_takes_no_more_memory_than_a_short_one() {
    const LOG_BYTES: usize = 48 << 20;
    let text = fs::read(log("replay-long").await).unwrap();
    let policy = policy_file("replay-long-again.yaml", THEN);
    let mut child = Command::new(env!("CARGO_BIN_EXE_retryd"))
        .args(["replay", "-", "--policy", &policy, "--format", "table"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let rounds = LOG_BYTES / text.len();
    for _ in 0..rounds {
        input.write_all(&text).unwrap();
    }
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let peak = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    let peak_kib: usize = peak.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(peak_kib << 10 < LOG_BYTES, "{peak}");
    drop(input);
    let began = Instant::now();
    let ended = child.wait_with_output().unwrap();
    assert!(began.elapsed() < SOON);
    let out = String::from_utf8(ended.stdout).unwrap();
    assert!(out.starts_with(&format!("{} decisions", rounds * 10)), "{out}");
}
