//! A server as a process of its own, and what it has spent.
use std::{
    env, fs,
    io::{BufRead as _, BufReader, Read},
    net::SocketAddr,
    process::{Child, Command, Stdio},
    thread,
};

use prost::Message as _;
use retryd::wire::pb::{self, retry_service_client::RetryServiceClient};
use tonic::transport::{Channel, Endpoint};

use crate::question;

/// What answers.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    /// A stock tonic server that answers a constant: what others are held against.
    Stock,
    /// An h2 server that answers a constant, and batches its writes.
    Raw,
    Retryd,
    /// The same, asked over DecideStream.
    Stream,
    /// The same with something on that is off otherwise.
    With(Extra),
    /// Whatever it is sent, it answers with an empty message: a collector of traces that drops them.
    Collector,
}

/// What is off as retryd is shipped, or what others do to it. `costs.rs` puts it on.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Extra {
    Scrapes,
    DecisionLog,
    Tls,
    /// A collector, and a sampler that takes nothing.
    NoTraces,
    Traces,
}

/// Where a server runs. The client has the first core.
#[derive(Clone, Copy)]
pub(crate) enum Cores {
    /// On the second core alone, with one worker thread.
    One,
    /// On both, with two worker threads.
    Two,
    /// On the client's.
    Clients,
}

pub(crate) const CLIENT_CORE: &str = "0";

/// Sums over the life of a process, and what it has in memory now.
pub(crate) struct Spent {
    pub(crate) cpu_ns: u64,
    /// System calls that write.
    pub(crate) writes: u64,
    pub(crate) resident_kib: u64,
}

pub(crate) struct Process {
    child: Child,
    pub(crate) address: SocketAddr,
    /// Where retryd shows its metrics.
    pub(crate) admin: Option<SocketAddr>,
}

/// Keeps this process, and the threads that it will start, on the first core.
pub(crate) fn pin_client() {
    let own = std::process::id().to_string();
    let pinned =
        Command::new("taskset").args(["-cp", CLIENT_CORE, &own]).stdout(Stdio::null()).status();
    assert!(pinned.unwrap().success(), "cannot choose a core");
}

impl Process {
    pub(crate) fn start(kind: Kind, cores: Cores) -> Process {
        Process::start_with(kind, cores, |_| {})
    }

    /// The same, after `more` has been said.
    pub(crate) fn start_with(kind: Kind, cores: Cores, more: impl FnOnce(&mut Command)) -> Process {
        let own = env::current_exe().unwrap().to_str().unwrap().to_owned();
        // Another build of retryd, such as a profile-guided one.
        let retryd = env::var("RETRYD_BIN").unwrap_or(env!("CARGO_BIN_EXE_retryd").to_owned());
        let (program, arguments): (_, &[&str]) = match kind {
            Kind::Stock => (own, &["serve-stock"]),
            Kind::Raw => (own, &["serve-raw"]),
            Kind::Collector => (own, &["serve-collector"]),
            Kind::Retryd | Kind::Stream | Kind::With(_) => (
                retryd,
                &[
                    "serve",
                    "--listen",
                    "127.0.0.1:0",
                    "--admin-listen",
                    "127.0.0.1:0",
                    "--log",
                    "info",
                ],
            ),
        };
        let cores = match cores {
            Cores::One => "1",
            Cores::Two => "0,1",
            Cores::Clients => CLIENT_CORE,
        };
        let mut command = Command::new("taskset");
        command.args(["-c", cores, &program]).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        more(&mut command);
        let mut child = command.spawn().unwrap();
        let (out, err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let (address, admin) = match kind {
            Kind::Stock | Kind::Raw | Kind::Collector => {
                (first(out, |line| line.parse().ok()), None)
            }
            Kind::Retryd | Kind::Stream | Kind::With(_) => {
                let (mut calls, mut admin) = (None, None);
                first(err, |line| {
                    calls = calls.or(listening(line, "calls"));
                    admin = admin.or(listening(line, "admin"));
                    Some((calls?, admin))
                })
            }
        };
        Process { child, address, admin }
    }

    /// Over a connection of its own.
    pub(crate) async fn check_an_answer(&self) -> usize {
        let endpoint = Endpoint::from_shared(format!("http://{}", self.address)).unwrap();
        check(endpoint.connect().await.unwrap()).await
    }

    pub(crate) fn spent(&self) -> Spent {
        let own = format!("/proc/{}", self.child.id());
        let cpu_of = |task: fs::DirEntry| {
            // Nanoseconds on a core come first.
            let text = fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
            text.split(' ').next().and_then(|spent| spent.parse::<u64>().ok()).unwrap_or(0)
        };
        let tasks = fs::read_dir(format!("{own}/task")).unwrap();
        let io = fs::read_to_string(format!("{own}/io")).unwrap();
        let writes = io.lines().find_map(|line| line.strip_prefix("syscw: "));
        let status = fs::read_to_string(format!("{own}/status")).unwrap();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        Spent {
            cpu_ns: tasks.map(Result::unwrap).map(cpu_of).sum(),
            writes: writes.unwrap().parse().unwrap(),
            // A process that has ended has none.
            resident_kib: resident
                .map_or(0, |kib| kib.trim_end_matches("kB").trim().parse().unwrap()),
        }
    }
}

impl Process {
    /// Lets it end by itself, so that a build that counts writes what it has counted.
    pub(crate) fn stop(mut self) {
        // Not every machine has it as a program, but every shell has it.
        let kill = format!("kill -s TERM {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        assert!(self.child.wait().unwrap().success());
    }
}

/// The load sees frames; here one answer is read as a client reads it. Tells how many bytes it has, framing included.
pub(crate) async fn check(channel: Channel) -> usize {
    let mut client = RetryServiceClient::new(channel);
    let answer = client.decide(question::of_tenant(0)).await.unwrap().into_inner();
    assert_eq!(answer.verdict(), pb::Verdict::Retry);
    assert!(answer.budget.is_some(), "somebody must pay: {answer:?}");
    5 + answer.encoded_len()
}

impl Drop for Process {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// What `read` makes of the first line that it can read. The others are dropped, so that the process never waits.
fn first<T>(from: impl Read + Send + 'static, mut read: impl FnMut(&str) -> Option<T>) -> T {
    let mut lines = BufReader::new(from).lines().map_while(Result::ok);
    let found = lines.by_ref().find_map(|line| read(&line));
    thread::spawn(move || lines.for_each(drop));
    found.expect("the server does not say where it listens")
}

fn listening(line: &str, port: &str) -> Option<SocketAddr> {
    let line: serde_json::Value = serde_json::from_str(line).ok()?;
    (line.get("port")? == port).then_some(())?;
    line.get("listen")?.as_str()?.parse().ok()
}
