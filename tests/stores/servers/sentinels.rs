//! A master and a replica, and three sentinels that watch them.
use std::{
    collections::HashMap,
    fs,
    process::{Child, Command, Stdio},
};

use tempfile::TempDir;

use super::{Flavour, Server, ask, free_port, wait_for};

pub(crate) struct Sentinels {
    pub(crate) master: Server,
    pub(crate) replica: Server,
    sentinels: Vec<Sentinel>,
}

struct Sentinel {
    child: Child,
    port: u16,
    password: Option<String>,
    _folder: TempDir,
}

/// Who asks for a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guard {
    Nobody,
    Servers,
    All,
}

pub(crate) const PASSWORD: &str = "open sesame";

impl Sentinels {
    pub(crate) fn start(flavour: Flavour, guard: Guard) -> Sentinels {
        let server = |options: &[&str]| match guard {
            Guard::Nobody => Server::with(flavour, options),
            Guard::Servers | Guard::All => Server::guarded(flavour, options, PASSWORD),
        };
        let master = server(&[]);
        let replica = server(&["--replicaof", &format!("127.0.0.1 {}", master.port)]);
        wait_for("a replica", || {
            replica.info("replication", "master_link_status").as_deref() == Some("up")
        });
        let sentinels: Vec<Sentinel> =
            (0..3).map(|_| Sentinel::start(flavour, master.port, guard)).collect();
        let group = Sentinels { master, replica, sentinels };
        wait_for("sentinels that know each other", || {
            group.sentinels.iter().all(|sentinel| {
                let counts = |name: &str| sentinel.master().get(name).cloned().unwrap_or_default();
                counts("num-slaves") == "1" && counts("num-other-sentinels") == "2"
            })
        });
        group
    }

    pub(crate) fn url(&self) -> String {
        let ports: Vec<String> =
            self.sentinels.iter().map(|sentinel| format!("127.0.0.1:{}", sentinel.port)).collect();
        format!("redis+sentinel://{}/main", ports.join(","))
    }

    /// Makes the sentinels see that the master is gone, and name the replica.
    pub(crate) fn fail_over(&mut self) {
        self.master.kill();
        let port = self.replica.port.to_string();
        wait_for("a new master", || {
            self.sentinels.iter().all(|sentinel| sentinel.master().get("port") == Some(&port))
        });
    }
}

impl Sentinel {
    fn start(flavour: Flavour, master: u16, guard: Guard) -> Sentinel {
        let folder = tempfile::tempdir().unwrap();
        let port = free_port();
        let mut text = format!(
            "port {port}\nbind 127.0.0.1\nsentinel monitor main 127.0.0.1 {master} 2\n\
             sentinel down-after-milliseconds main 1000\nsentinel failover-timeout main 4000\n"
        );
        if guard != Guard::Nobody {
            text += &format!("sentinel auth-pass main \"{PASSWORD}\"\n");
        }
        let password = (guard == Guard::All).then(|| PASSWORD.to_owned());
        if let Some(password) = &password {
            text += &format!("requirepass \"{password}\"\nsentinel sentinel-pass \"{password}\"\n");
        }
        fs::write(folder.path().join("sentinel.conf"), text).unwrap();
        let child = Command::new(flavour.program())
            .args(["sentinel.conf", "--sentinel"])
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let sentinel = Sentinel { child, port, password, _folder: folder };
        wait_for("a sentinel", || sentinel.ask::<String>(&["PING"]).is_ok());
        sentinel
    }

    fn master(&self) -> HashMap<String, String> {
        self.ask(&["SENTINEL", "MASTER", "main"]).unwrap()
    }

    fn ask<T: redis::FromRedisValue>(&self, command: &[&str]) -> redis::RedisResult<T> {
        ask(self.port, self.password.as_deref(), command)
    }
}

impl Drop for Sentinel {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
