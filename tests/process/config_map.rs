//! B52: policies that change by themselves, above all in a mounted ConfigMap.
use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use retryd::policy::Policies;
use retryd::wire::pb::RetryContext;
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

use crate::support::{Process, SOON, context};

const REFUSED: &str = "retryd_policy_reloads_total{outcome=\"refused\"}";
const APPLIED: &str = "retryd_policy_reloads_total{outcome=\"applied\"}";

fn policy(name: &str) -> String {
    format!("version: 1\npolicies: [{{name: {name}}}]\n")
}

/// The kubelet's layout: `policy.yaml` -> `..data/policy.yaml`, `..data` -> `..VERSION`.
struct ConfigMap {
    folder: TempDir,
    versions: usize,
}

impl ConfigMap {
    fn new(text: &str) -> ConfigMap {
        let mut map = ConfigMap { folder: TempDir::new().unwrap(), versions: 0 };
        map.swap(text);
        symlink("..data/policy.yaml", map.path("policy.yaml")).unwrap();
        map
    }

    /// As the kubelet does it: a new directory, and one rename. What was there before stays until
    /// somebody removes it.
    fn swap(&mut self, text: &str) -> PathBuf {
        self.versions += 1;
        let version = format!("..2026_01_01_00_00_00.{:09}", self.versions);
        let made = self.path(&version);
        fs::create_dir(&made).unwrap();
        fs::write(made.join("policy.yaml"), text).unwrap();
        symlink(&version, self.path("..data_tmp")).unwrap();
        fs::rename(self.path("..data_tmp"), self.path("..data")).unwrap();
        made
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn start(&self, name: &str) -> Process {
        Process::start(&["--policy", text(&self.path(name))])
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The policy and the revision that decide now.
async fn deciding(process: &Process) -> (String, String) {
    let dry_run = RetryContext { dry_run: true, ..context("witness") };
    let decision = process.client().await.decide(dry_run).await.unwrap().into_inner();
    (decision.policy, decision.policy_revision)
}

/// Waits until the policy with this name decides, by the revision of exactly its file.
async fn in_force(process: &Process, name: &str) {
    let revision = Policies::parse("p", policy(name).as_bytes()).unwrap().revision().to_owned();
    let expected = (name.to_owned(), revision);
    let follows = async {
        while deciding(process).await != expected {
            sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    timeout(SOON, follows).await.unwrap_or_else(|_| panic!("`{name}` does not come in force"));
}

#[tokio::test]
async fn b52_a_mounted_config_map_is_followed() {
    // By the file, and by the directory, where old versions and links must not count as more files.
    for watched in ["policy.yaml", ""] {
        let mut map = ConfigMap::new(&policy("first"));
        let process = map.start(watched);
        in_force(&process, "first").await;

        let second = map.swap(&policy("second"));
        in_force(&process, "second").await;

        // Twice within a moment: the last one holds.
        map.swap(&policy("third"));
        map.swap(&policy("fourth"));
        in_force(&process, "fourth").await;

        // What is left of an old version is nobody's policy, whatever happens to it.
        fs::write(second.join("policy.yaml"), policy("forged")).unwrap();
        fs::write(second.join("another.yaml"), policy("forged")).unwrap();
        fs::remove_dir_all(&second).unwrap();

        fs::write(map.path("..data/policy.yaml"), policy("edited")).unwrap();
        in_force(&process, "edited").await;
        assert_eq!(process.metric(REFUSED).await, 0, "{watched:?}");
        assert!(process.lines_with("forged").is_empty());
    }
}

#[tokio::test]
async fn b52_a_file_is_followed_however_it_changes() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("policy.yaml");
    fs::write(&path, policy("first")).unwrap();
    let process = Process::start(&["--policy", text(&path)]);
    in_force(&process, "first").await;

    fs::write(&path, policy("in-place")).unwrap();
    in_force(&process, "in-place").await;

    let beside = folder.path().join("new");
    fs::write(&beside, policy("renamed")).unwrap();
    fs::rename(&beside, &path).unwrap();
    in_force(&process, "renamed").await;

    // It is gone for longer than a moment, and comes back.
    fs::remove_file(&path).unwrap();
    process.logged("cannot be read");
    fs::write(&path, policy("back")).unwrap();
    in_force(&process, "back").await;
    process.metric_is(APPLIED, 3).await;
}

#[tokio::test]
async fn a_broken_change_is_told_once_and_the_last_good_policy_stays() {
    let mut map = ConfigMap::new(&policy("good"));
    let process = map.start("");
    in_force(&process, "good").await;
    assert!(process.page("/readyz?verbose").await.contains("\n[+] policy\n"));

    map.swap("version: 1\npolicies: [{name: broken, max_attempts: 0}]\n");
    assert!(process.logged("refused").contains("max_attempts"));
    assert_eq!(deciding(&process).await.0, "good");
    let page = process.page("/readyz?verbose").await;
    assert!(page.starts_with("HTTP/1.1 200 "), "{page}");
    assert!(page.contains("\n[-] policy (the last good one stays)\n    "), "{page}");
    assert!(page.contains("policy.yaml:2:"), "{page}");
    // Whoever may see the port may not see the file.
    assert!(!page.contains("name: broken"), "{page}");
    assert_eq!(process.metric("retryd_policy_last_reload_successful").await, 0);

    // A second file, and a broken one in place of the broken one: each is another refusal.
    fs::write(map.path("more.yaml"), policy("more")).unwrap();
    assert!(process.logged("more than one policy file").contains("`more.yaml`, `policy.yaml`"));
    fs::remove_file(map.path("more.yaml")).unwrap();
    map.swap("half: [");
    process.logged("half: [");

    map.swap(&policy("mended"));
    in_force(&process, "mended").await;
    assert!(process.page("/readyz?verbose").await.contains("\n[+] policy\n"));
    process.metric_is("retryd_policy_last_reload_successful", 1).await;
    assert_ne!(process.metric("retryd_policy_last_reload_success_timestamp_seconds").await, 0);
    // The broken one may be seen once more, when the second file is gone.
    let refused = process.metric(REFUSED).await;
    assert!((3..=4).contains(&refused), "{refused}");
    assert_eq!(u64::try_from(process.lines_with("refused").len()).unwrap(), refused);
}

/// Whoever opens a pipe may wait for ever, and a device may have no end.
#[tokio::test]
async fn what_is_no_file_any_more_is_refused_and_holds_nothing_up() {
    let mut map = ConfigMap::new(&policy("good"));
    let process = map.start("");
    let path = map.path("..data/policy.yaml");
    fs::remove_file(&path).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    process.logged("the path is no file");
    assert_eq!(deciding(&process).await.0, "good");
    fs::remove_file(&path).unwrap();
    symlink("/dev/zero", &path).unwrap();
    map.swap(&policy("mended"));
    in_force(&process, "mended").await;
}

#[test]
fn at_the_start_a_directory_has_exactly_one_file() {
    let folder = TempDir::new().unwrap();
    let started = || {
        let mut start = std::process::Command::new(env!("CARGO_BIN_EXE_retryd"));
        start.args(["serve", "--listen", "192.0.2.1:1", "--insecure", "--policy"]);
        let ended = start.arg(folder.path()).output().unwrap();
        assert_eq!(ended.status.code(), Some(2));
        String::from_utf8(ended.stderr).unwrap()
    };
    assert!(started().contains("the directory has no `*.yaml` or `*.yml` file"));
    fs::write(folder.path().join("a.yaml"), policy("any")).unwrap();
    // It goes on to listen, at an address that no machine has.
    assert!(started().contains("192.0.2.1"));
    fs::write(folder.path().join("b.yml"), policy("any")).unwrap();
    assert!(started().contains("more than one policy file: `a.yaml`, `b.yml`"));
}
