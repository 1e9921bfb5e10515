//! What sharing budgets costs: one process that shares, beside one that does not, and a twin of that one which shows the noise.
//!
//! `cargo bench --profile ci --bench shared` needs `redis-server`. Only ratios mean something, and only while the twin's
//! interval holds 1.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a bench that cannot go on has failed")]
#![allow(clippy::indexing_slicing, clippy::disallowed_methods, reason = "a bench measures")]
use std::{
    fs,
    net::TcpListener,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use retryd::wire::pb::{self, retry_service_client::RetryServiceClient};
use tonic::transport::Channel;

const ROUNDS: usize = 30;
const CALLS: usize = 10_000;
const CONNECTIONS: usize = 4;
const IN_FLIGHT: usize = 25;
/// Half of the calls are of the first one.
const TENANTS: usize = 1_000;

struct Server {
    name: &'static str,
    process: Child,
    clients: Vec<RetryServiceClient<Channel>>,
}

/// One round of one server.
#[derive(Clone, Copy)]
struct Round {
    cpu_us: f64,
    p99_us: f64,
}

#[tokio::main]
async fn main() {
    let store = Started(spawn("redis-server", &["--save", "", "--port"], &[]));
    let url = format!("redis://127.0.0.1:{}", store.0.1);
    let mut servers = Vec::new();
    for (name, more) in
        [("memory", vec![]), ("memory again", vec![]), ("shared", vec!["--store", &url])]
    {
        servers.push(Server::start(name, &more).await);
    }
    for server in &mut servers {
        server.round(1).await;
    }
    let mut rounds = vec![Vec::new(); servers.len()];
    for turn in 0..ROUNDS {
        let mut order: Vec<usize> = (0..servers.len()).collect();
        fastrand::shuffle(&mut order);
        for place in order {
            rounds[place].push(servers[place].round(turn).await);
        }
    }
    println!("{:14} {:>28} {:>28}", "against memory", "server CPU per call", "p99");
    for (server, own) in servers.iter().zip(&rounds).skip(1) {
        let ratios = |read: fn(&Round) -> f64| -> Vec<f64> {
            own.iter().zip(&rounds[0]).map(|(own, base)| read(own) / read(base)).collect()
        };
        let (cpu, p99) = (ratios(|round| round.cpu_us), ratios(|round| round.p99_us));
        println!("{:14} {:>28} {:>28}", server.name, interval(&cpu), interval(&p99));
    }
    let cpu_us = median(rounds[0].iter().map(|round| round.cpu_us).collect());
    println!(
        "memory: {cpu_us:.1} us of server CPU per call, {CALLS} calls a round, {ROUNDS} rounds"
    );
}

impl Server {
    async fn start(name: &'static str, more: &[&str]) -> Server {
        let admin = ["--admin-listen", "127.0.0.1:0"];
        let listen = ["serve", "--log", "error", "--listen"];
        let (process, port) =
            spawn(env!("CARGO_BIN_EXE_retryd"), &listen, &[&admin, more].concat());
        let mut clients = Vec::new();
        while clients.len() < CONNECTIONS {
            match RetryServiceClient::connect(format!("http://127.0.0.1:{port}")).await {
                Ok(client) => clients.push(client),
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
        Server { name, process, clients }
    }

    async fn round(&mut self, turn: usize) -> Round {
        let before = self.cpu_ns();
        let each = CALLS / CONNECTIONS / IN_FLIGHT;
        let mut callers = Vec::new();
        for (connection, client) in self.clients.iter().enumerate() {
            for stream in 0..IN_FLIGHT {
                let mut client = client.clone();
                let first = (turn * CONNECTIONS + connection) * IN_FLIGHT + stream;
                callers.push(tokio::spawn(async move {
                    let mut waits = Vec::with_capacity(each);
                    for call in 0..each {
                        let begun = Instant::now();
                        client.decide(context(first * each + call)).await.unwrap();
                        waits.push(begun.elapsed().as_secs_f64() * 1e6);
                    }
                    waits
                }));
            }
        }
        let mut waits = Vec::with_capacity(CALLS);
        for caller in callers {
            waits.extend(caller.await.unwrap());
        }
        let cpu_us = (self.cpu_ns() - before) as f64 / 1e3 / waits.len() as f64;
        waits.sort_unstable_by(f64::total_cmp);
        Round { cpu_us, p99_us: waits[waits.len() * 99 / 100] }
    }

    /// All threads together, in nanoseconds.
    fn cpu_ns(&self) -> u64 {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.process.id())).unwrap();
        let spent = |task: fs::DirEntry| {
            let text = fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
            text.split(' ').next().and_then(|spent| spent.parse::<u64>().ok()).unwrap_or(0)
        };
        tasks.map(Result::unwrap).map(spent).sum()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// A program and its port, ended with the bench.
struct Started((Child, u16));

impl Drop for Started {
    fn drop(&mut self) {
        self.0.0.kill().ok();
        self.0.0.wait().ok();
    }
}

fn spawn(program: &str, before_port: &[&str], after_port: &[&str]) -> (Child, u16) {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let address =
        if program == "redis-server" { format!("{port}") } else { format!("127.0.0.1:{port}") };
    let child = Command::new(program)
        .args(before_port)
        .arg(address)
        .args(after_port)
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap_or_else(|error| panic!("cannot start `{program}`: {error}"));
    thread::sleep(Duration::from_millis(300));
    (child, port)
}

fn context(number: usize) -> pb::RetryContext {
    let tenant = if number.is_multiple_of(2) { 0 } else { fastrand::usize(..TENANTS) };
    pb::RetryContext {
        tenant: format!("tenant-{tenant}"),
        operation: "op".to_owned(),
        attempts_made: 1,
        body_replayable: true,
        usage: Some(pb::Usage { requests: 4, ..Default::default() }),
        failure: Some(pb::Failure { category: pb::FailureCategory::Connect.into(), status: None }),
        ..Default::default()
    }
}

/// The median, and between what it lies in 95 of 100 draws from the same rounds.
fn interval(ratios: &[f64]) -> String {
    let mut medians: Vec<f64> = (0..2_000)
        .map(|_| {
            median((0..ratios.len()).map(|_| ratios[fastrand::usize(..ratios.len())]).collect())
        })
        .collect();
    medians.sort_unstable_by(f64::total_cmp);
    let (low, high) = (medians[50], medians[1_949]);
    format!("{:.3} ({low:.3} to {high:.3})", median(ratios.to_vec()))
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_unstable_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}
