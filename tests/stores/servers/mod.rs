//! Real servers on free loopback ports, each with a folder of its own; they end with their values.
#![allow(dead_code, reason = "not every test uses everything")]
mod certificates;
mod cluster;
mod sentinels;

use std::{
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

pub(crate) use certificates::Certificates;
pub(crate) use cluster::{Cluster, Moving};
use redis::IntoConnectionInfo as _;
pub(crate) use sentinels::{Guard, PASSWORD, Sentinels};
use tempfile::TempDir;

/// Long enough for a busy machine; nothing that works takes so long.
pub(crate) const SOON: Duration = Duration::from_secs(60);

/// What is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flavour {
    Redis7,
    Redis8,
    Valkey8,
}

impl Flavour {
    pub(crate) const ALL: [Flavour; 3] = [Flavour::Redis7, Flavour::Redis8, Flavour::Valkey8];

    fn program(self) -> PathBuf {
        let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/tools/bin");
        match self {
            Flavour::Redis7 => "redis-server".into(),
            Flavour::Redis8 => tools.join("redis-server-8"),
            Flavour::Valkey8 => "valkey-server".into(),
        }
    }
}

/// One server.
pub(crate) struct Server {
    child: Child,
    flavour: Flavour,
    folder: TempDir,
    options: Vec<String>,
    environment: Vec<(String, String)>,
    tls: bool,
    password: Option<String>,
    pub(crate) port: u16,
}

impl Server {
    /// A server with nothing in it.
    pub(crate) fn start(flavour: Flavour) -> Server {
        Server::with(flavour, &[])
    }

    /// The same with options, such as `["--maxmemory", "2mb"]`.
    pub(crate) fn with(flavour: Flavour, options: &[&str]) -> Server {
        Server::build(flavour, options, None, None, Vec::new())
    }

    /// The same in an environment of its own, such as one with another clock.
    pub(crate) fn with_environment(flavour: Flavour, environment: Vec<(String, String)>) -> Server {
        Server::build(flavour, &[], None, None, environment)
    }

    /// The same, for those who know the password.
    pub(crate) fn guarded(flavour: Flavour, options: &[&str], password: &str) -> Server {
        let mut options = options.to_vec();
        options.extend(["--requirepass", password, "--masterauth", password]);
        Server::build(flavour, &options, None, Some(password), Vec::new())
    }

    /// A server that speaks nothing but TLS, and wants a password.
    pub(crate) fn secured(flavour: Flavour, certificates: &Certificates, password: &str) -> Server {
        let options = ["--requirepass", password];
        Server::build(flavour, &options, Some(certificates), Some(password), Vec::new())
    }

    fn build(
        flavour: Flavour,
        options: &[&str],
        certificates: Option<&Certificates>,
        password: Option<&str>,
        environment: Vec<(String, String)>,
    ) -> Server {
        let folder = tempfile::tempdir().unwrap();
        let port = free_port();
        let mut options: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
        let port_option = if certificates.is_some() { "--tls-port" } else { "--port" };
        options.extend([port_option.to_owned(), port.to_string()]);
        if let Some(certificates) = certificates {
            options.extend(certificates.options());
        }
        let child = run(flavour, folder.path(), &options, &environment);
        let server = Server {
            child,
            flavour,
            folder,
            options,
            environment,
            tls: certificates.is_some(),
            password: password.map(str::to_owned),
            port,
        };
        server.wait_until_up();
        server
    }

    pub(crate) fn url(&self) -> String {
        let scheme = if self.tls { "rediss" } else { "redis" };
        format!("{scheme}://127.0.0.1:{}", self.port)
    }

    /// What the server answers, once.
    pub(crate) fn ask<T: redis::FromRedisValue>(&self, command: &[&str]) -> T {
        self.try_ask(command).unwrap_or_else(|error| panic!("{command:?}: {error}"))
    }

    pub(crate) fn try_ask<T: redis::FromRedisValue>(
        &self,
        command: &[&str],
    ) -> redis::RedisResult<T> {
        assert!(!self.tls, "ask by a client that knows the certificates");
        ask(self.port, self.password.as_deref(), command)
    }

    /// All keys.
    pub(crate) fn keys(&self) -> Vec<String> {
        self.ask(&["KEYS", "*"])
    }

    /// What one line of `INFO` says, such as `calls=3,...` of `cmdstat_evalsha`.
    pub(crate) fn info(&self, section: &str, line: &str) -> Option<String> {
        let text: String = self.ask(&["INFO", section]);
        let start = format!("{line}:");
        text.lines().find_map(|row| row.strip_prefix(&start)).map(|row| row.trim().to_owned())
    }

    /// Holds the process as it is.
    pub(crate) fn freeze(&self) {
        signal(self.child.id(), "STOP");
    }

    /// Lets it go on.
    pub(crate) fn thaw(&self) {
        signal(self.child.id(), "CONT");
    }

    /// Ends it without warning.
    pub(crate) fn kill(&mut self) {
        self.child.kill().ok();
        self.child.wait().unwrap();
    }

    /// Starts it again at the same port, with nothing in it.
    pub(crate) fn start_empty(&mut self) {
        self.child = run(self.flavour, self.folder.path(), &self.options, &self.environment);
        self.wait_until_up();
    }

    fn wait_until_up(&self) {
        if self.tls {
            wait_for("a TLS port", || {
                std::net::TcpStream::connect(("127.0.0.1", self.port)).is_ok()
            });
        } else {
            wait_for("a server", || self.try_ask::<String>(&["PING"]).is_ok());
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn run(
    flavour: Flavour,
    folder: &Path,
    options: &[String],
    environment: &[(String, String)],
) -> Child {
    let program = flavour.program();
    let mut command = Command::new(&program);
    if !options.iter().any(|option| option == "--port") {
        command.args(["--port", "0"]);
    }
    command
        .args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--loglevel", "warning"])
        .args(options)
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .current_dir(folder)
        .stdout(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| {
            panic!("`{}`: {error}; `tests/run tools` installs it", program.display())
        })
}

fn ask<T: redis::FromRedisValue>(
    port: u16,
    password: Option<&str>,
    command: &[&str],
) -> redis::RedisResult<T> {
    let mut session = redis::RedisConnectionInfo::default();
    if let Some(password) = password {
        session = session.set_password(password);
    }
    let info = ("127.0.0.1", port).into_connection_info()?.set_redis_settings(session);
    let client = redis::Client::open(info)?;
    let mut connection = client.get_connection_with_timeout(SOON)?;
    let [name, arguments @ ..] = command else { panic!("no command") };
    redis::cmd(name).arg(arguments).query(&mut connection)
}

fn signal(process: u32, name: &str) {
    let done = Command::new("kill").args(["-s", name, &process.to_string()]).status().unwrap();
    assert!(done.success());
}

/// A port that nobody listens at. Given out once: a server may take a while to take it.
pub(crate) fn free_port() -> u16 {
    static GIVEN: std::sync::Mutex<Vec<u16>> = std::sync::Mutex::new(Vec::new());
    let mut given = GIVEN.lock().unwrap();
    loop {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        if !given.contains(&port) {
            given.push(port);
            return port;
        }
    }
}

pub(crate) fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < SOON, "{what}: not within {SOON:?}");
        thread::sleep(Duration::from_millis(10));
    }
}
