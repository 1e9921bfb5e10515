//! Nobody reads on: no panic, no other exit code, and no end of the server.
use std::{fs, path::PathBuf, process::Command};

use crate::support::{SOON, policy_file};

fn is_serving(address: &str) -> bool {
    let mut healthcheck = Command::new(env!("CARGO_BIN_EXE_retryd"));
    healthcheck.args(["healthcheck", address]).status().unwrap().success()
}

/// The end of a pipe that nobody reads.
fn unread() -> std::io::PipeWriter {
    std::io::pipe().unwrap().1
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let policy = policy_file("unread.yaml", "version: 1\npolicies: [{name: a}]\n");
    for arguments in [&["check", &policy][..], &["completions", "bash"], &["--help"]] {
        let ended = Command::new(env!("CARGO_BIN_EXE_retryd"))
            .args(arguments)
            .stdout(unread())
            .output()
            .unwrap();
        let error = String::from_utf8(ended.stderr).unwrap();
        assert_eq!((ended.status.code(), &*error), (Some(0), ""), "{arguments:?}");
    }
}

#[test]
fn errors_that_nobody_reads_leave_the_exit_code() {
    let broken = policy_file("unread-broken.yaml", "version: 2\npolicies: [{name: a}]\n");
    for (arguments, code) in [
        (&["check", &broken][..], 2),
        (&["serve", "--policy", &broken], 2),
        (&["healthcheck", "127.0.0.1:1"], 1),
    ] {
        let ended = Command::new(env!("CARGO_BIN_EXE_retryd"))
            .args(arguments)
            .stderr(unread())
            .status()
            .unwrap();
        assert_eq!(ended.code(), Some(code), "{arguments:?}");
    }
}

#[test]
fn a_log_that_cannot_be_written_stops_nothing() {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("unread-log");
    fs::remove_file(&path).ok();
    let address = format!("unix:{}", path.display());
    let mut child = Command::new(env!("CARGO_BIN_EXE_retryd"))
        .args(["serve", "--listen", &address, "--admin-listen", "127.0.0.1:0"])
        .args(["--drain-delay", "0s"])
        .stderr(unread())
        .spawn()
        .unwrap();
    let end = std::time::Instant::now() + SOON;
    while !is_serving(&address) {
        assert!(std::time::Instant::now() < end);
        assert_eq!(child.try_wait().unwrap(), None, "ended");
    }
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-s", "TERM", &pid]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
