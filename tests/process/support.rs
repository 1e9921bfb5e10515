//! A retryd process on free loopback ports, and a client that sends raw HTTP/2.
use std::{
    io::{BufRead as _, BufReader},
    net::SocketAddr,
    process::{Child, Command, ExitStatus, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use bytes::Bytes;
use h2::client::SendRequest;
use http::{HeaderMap, Request};
use prost::Message as _;
use retryd::wire::pb::{
    self, budget_service_client::BudgetServiceClient, retry_service_client::RetryServiceClient,
};
use tokio::{net::TcpStream, time::timeout};
use tonic::{Code, Status, transport::Channel};
use tonic_types::StatusExt as _;

/// Long enough for a busy machine; nothing that works takes so long.
pub(crate) const SOON: Duration = Duration::from_secs(20);

pub(crate) const DECIDE: &str = "/retryd.v1.RetryService/Decide";
pub(crate) const DECIDE_STREAM: &str = "/retryd.v1.RetryService/DecideStream";

pub(crate) struct Process {
    child: Child,
    pub(crate) calls: SocketAddr,
    pub(crate) admin: SocketAddr,
    pub(crate) probe: Option<SocketAddr>,
    /// Each line with the time at which it was read.
    log: Arc<Mutex<Vec<(Instant, String)>>>,
    is_read: Arc<AtomicBool>,
}

impl Process {
    pub(crate) fn start(arguments: &[&str]) -> Process {
        Process::start_in(&[], arguments)
    }

    /// The same, with more in its environment.
    pub(crate) fn start_in(environment: &[(&str, &str)], arguments: &[&str]) -> Process {
        Process::begin(environment, arguments, Stdio::inherit())
    }

    /// The same, with another standard output.
    pub(crate) fn start_onto(arguments: &[&str], stdout: impl Into<Stdio>) -> Process {
        Process::begin(&[], arguments, stdout.into())
    }

    fn begin(environment: &[(&str, &str)], arguments: &[&str], stdout: Stdio) -> Process {
        let mut child = Command::new(env!("CARGO_BIN_EXE_retryd"))
            .args(["serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"])
            .args(arguments)
            .envs(environment.iter().copied())
            .stdout(stdout)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let (tell, told) = mpsc::channel();
        let log = Arc::<Mutex<Vec<(Instant, String)>>>::default();
        let kept = Arc::clone(&log);
        let is_read = Arc::new(AtomicBool::new(true));
        let reads = Arc::clone(&is_read);
        // Read to the end, unless a test wants it otherwise.
        thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                if let Some(listening) = listening(&line) {
                    tell.send(listening).ok();
                }
                kept.lock().unwrap().push((Instant::now(), line));
                while !reads.load(Ordering::Relaxed) {
                    thread::sleep(Duration::from_millis(10));
                }
            }
        });
        let wants_probe = arguments.contains(&"--probe-listen");
        let (mut calls, mut admin, mut probe) = (None, None, None);
        while calls.is_none() || admin.is_none() || (wants_probe && probe.is_none()) {
            match told.recv_timeout(SOON).expect("retryd does not say where it listens") {
                (port, address) if port == "calls" => calls = Some(address),
                (port, address) if port == "admin" => admin = Some(address),
                (port, address) if port == "probe" => probe = Some(address),
                _ => {}
            }
        }
        Process { child, calls: calls.unwrap(), admin: admin.unwrap(), probe, log, is_read }
    }

    /// Reads the log from now on, or no more: then its pipe fills up.
    pub(crate) fn read_log(&self, is_read: bool) {
        self.is_read.store(is_read, Ordering::Relaxed);
    }

    pub(crate) fn log_lines(&self) -> usize {
        self.log.lock().unwrap().len()
    }

    pub(crate) fn lines_with(&self, words: &str) -> Vec<(Instant, String)> {
        let log = self.log.lock().unwrap();
        log.iter().filter(|(_, line)| line.contains(words)).cloned().collect()
    }

    /// Waits for a line of the log that has `words` in it.
    pub(crate) fn logged(&self, words: &str) -> String {
        let end = Instant::now() + SOON;
        loop {
            if let Some((_, line)) = self.lines_with(words).into_iter().next() {
                return line;
            }
            assert!(Instant::now() < end, "`{words}` is not in the log");
            thread::sleep(Duration::from_millis(10));
        }
    }

    pub(crate) async fn budgets(&self) -> BudgetServiceClient<Channel> {
        BudgetServiceClient::connect(format!("http://{}", self.calls)).await.unwrap()
    }

    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
    }

    pub(crate) fn exit(&mut self, within: Duration) -> ExitStatus {
        let end = Instant::now() + within;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < end, "retryd did not end within {within:?}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn resident_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
    }

    pub(crate) fn open_files(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.child.id())).unwrap().count()
    }

    pub(crate) async fn client(&self) -> RetryServiceClient<Channel> {
        RetryServiceClient::connect(format!("http://{}", self.calls)).await.unwrap()
    }

    /// A client that answers one question, to see that others are unaffected.
    pub(crate) async fn answers(&self) {
        let decision = self.client().await.decide(context("witness")).await.unwrap();
        assert_eq!(decision.get_ref().verdict(), pb::Verdict::Retry);
    }

    /// What the admin port answers, from the status line on.
    pub(crate) async fn page(&self, path: &str) -> String {
        self.page_as(path, "*/*").await
    }

    /// The same, for a reader that accepts these media types.
    pub(crate) async fn page_as(&self, path: &str, accept: &str) -> String {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let mut stream = TcpStream::connect(self.admin).await.unwrap();
        let head = format!(
            "GET {path} HTTP/1.1\r\nhost: a\r\naccept: {accept}\r\nconnection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        text
    }

    pub(crate) async fn metric(&self, line: &str) -> u64 {
        let text = self.page("/metrics").await;
        let found = text.lines().find_map(|found| found.strip_prefix(line));
        found.unwrap_or_else(|| panic!("no {line} in {text}")).trim().parse().unwrap()
    }

    /// Waits until a metric has a value: the other end of a connection may see its end before it
    /// is counted.
    pub(crate) async fn metric_is(&self, line: &str, expected: u64) {
        self.metric_until(line, |found| found == expected).await;
    }

    pub(crate) async fn metric_reaches(&self, line: &str, least: u64) {
        self.metric_until(line, |found| least <= found).await;
    }

    async fn metric_until(&self, line: &str, wanted: impl Fn(u64) -> bool) {
        let late = Instant::now() + SOON;
        loop {
            let found = self.metric(line).await;
            if wanted(found) {
                return;
            }
            assert!(Instant::now() < late, "{line} stays {found}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn listening(line: &str) -> Option<(String, SocketAddr)> {
    let line: serde_json::Value = serde_json::from_str(line).ok()?;
    let port = line.get("port")?.as_str()?.to_owned();
    Some((port, line.get("listen")?.as_str()?.parse().ok()?))
}

/// A policy file of a test's own.
pub(crate) fn policy_file(name: &str, text: &str) -> String {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Reports so many requests of a tenant. What they earn stays for the interval of the ratio, whereas a
/// floor goes on filling while a test runs.
pub(crate) async fn report(process: &Process, tenant: &str, requests: u64) {
    let usage = Some(pb::Usage { requests, ..Default::default() });
    let entry = pb::TenantUsage { tenant: tenant.to_owned(), operation: "op".to_owned(), usage };
    let request = pb::ReportUsageRequest { usage: vec![entry], ..Default::default() };
    process.budgets().await.report_usage(request).await.unwrap();
}

/// A context that is answered with RETRY, as long as the tenant's budget has something.
pub(crate) fn context(tenant: &str) -> pb::RetryContext {
    pb::RetryContext {
        tenant: tenant.to_owned(),
        operation: "op".to_owned(),
        attempts_made: 1,
        body_replayable: true,
        failure: Some(pb::Failure { category: pb::FailureCategory::Connect.into(), status: None }),
        ..Default::default()
    }
}

/// A message behind its five bytes of gRPC framing.
pub(crate) fn framed(message: &[u8]) -> Vec<u8> {
    frame(0, u32::try_from(message.len()).unwrap(), message)
}

pub(crate) fn frame(compressed: u8, length: u32, message: &[u8]) -> Vec<u8> {
    [&[compressed][..], &length.to_be_bytes(), message].concat()
}

pub(crate) fn encoded(context: &pb::RetryContext) -> Vec<u8> {
    framed(&context.encode_to_vec())
}

/// How a call ended.
#[derive(Debug)]
pub(crate) struct Ending {
    pub(crate) http: u16,
    pub(crate) code: Option<Code>,
    pub(crate) reason: Option<String>,
    pub(crate) fields: Vec<String>,
    pub(crate) pushback: Option<String>,
    pub(crate) body: Vec<u8>,
}

pub(crate) async fn connection(at: SocketAddr) -> SendRequest<Bytes> {
    let stream = TcpStream::connect(at).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let (send, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    send
}

pub(crate) fn grpc(path: &str) -> http::request::Builder {
    Request::post(format!("http://retryd{path}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
}

/// Sends one request with `body`, ends it, and reads the whole answer.
pub(crate) async fn call(
    send: &mut SendRequest<Bytes>,
    request: http::request::Builder,
    body: Vec<u8>,
) -> Result<Ending, h2::Error> {
    let mut ready = send.clone().ready().await?;
    let (response, mut stream) = ready.send_request(request.body(()).unwrap(), false)?;
    // A server may answer, and stop reading, before it has all of the body.
    stream.send_data(body.into(), true).ok();
    let response = timeout(SOON, response).await.expect("no answer in time")?;
    let http = response.status().as_u16();
    let head = response.headers().clone();
    let mut received = response.into_body();
    let mut body = Vec::new();
    while let Some(chunk) = timeout(SOON, received.data()).await.expect("no end in time") {
        let chunk = chunk?;
        received.flow_control().release_capacity(chunk.len())?;
        body.extend_from_slice(&chunk);
    }
    let trailers = received.trailers().await?.unwrap_or_default();
    Ok(ending(http, if trailers.is_empty() { &head } else { &trailers }, body))
}

fn ending(http: u16, headers: &HeaderMap, body: Vec<u8>) -> Ending {
    let status = Status::from_header_map(headers);
    let details = status.as_ref().map(Status::get_error_details);
    let info = details.as_ref().and_then(|details| details.error_info());
    if let Some(info) = info {
        assert_eq!(info.domain, "retryd");
    }
    let bad = details.as_ref().and_then(|details| details.bad_request());
    let violations = bad.map(|bad| bad.field_violations.as_slice()).unwrap_or_default();
    Ending {
        http,
        code: status.as_ref().map(Status::code),
        reason: info.map(|info| info.reason.clone()),
        pushback: headers
            .get("grpc-retry-pushback-ms")
            .map(|value| value.to_str().unwrap().to_owned()),
        fields: violations.iter().map(|violation| violation.field.clone()).collect(),
        body,
    }
}
