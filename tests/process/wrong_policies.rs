//! Wrong policy files, at a SIGHUP and at the start: refused in the same words, and nothing changes.
use std::{fs, process::Command, time::Instant};

use retryd::wire::pb;

use crate::support::{Process, SOON, context, policy_file};

const GOOD: &str = "version: 1
budgets:
  - {name: mine, scope: tenant, ratio: {interval: 1h, min_retry_rate: {count: 5, interval: 1h}}}
policies:
  - {name: good, max_attempts: 3, backoff: {jitter: none}, budgets: [mine]}
";

async fn decide(process: &Process) -> pb::Decision {
    process.client().await.decide(context("t")).await.unwrap().into_inner()
}

async fn reloads(process: &Process, outcome: &str) -> u64 {
    process.metric(&format!("retryd_policy_reloads_total{{outcome=\"{outcome}\"}}")).await
}

/// Sends a SIGHUP, and waits until the file has been read.
async fn reload(process: &Process, outcome: &str) {
    let before = reloads(process, outcome).await;
    process.signal("HUP");
    let end = Instant::now() + SOON;
    while reloads(process, outcome).await == before {
        assert!(Instant::now() < end, "the file was not read, or not {outcome}");
    }
}

/// What is wrong, and what the refusal must name.
const WRONG: &[(&str, &str, &str, &[&str])] = &[
    ("B24 not a number", "jitter: none", "jitter: none, multiplier: .nan", &["multiplier", ":5:"]),
    ("B24 infinite", "jitter: none", "jitter: none, multiplier: .inf", &["multiplier", ":5:"]),
    ("B24 negative", "jitter: none", "jitter: none, multiplier: -1", &["multiplier", ":5:"]),
    ("B24 zero", "jitter: none", "jitter: none, multiplier: 0", &["multiplier", ":5:"]),
    ("B24 a negative base", "jitter: none", "jitter: none, base: -100ms", &["base", ":5:"]),
    ("B24 a cap below", "jitter: none", "jitter: none, base: 9s, max: 1s", &["max", ":5:"]),
    (
        "B53 a key twice",
        "max_attempts: 3",
        "max_attempts: 3, max_attempts: 30",
        &["max_attempts", ":5:"],
    ),
    ("B53 a misspelt key", "max_attempts: 3", "max_atempts: 3", &["max_atempts", ":5:"]),
    ("B53 a wrong type", "max_attempts: 3", "max_attempts: three", &["max_attempts", ":5:"]),
    (
        "B53 two policies for the same tenant",
        "policies:\n",
        "policies:\n  - {name: first, budgets: [mine]}\n",
        &["good", ":6:"],
    ),
];

#[tokio::test]
async fn a_wrong_file_changes_nothing() {
    let path = policy_file("reload-wrong.yaml", GOOD);
    let process = Process::start(&["--policy", &path]);
    let mut before = decide(&process).await;
    for (what, right, wrong, named) in WRONG {
        assert!(GOOD.contains(right), "{what}");
        fs::write(&path, GOOD.replace(right, wrong)).unwrap();
        reload(&process, "refused").await;
        let mut after = process.client().await;
        let after = after.decide(pb::RetryContext { dry_run: true, ..context("t") }).await;
        let after = after.unwrap().into_inner();
        before.budget.as_mut().unwrap().retries_available = 3;
        assert_eq!(after, before, "{what}");

        // The same file is refused at the start, in the same words.
        let mut start = Command::new(env!("CARGO_BIN_EXE_retryd"));
        let start = start.args(["serve", "--listen", "127.0.0.1:0", "--admin-listen"]);
        let start = start.args(["127.0.0.1:0", "--policy", &path]).output().unwrap();
        assert!(!start.status.success(), "{what}");
        let said = String::from_utf8(start.stderr).unwrap();
        for name in named.iter().chain(&["reload-wrong.yaml"]) {
            assert!(said.contains(name), "{what}: `{name}` is not named in {said}");
        }
    }
    assert_eq!(reloads(&process, "applied").await, 0);
}
