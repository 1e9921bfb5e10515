//! Each limit of `serve`: documented as it is, reached, refused as documented, counted, and free again.
use std::{
    process::Command,
    time::{Duration, Instant},
};

use h2::{SendStream, client::ResponseFuture};
use prost::Message as _;
use retryd::wire::pb;
use tokio::time::timeout;
use tonic::{Code, Status, transport::Endpoint};
use tonic_types::StatusExt as _;

use crate::support::{
    DECIDE, DECIDE_STREAM, Ending, Process, SOON, call, connection, context, encoded, framed, grpc,
};

const REPORT: &str = "/retryd.v1.BudgetService/ReportUsage";
const WATCH: &str = "/retryd.v1.BudgetService/WatchBudget";

/// A call whose message has not come.
type HalfOpen = (ResponseFuture, SendStream<bytes::Bytes>);
type Connection = h2::client::SendRequest<bytes::Bytes>;

async fn half_open(connection: &Connection, path: &str) -> HalfOpen {
    let mut ready = connection.clone().ready().await.unwrap();
    ready.send_request(grpc(path).body(()).unwrap(), false).unwrap()
}

/// The ending of a call that is over with its head.
async fn refused(call: HalfOpen) -> Status {
    let response = timeout(SOON, call.0).await.expect("an answer").unwrap();
    assert_eq!(response.headers()["grpc-retry-pushback-ms"], "-1");
    Status::from_header_map(response.headers()).expect("a status")
}

fn assert_overloaded(status: &Status) {
    assert_eq!(status.code(), Code::Unavailable, "{status:?}");
    assert_eq!(status.get_details_error_info().unwrap().reason, "OVERLOADED");
}

async fn in_flight(process: &Process, limit: &str, count: u64) {
    process.metric_is(&format!("retryd_calls_in_flight{{limit=\"{limit}\"}}"), count).await;
}

fn shed(limit: &str) -> String {
    format!("retryd_calls_shed_total{{limit=\"{limit}\"}}")
}

const CONNECTIONS: usize = 100;
const EACH: usize = 100;

async fn ten_thousand(process: &Process) -> Vec<(Connection, Vec<HalfOpen>)> {
    let mut held = Vec::new();
    for _ in 0..CONNECTIONS {
        let connection = connection(process.calls).await;
        let mut calls = Vec::new();
        for _ in 0..EACH {
            calls.push(half_open(&connection, DECIDE).await);
        }
        held.push((connection, calls));
    }
    held
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_half_open_calls_wait_and_shut_nobody_out() {
    let process = Process::start(&["--max-calls", "10000"]);
    process.answers().await;
    let before = process.resident_bytes();
    let held = ten_thousand(&process).await;
    in_flight(&process, "calls", 10_000).await;
    let each = process.resident_bytes().saturating_sub(before) / 10_000;
    println!("{each} resident bytes for each half-open call");
    assert!(each < 16 << 10, "{each} bytes for each half-open call");

    // One more is refused, and whole questions are answered.
    let connection = connection(process.calls).await;
    assert_overloaded(&refused(half_open(&connection, DECIDE).await).await);
    process.answers().await;
    drop(held);
    in_flight(&process, "calls", 0).await;
    process.metric_is(&shed("calls"), 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn overload_is_refused_and_is_over_when_it_is_over() {
    let process = Process::start(&["--max-calls", "1000", "--probe-listen", "127.0.0.1:0"]);
    let held = ten_thousand(&process).await;
    let reached = async {
        while process.metric(&shed("calls")).await < 9_000 {
            // Health on the port for calls, and whole questions, more often than a budget says yes.
            healthy(&process).await;
            process.client().await.decide(context("witness")).await.unwrap();
        }
    };
    timeout(SOON * 3, reached).await.expect("the rest is refused");
    in_flight(&process, "calls", 1_000).await;
    process.metric_is(&shed("calls"), 9_000).await;
    assert_eq!(process.lines_with("limit of calls in flight reached").len(), 1);
    let mut waiting: Vec<_> = held.into_iter().flat_map(|(_, calls)| calls).collect();
    let late = Instant::now() + SOON;
    while waiting.len() != 1_000 {
        assert!(Instant::now() < late, "{} calls wait", waiting.len());
        let mut still = Vec::new();
        for (mut response, body) in waiting {
            match timeout(Duration::ZERO, &mut response).await {
                Ok(response) => {
                    let response = response.unwrap();
                    assert_overloaded(&Status::from_header_map(response.headers()).unwrap());
                }
                Err(_) => still.push((response, body)),
            }
        }
        waiting = still;
    }
    drop(waiting);

    in_flight(&process, "calls", 0).await;
    let connection = connection(process.calls).await;
    let (response, mut body) = half_open(&connection, DECIDE).await;
    in_flight(&process, "calls", 1).await;
    body.send_data(encoded(&context("after")).into(), true).unwrap();
    assert_eq!(timeout(SOON, response).await.unwrap().unwrap().status(), 200);
    process.metric_is(&shed("calls"), 9_000).await;
}

async fn healthy(process: &Process) {
    use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};
    let channel = Endpoint::from_shared(format!("http://{}", process.calls)).unwrap();
    let mut health = HealthClient::new(channel.connect().await.unwrap());
    let answer = health.check(HealthCheckRequest { service: "liveness".to_owned() }).await;
    assert_eq!(answer.unwrap().get_ref().status, 1);
}

#[tokio::test]
async fn streams_have_places_of_their_own() {
    let process = Process::start(&["--max-streams", "2"]);
    let connection = connection(process.calls).await;
    let watched = pb::WatchBudgetRequest { tenant: "t".to_owned(), operation: "o".to_owned() };
    let (watch, mut body) = half_open(&connection, WATCH).await;
    body.send_data(framed(&watched.encode_to_vec()).into(), true).unwrap();
    let watch = timeout(SOON, watch).await.unwrap().unwrap();
    let questions = half_open(&connection, DECIDE_STREAM).await;
    in_flight(&process, "streams", 2).await;

    for path in [WATCH, DECIDE_STREAM, "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"]
    {
        assert_overloaded(&refused(half_open(&connection, path).await).await);
    }
    process.metric_is(&shed("streams"), 3).await;
    process.answers().await;
    // A call that waits is none of them.
    let call = half_open(&connection, DECIDE).await;
    in_flight(&process, "calls", 1).await;
    drop(call);

    drop((watch, body));
    in_flight(&process, "streams", 1).await;
    let again = half_open(&connection, DECIDE_STREAM).await;
    in_flight(&process, "streams", 2).await;
    drop((questions, again));
    in_flight(&process, "streams", 0).await;
    process.metric_is(&shed("streams"), 3).await;
}

#[tokio::test]
async fn budget_calls_have_places_of_their_own() {
    let process = Process::start(&["--max-budget-calls", "1"]);
    let connection = connection(process.calls).await;
    let held = half_open(&connection, REPORT).await;
    in_flight(&process, "budget_calls", 1).await;
    assert_overloaded(&refused(half_open(&connection, REPORT).await).await);
    process.metric_is(&shed("budget_calls"), 1).await;
    // Whole ones are answered, and other calls may wait.
    crate::support::report(&process, "tenant", 1).await;
    let call = half_open(&connection, DECIDE).await;
    in_flight(&process, "calls", 1).await;

    drop((held, call));
    in_flight(&process, "budget_calls", 0).await;
    let _again = half_open(&connection, REPORT).await;
    in_flight(&process, "budget_calls", 1).await;
}

/// A question of so many bytes, which differ from a usual one by the length of a name alone.
fn question_of(bytes: usize) -> Vec<u8> {
    let longest = "x".repeat(bytes);
    let operations = (0..bytes).rev().map(|length| longest[..length].to_owned());
    let questions = operations.map(|operation| pb::RetryContext { operation, ..context("t") });
    framed(&questions.map(|it| it.encode_to_vec()).find(|it| it.len() == bytes).unwrap())
}

async fn ask(process: &Process, path: &str, message: Vec<u8>) -> Ending {
    call(&mut connection(process.calls).await, grpc(path), message).await.unwrap()
}

#[tokio::test]
async fn messages_are_as_large_as_the_flags_say() {
    let flags = ["--max-context-bytes", "1024", "--max-report-bytes", "2048"];
    let process = Process::start(&[&flags[..], &["--max-report-entries", "2"]].concat());
    let too_large = async || {
        process.metric("retryd_requests_refused_total{reason=\"MESSAGE_TOO_LARGE\"}").await
    };

    // A name that is too long: the message was read.
    let read = ask(&process, DECIDE, question_of(1024)).await;
    assert_eq!(read.reason.as_deref(), Some("CONTEXT_INVALID"));
    for path in [DECIDE, DECIDE_STREAM] {
        let refused = ask(&process, path, question_of(1025)).await;
        assert_eq!(refused.code, Some(Code::ResourceExhausted));
        assert_eq!(refused.reason.as_deref(), Some("MESSAGE_TOO_LARGE"));
    }
    assert_eq!(too_large().await, 2);

    let report = |entries: usize, name: usize| {
        let entry = pb::TenantUsage {
            tenant: "t".to_owned(),
            operation: "o".repeat(name),
            usage: Some(pb::Usage { requests: 1, ..Default::default() }),
        };
        let usage = vec![entry; entries];
        framed(&pb::ReportUsageRequest { usage, ..Default::default() }.encode_to_vec())
    };
    assert_eq!(ask(&process, REPORT, report(2, 200)).await.code, Some(Code::Ok));
    let entries = ask(&process, REPORT, report(3, 200)).await;
    assert_eq!(entries.code, Some(Code::InvalidArgument));
    assert_eq!(
        (entries.reason.as_deref(), &entries.fields[..]),
        (Some("CONTEXT_INVALID"), &["usage".to_owned()][..])
    );
    let bytes = ask(&process, REPORT, report(20, 200)).await;
    assert_eq!(bytes.reason.as_deref(), Some("MESSAGE_TOO_LARGE"));
    assert_eq!(bytes.pushback, None, "it is the caller's to send less");
    assert_eq!(too_large().await, 3);
}

/// The rows of docs/limits.md that name a flag: the flag, its variable, its default and its range.
fn documented() -> Vec<[String; 4]> {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/limits.md"));
    let rows = text.unwrap();
    let cells = |row: &str| row.split('|').map(|cell| cell.trim().replace('`', "")).collect();
    let rows = rows.lines().filter(|row| row.starts_with("| `--")).map(cells);
    rows.map(|cells: Vec<String>| std::array::from_fn(|place| cells[place + 1].clone())).collect()
}

fn serve(arguments: &[&str]) -> (Option<i32>, String) {
    let ended = Command::new(env!("CARGO_BIN_EXE_retryd")).arg("serve").args(arguments).output();
    let ended = ended.unwrap();
    (ended.status.code(), String::from_utf8([ended.stdout, ended.stderr].concat()).unwrap())
}

#[test]
fn the_table_of_limits_says_what_the_flags_say() {
    let (_, help) = serve(&["--help"]);
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    let flags: Vec<String> = help.split(" --").map(|flag| format!("--{flag}")).collect();
    let documented = documented();
    for [flag, variable, default, range] in &documented {
        let told = flags
            .iter()
            .find(|told| told.starts_with(&format!("{flag} <")))
            .unwrap_or_else(|| panic!("no {flag} in {help}"));
        assert!(told.contains(&format!("[env: {variable}=]")), "{flag}: {told}");
        assert!(told.contains(&format!("[default: {default}]")), "{flag}: {told}");
        let (least, most) = range.split_once(" to ").unwrap();
        assert!(told.contains(&format!("{least} to {most}")), "{flag}: {told}");
        for beyond in [least.parse::<u64>().unwrap() - 1, most.parse::<u64>().unwrap() + 1] {
            let (code, error) = serve(&[flag, &beyond.to_string()]);
            assert_eq!(code, Some(2), "{flag} {beyond}: {error}");
            assert!(error.contains(&format!("{least}..={most}")), "{flag} {beyond}: {error}");
        }
        let word = variable.trim_start_matches("RETRYD_").to_lowercase().replace('_', "-");
        assert_eq!(&format!("--{word}"), flag);
    }
    // No limit of callers goes undocumented. How many balances there are is told with the budgets.
    let limits = flags.iter().filter_map(|told| told.split_once(" <"));
    let limits = limits.map(|(flag, _)| flag).filter(|flag| flag.starts_with("--max-"));
    let missing: Vec<&str> = limits
        .filter(|flag| *flag != "--max-balances")
        .filter(|flag| documented.iter().all(|[documented, ..]| documented != flag))
        .collect();
    assert_eq!(missing, [""; 0]);
    assert_eq!(documented.len(), 9);
}
