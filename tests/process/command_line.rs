//! The commands, their output and their exit codes: 0 fine, 1 the answer is no, 2 bad use.
use std::{fs, path::PathBuf, process::Command};

use crate::ended::{Ended, ended};
use crate::support::{DECIDE, Process, call, connection, context, encoded, grpc, policy_file};

pub(crate) fn retryd(arguments: &[&str], input: &str) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_retryd"));
    let Ended { code, out, err } = ended(command.args(arguments), input);
    (code, out, err)
}

const YES: &str = r#"{"tenant":"t","operation":"op","attemptsMade":1,"bodyReplayable":true,"failure":{"category":"FAILURE_CATEGORY_CONNECT"}}"#;
const NO: &str = r#"{"tenant":"t","operation":"op","attemptsMade":1,"failure":{"category":"FAILURE_CATEGORY_CONNECT"}}"#;

#[test]
fn decide_prints_json_and_says_yes_or_no_by_its_exit_code() {
    let (code, out, _) = retryd(&["decide", "-"], YES);
    assert_eq!(code, 0);
    let decision: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(decision["verdict"], "VERDICT_RETRY");
    assert_eq!(decision["policy"], "default");

    let (code, out, _) = retryd(&["decide", "-"], &format!("{YES}\n{NO}"));
    assert_eq!((code, out.lines().count()), (1, 2));
    let (code, out, _) = retryd(&["decide", "-"], &format!("[{YES},\n{NO}]"));
    assert_eq!((code, out.lines().count()), (1, 2));
    assert!(out.contains("REASON_BODY_NOT_REPLAYABLE"));
}

#[test]
fn decide_explains() {
    let (code, out, _) = retryd(&["decide", "--explain", "--format", "table", "-"], NO);
    assert_eq!(code, 1);
    assert!(out.contains("ok  ATTEMPTS_EXHAUSTED        attempts_made 1 of max 3"), "{out}");
    assert!(out.contains("no  BODY_NOT_REPLAYABLE       body_replayable false"), "{out}");
}

#[test]
fn decide_names_every_wrong_field_and_goes_on() {
    let (code, out, _) = retryd(&["decide", "-"], &format!("{{\"attemptsMade\":0}}{YES}"));
    assert_eq!(code, 2);
    let (first, second) = out.split_once('\n').unwrap();
    for field in ["tenant", "operation", "attempts_made", "failure"] {
        assert!(first.contains(&format!("\"field\":\"{field}\"")), "{first}");
    }
    assert!(second.contains("VERDICT_RETRY"));
}

#[test]
fn decide_tells_where_the_json_is_wrong() {
    for (input, where_) in [
        ("{\"tenant\": 1}", "line 1 column"),
        ("{\n\"tenantt\": \"t\"}", "line 2 column"),
        ("{\"tenant\": \"t\"", "line 1 column"),
        ("nonsense", "line 1 column"),
        ("[]", "no RetryContext"),
        ("", "no RetryContext"),
    ] {
        let (code, _, error) = retryd(&["decide", "-"], input);
        assert_eq!(code, 2, "{input}");
        assert!(error.contains(where_), "{input}: {error}");
    }
    let (code, _, error) = retryd(&["decide", "no-such-file"], "");
    assert_eq!(code, 2);
    assert!(error.contains("cannot read `no-such-file`"), "{error}");
}

const BROKEN: &str = "version: 1\npolicies:\n  - name: a\n    max_attempts: 0\n    max_hint: 1x\n";

#[test]
fn a_broken_policy_stops_every_command_and_says_where() {
    let path = policy_file("broken-policy.yaml", BROKEN);
    for arguments in [
        &["check", &path][..],
        &["serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--policy", &path],
        &["decide", "--policy", &path, "-"],
    ] {
        let (code, _, error) = retryd(arguments, YES);
        assert_eq!(code, 2, "{arguments:?}: {error}");
        for place in ["broken-policy.yaml:4:19", "broken-policy.yaml:5:15"] {
            assert!(error.contains(place), "{arguments:?} does not say {place}: {error}");
        }
    }
}

/// Each broken file begins with lines such as `# expect 7:13 words`.
#[test]
fn every_broken_policy_file_ends_with_its_places_and_exit_code_2() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/policies/broken");
    let mut files = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
        let path = path.to_str().unwrap();
        let (code, _, error) = retryd(&["check", path], "");
        assert_eq!(code, 2, "{path}: {error}");
        for expected in text.lines().filter_map(|line| line.strip_prefix("# expect ")) {
            let place = expected.split(' ').next().unwrap();
            assert!(error.contains(&format!("{path}:{place}")), "{path} {place}: {error}");
        }
        files += 1;
    }
    assert!(30 <= files, "{files}");
}

#[test]
fn check_says_what_callers_need_and_decide_goes_without() {
    let callers = "version: 1\npolicies: [{name: a}]\ncallers: [{identity: x, tenants: [y]}]\n";
    let operators = "version: 1\npolicies: [{name: a}]\noperators: [x]\n";
    let neither = "version: 1\npolicies: [{name: a}]\n";
    for (name, text, needs) in
        [("callers", callers, true), ("operators", operators, true), ("neither", neither, false)]
    {
        let path = policy_file(&format!("check-{name}.yaml"), text);
        let (code, out, _) = retryd(&["check", &path], "");
        assert_eq!((code, out.contains("--tls-client-ca-file")), (0, needs), "{out}");
        let (code, out, error) = retryd(&["decide", "--policy", &path, "-"], YES);
        assert_eq!(code, 0, "{out} {error}");
    }
}

#[test]
fn check_prints_the_guarantee() {
    let path = policy_file("fine.yaml", include_str!("../../src/policy/default.yaml"));
    let (code, out, _) = retryd(&["check", &path], "");
    assert_eq!(code, 0);
    assert!(out.contains("<= 20 % of the requests reported in (T + 10s) + 10 x (1 + T / 1s)"));
    assert!(out.contains("warning"), "the embedded policy has no global budget");
    assert!(!out.contains("replica"), "{out}");
}

#[test]
fn check_prints_the_guarantee_over_replicas() {
    let path = policy_file("shared.yaml", include_str!("../../src/policy/default.yaml"));
    let (code, three, _) = retryd(&["check", "--replicas", "3", &path], "");
    assert_eq!(code, 0);
    assert!(three.contains("+ 10 x (1 + T / 1s) + 3; per tenant, over all 3 replicas"), "{three}");
    assert!(!three.contains("has a floor of 10"), "{three}");
    let (code, many, _) = retryd(&["check", &path, "--replicas", "1000"], "");
    assert_eq!(code, 0);
    let warning = "warning: budget `per-tenant` has a floor of 10, which is smaller than 1000";
    assert!(many.contains(warning), "{many}");
    for (replicas, code) in [("0", 2), ("1", 0), ("1001", 2), ("-1", 2), ("x", 2)] {
        let (ended, _, error) = retryd(&["check", &path, "--replicas", replicas], "");
        assert_eq!(ended, code, "{replicas}: {error}");
    }
}

#[test]
fn plaintext_beyond_loopback_needs_insecure() {
    let open = ["serve", "--listen", "0.0.0.0:0", "--admin-listen", "127.0.0.1:0"];
    let (code, _, error) = retryd(&open, "");
    assert_eq!(code, 2);
    assert!(error.contains("--insecure"), "{error}");
    drop(Process::start(&["--listen", "0.0.0.0:0", "--insecure"]));
}

#[test]
fn insecure_may_be_said_by_a_variable() {
    for (word, allowed) in
        [("1", true), ("true", true), ("yes", true), ("0", false), ("false", false), ("off", false)]
    {
        let ended = Command::new(env!("CARGO_BIN_EXE_retryd"))
            // The wrong delay ends it before it serves.
            .args(["--listen", "0.0.0.0:0", "--drain-delay", "2s", "--drain-timeout", "1s"])
            .env("RETRYD_INSECURE", word)
            .output()
            .unwrap();
        let error = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(error.contains("--drain-delay"), allowed, "{word}: {error}");
        assert_eq!(error.contains("is not loopback"), !allowed, "{word}: {error}");
    }
}

#[test]
fn bad_use() {
    for arguments in [
        &["serve", "--listen", "nowhere"][..],
        &["serve", "--drain-delay", "1.5s"],
        &["serve", "--drain-delay", "30s"],
        &["serve", "--log", "ifno"],
        &["serve", "--max-connections", "0"],
        &["serve", "--decision-log", "/no-such-folder/log"],
        &["serve", "--decision-log", "/"],
        &["serve", "--decision-log-sample", "1%"],
        &["serve", "--decision-log", "-", "--decision-log-sample", "101%"],
        &["replay", "no-such-file"],
        &["check"],
        &["check", "no-such-file"],
        &["decide"],
        &["guess"],
    ] {
        let (code, _, error) = retryd(arguments, "");
        assert_eq!(code, 2, "{arguments:?}: {error}");
        assert!(error.contains("error"), "{arguments:?}: {error}");
    }
}

#[test]
fn an_address_that_is_taken() {
    let process = Process::start(&[]);
    let taken = process.calls.to_string();
    let (code, _, error) =
        retryd(&["serve", "--listen", &taken, "--admin-listen", "127.0.0.1:0"], "");
    assert_eq!(code, 2);
    assert!(error.contains(&taken), "{error}");
}

#[test]
fn healthcheck_asks() {
    let process = Process::start(&["--drain-delay", "20s"]);
    let address = process.calls.to_string();
    let code = |arguments: &[&str]| retryd(&[&["healthcheck"], arguments].concat(), "").0;
    assert_eq!(code(&[&address]), 0);
    assert_eq!(code(&[&address, "--service", "retryd.v1.RetryService"]), 0);
    assert_eq!(code(&[&address, "--service", "no.such.Service"]), 1);
    process.signal("TERM");
    let end = std::time::Instant::now() + crate::support::SOON;
    while code(&[&address]) == 0 {
        assert!(std::time::Instant::now() < end);
    }
    assert_eq!(code(&[&address, "--service", "liveness"]), 0);
    assert_eq!(code(&["127.0.0.1:1"]), 1);
    assert_eq!(code(&["not an address"]), 2);
}

#[test]
fn a_unix_socket_serves() {
    let path = format!("unix:{}", PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("s").display());
    let _process = Process::start(&["--listen", &path]);
    assert_eq!(retryd(&["healthcheck", &path], "").0, 0);
}

#[tokio::test]
async fn a_probe_port_serves_only_health() {
    let process = Process::start(&["--probe-listen", "127.0.0.1:0"]);
    let probe = process.probe.unwrap();
    let code =
        tokio::task::spawn_blocking(move || retryd(&["healthcheck", &probe.to_string()], "").0);
    assert_eq!(code.await.unwrap(), 0);
    let mut send = connection(probe).await;
    let ending = call(&mut send, grpc(DECIDE), encoded(&context("t"))).await.unwrap();
    assert_eq!(ending.code, Some(tonic::Code::Unimplemented));
}

#[tokio::test]
async fn decisions_and_refusals_are_not_logged() {
    let process = Process::start(&[]);
    process.answers().await;
    let before = process.log_lines();
    let mut send = connection(process.calls).await;
    for attempts_made in (0..200).map(|place| place % 4) {
        let context = retryd::wire::pb::RetryContext { attempts_made, ..context("t") };
        call(&mut send, grpc(DECIDE), encoded(&context)).await.unwrap();
        call(&mut send, grpc(DECIDE), vec![0, 0, 0, 0, 1, 0xff]).await.unwrap();
    }
    assert_eq!(process.log_lines(), before);
}

#[test]
fn completions() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let (code, out, _) = retryd(&["completions", shell], "");
        assert_eq!(code, 0);
        assert!(out.contains("healthcheck"), "{shell}");
    }
}
