//! A reader of the log that stops, such as a log driver that waits for its disk, stops nothing else.
use std::{
    io::Write as _,
    process::Command,
    time::{Duration, Instant},
};

use tokio::time::timeout;

use crate::support::{Process, SOON, policy_file};

const DROPPED: &str = "retryd_log_lines_dropped_total";
const APPLIED: &str = "retryd_policy_reloads_total{outcome=\"applied\"}";
const REFUSED: &str = "retryd_policy_reloads_total{outcome=\"refused\"}";

const GOOD: &str = "version: 1\npolicies: [{name: good}]\n";

/// A policy file that is refused in a line of the log as long as the pipe.
fn broken() -> String {
    let policy = format!("  - {{name: BAD, match: {{operation: {}}}}}\n", "x".repeat(300));
    format!("version: 1\npolicies:\n{}", policy.repeat(100))
}

/// A process that has dropped lines, since nobody reads them.
async fn stuck(name: &str, arguments: &[&str]) -> Process {
    let path = policy_file(name, GOOD);
    let process = Process::start(&[&["--policy", &path], arguments].concat());
    process.read_log(false);
    policy_file(name, &broken());
    let full = async {
        while process.metric(DROPPED).await == 0 {
            let before = process.metric(REFUSED).await;
            process.signal("HUP");
            process.metric_reaches(REFUSED, before + 1).await;
        }
    };
    timeout(SOON * 3, full).await.expect("it goes on, and drops lines");
    process
}

#[tokio::test]
async fn a_log_that_nobody_reads_holds_up_nothing() {
    let drain = ["--drain-delay", "0s", "--drain-timeout", "5s"];
    let mut process = stuck("stuck-log.yaml", &drain).await;
    // On new connections each, through the accept loops.
    process.answers().await;
    assert!(process.page("/livez").await.ends_with("ok\n"));
    policy_file("stuck-log.yaml", GOOD);
    process.signal("HUP");
    process.metric_reaches(APPLIED, 1).await;
    process.answers().await;

    process.signal("TERM");
    assert_eq!(process.exit(SOON).code(), Some(0));
}

#[tokio::test]
async fn a_reader_that_goes_on_gets_what_was_kept_and_the_end() {
    let mut process = stuck("stuck-log-read.yaml", &["--drain-delay", "0s"]).await;
    let dropped = process.metric(DROPPED).await;
    process.read_log(true);
    let refused = process.metric(REFUSED).await;
    let kept = usize::try_from(refused - dropped).unwrap();
    let late = Instant::now() + SOON;
    while process.lines_with("is refused").len() < kept {
        assert!(Instant::now() < late, "{kept} lines were kept");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    process.signal("TERM");
    assert_eq!(process.exit(SOON).code(), Some(0));
    process.logged("\"ended\"");
}

#[tokio::test]
async fn a_second_signal_ends_a_process_whose_log_nobody_reads() {
    let drain = ["--drain-delay", "1h", "--drain-timeout", "1h"];
    let mut process = stuck("stuck-log-hurry.yaml", &drain).await;
    process.signal("TERM");
    process.metric_is("retryd_ready", 0).await;
    process.signal("TERM");
    assert_eq!(process.exit(SOON).code(), Some(130));
}

#[tokio::test]
async fn the_last_line_of_a_second_signal_is_written() {
    let mut process = Process::start(&["--drain-delay", "1h", "--drain-timeout", "1h"]);
    process.signal("TERM");
    process.logged("asked to stop");
    process.signal("TERM");
    assert_eq!(process.exit(SOON).code(), Some(130));
    process.logged("\"ended\"");
}

#[test]
fn an_error_at_the_start_that_nobody_can_read_leaves_the_exit_code() {
    let (_reader, mut full) = std::io::pipe().unwrap();
    // As much as a pipe holds.
    full.write_all(&[b'x'; 64 << 10]).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_retryd"))
        .args(["serve", "--policy", "/no/such/file"])
        .stderr(full)
        .spawn()
        .unwrap();
    let late = Instant::now() + SOON;
    let ended = loop {
        if let Some(ended) = child.try_wait().unwrap() {
            break ended;
        }
        if late < Instant::now() {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("it does not end");
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    assert_eq!(ended.code(), Some(2));
}
