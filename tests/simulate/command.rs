//! The command, as it is typed.
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use retryd::simulate::Report;

const SMALL: &str = "
duration: 4s
clients: {count: 2, calls_per_second: 20}
outage: {from: 1s, length: 1s}
recovered: {for: 1s}
retryd: {store_lost_from: 1s, store_lost: 1s}
grid: {work_percent: [100], outage: [0s, 1s], calls_per_second: [], clients: [], without_key_percent: []}
";

fn simulate(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_retryd"));
    command.current_dir(folder).arg("simulate").args(arguments).output().unwrap()
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("small.yaml"), SMALL).unwrap();
    folder
}

#[test]
fn the_report_is_the_same_on_stdout_in_a_file_and_again() {
    let folder = folder();
    let arguments = ["--scenario", "small.yaml", "--seed", "3", "--seed", "5", "--json"];
    let first = simulate(folder.path(), &[&arguments[..], &["-"]].concat());
    assert!(first.status.success(), "{first:?}");
    let second = simulate(folder.path(), &[&arguments[..], &["report.json"]].concat());
    assert!(second.status.success(), "{second:?}");
    assert_eq!(first.stdout, fs::read(folder.path().join("report.json")).unwrap());
    let report: Report = serde_json::from_slice(&first.stdout).unwrap();
    assert_eq!(report.seeds, [3, 5]);
    assert!(report.contestants.iter().all(|played| played.outcomes.len() == 2));
    assert_eq!(report.grid.len(), 2 * report.contestants.len());
    let lines = String::from_utf8(second.stdout).unwrap();
    for played in &report.contestants {
        assert!(lines.contains(&played.title), "{lines}");
    }
}

#[test]
fn as_many_seeds_as_asked_for() {
    let folder = folder();
    let told =
        simulate(folder.path(), &["--scenario", "small.yaml", "--seeds", "4", "--json", "-"]);
    let report: Report = serde_json::from_slice(&told.stdout).unwrap();
    assert_eq!(report.seeds, [1, 2, 3, 4]);
}

#[test]
fn bad_use_is_told() {
    let folder = folder();
    fs::write(folder.path().join("bad.yaml"), "clients: {count: 0}").unwrap();
    for (arguments, told) in [
        (&["--scenario", "bad.yaml"][..], "`clients.count`"),
        (&["--scenario", "none.yaml"], "cannot be read"),
        (&["--seeds", "0"], "--seeds"),
        (&["--seeds", "2", "--seed", "1"], "cannot be used with"),
        (
            &["--scenario", "small.yaml", "--seed", "1", "--json", "no/where.json"],
            "cannot write `no/where.json`",
        ),
    ] {
        let output = simulate(folder.path(), arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
        assert!(stderr.contains(told), "{arguments:?}: {stderr}");
    }
}
