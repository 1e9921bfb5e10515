//! Spans of calls, as a collector of its own gets them.
use std::{
    io::{BufRead as _, BufReader},
    net::TcpListener,
    path::Path,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use tonic::Code;

use crate::support::{
    DECIDE, DECIDE_STREAM, Process, SOON, call, connection, context, encoded, grpc,
};

const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

/// tests/process/collector.py, until it is dropped.
struct Collector {
    child: Child,
    endpoint: String,
    spans: Arc<Mutex<Vec<Value>>>,
}

impl Collector {
    fn start() -> Collector {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut child = Command::new(root.join("target/tools/venv/bin/python"))
            .arg(root.join("tests/process/collector.py"))
            .stdout(Stdio::piped())
            .spawn()
            .expect("Python with the packages of tests/tools: `tests/run tools` installs it");
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let port = lines.next().expect("the port").unwrap();
        let spans = Arc::<Mutex<Vec<Value>>>::default();
        let kept = Arc::clone(&spans);
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                kept.lock().unwrap().push(serde_json::from_str(&line).unwrap());
            }
        });
        Collector { child, endpoint: format!("http://127.0.0.1:{port}"), spans }
    }

    /// A retryd that sends its spans here, soon.
    fn traced(&self, environment: &[(&str, &str)], arguments: &[&str]) -> Process {
        let ours = [(ENDPOINT, &*self.endpoint), ("OTEL_BSP_SCHEDULE_DELAY", "50")];
        Process::start_in(&[&ours, environment].concat(), arguments)
    }

    fn spans(&self) -> Vec<Value> {
        self.spans.lock().unwrap().clone()
    }

    /// Waits for so many spans, and returns all that came.
    async fn until(&self, count: usize) -> Vec<Value> {
        let came = async {
            while self.spans().len() < count {
                sleep(Duration::from_millis(10)).await;
            }
        };
        let came = timeout(SOON, came).await;
        came.unwrap_or_else(|_| panic!("never {count} spans, but {:#?}", self.spans()));
        self.spans()
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn parent(flags: &str) -> String {
    format!("00-{TRACE}-{PARENT}-{flags}")
}

/// A call with a caller's span, or without.
async fn ask(
    process: &Process,
    path: &str,
    headers: &[(&str, &str)],
    message: Vec<u8>,
) -> Option<Code> {
    let mut request = grpc(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    call(&mut connection(process.calls).await, request, message).await.unwrap().code
}

fn question() -> Vec<u8> {
    encoded(&context("a-tenant-of-this-test"))
}

#[tokio::test]
async fn a_sampled_decide_is_one_span_with_its_decision() {
    let collector = Collector::start();
    let process = collector.traced(&[], &[]);
    let sampled = [("traceparent", &*parent("01")), ("tracestate", "a=1,b=2")];
    // From bytes to bytes, and through the routes.
    assert_eq!(ask(&process, DECIDE, &sampled, question()).await, Some(Code::Ok));
    let routed = [&sampled[..], &[("grpc-encoding", "identity")]].concat();
    assert_eq!(ask(&process, DECIDE, &routed, question()).await, Some(Code::Ok));
    let body = retryd::wire::pb::RetryContext { body_replayable: false, ..context("another") };
    assert_eq!(ask(&process, DECIDE, &sampled, encoded(&body)).await, Some(Code::Ok));

    let spans = collector.until(3).await;
    for (span, (verdict, reason)) in spans.iter().zip([
        ("RETRY", "RETRYABLE"),
        ("RETRY", "RETRYABLE"),
        ("DO_NOT_RETRY", "BODY_NOT_REPLAYABLE"),
    ]) {
        assert_eq!(span["name"], "retryd.v1.RetryService/Decide");
        assert_eq!(span["kind"], "SPAN_KIND_SERVER");
        assert_eq!((&span["trace"], &span["parent"]), (&json!(TRACE), &json!(PARENT)));
        assert_eq!(span["state"], "a=1,b=2");
        assert_eq!(span["status"], "STATUS_CODE_UNSET");
        assert!(0 < span["nanoseconds"].as_i64().unwrap());
        // These and no others: no name of a tenant or an operation.
        let expected = json!({
            "rpc.system.name": "grpc",
            "rpc.method": "retryd.v1.RetryService/Decide",
            "rpc.response.status_code": "OK",
            "retryd.verdict": verdict,
            "retryd.reason": reason,
            "retryd.policy": "default",
        });
        assert_eq!(span["attributes"], expected);
        assert_eq!(span["resource"]["service.name"], "retryd");
        assert_eq!(span["resource"]["service.version"], env!("CARGO_PKG_VERSION"));
    }
    let text = serde_json::to_string(&spans).unwrap();
    assert!(!text.contains("a-tenant-of-this-test") && !text.contains("another"), "{text}");
    process.metric_is("retryd_spans_total{outcome=\"exported\"}", 3).await;
}

/// Asks with a sampled parent until its span comes: what was asked before has come by then, or never
/// will.
async fn spans_before_a_last_one(collector: &Collector, process: &Process) -> Vec<Value> {
    let last = format!("00-{}-{PARENT}-01", "f".repeat(32));
    ask(process, DECIDE, &[("traceparent", &last)], question()).await;
    let is_last = |span: &Value| span["trace"] == "f".repeat(32);
    let end = Instant::now() + SOON;
    while !collector.spans().iter().any(is_last) {
        assert!(Instant::now() < end, "no span came: {:#?}", collector.spans());
        sleep(Duration::from_millis(10)).await;
    }
    collector.spans().into_iter().filter(|span| !is_last(span)).collect()
}

#[tokio::test]
async fn an_unsampled_parent_makes_no_span_and_neither_does_health() {
    let collector = Collector::start();
    let process = collector.traced(&[], &[]);
    for path in [DECIDE, "/retryd.v1.BudgetService/GetBudget"] {
        ask(&process, path, &[("traceparent", &parent("00"))], question()).await;
    }
    let sampled = [("traceparent", &*parent("01"))];
    let check = "/grpc.health.v1.Health/Check";
    assert_eq!(ask(&process, check, &sampled, vec![0; 5]).await, Some(Code::Ok));
    let unknown = "/retryd.v1.RetryService/Guess";
    assert_eq!(ask(&process, unknown, &sampled, vec![0; 5]).await, Some(Code::Unimplemented));
    assert_eq!(spans_before_a_last_one(&collector, &process).await, [json!(null); 0]);
}

#[tokio::test]
async fn without_a_parent_the_sampler_says() {
    for (sampler, argument, expected) in [
        ("", "", 2),
        ("parentbased_always_on", "", 2),
        ("parentbased_always_off", "", 0),
        ("parentbased_traceidratio", "0", 0),
        ("traceidratio", "1", 2),
    ] {
        let collector = Collector::start();
        let process = collector.traced(
            &[
                ("OTEL_TRACES_SAMPLER", sampler),
                ("OTEL_TRACES_SAMPLER_ARG", argument),
                ("OTEL_SERVICE_NAME", "shop"),
                ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test"),
            ],
            &[],
        );
        ask(&process, DECIDE, &[], question()).await;
        // What cannot be read is none.
        ask(&process, DECIDE, &[("traceparent", "00-zz-zz-00")], question()).await;
        let spans = spans_before_a_last_one(&collector, &process).await;
        assert_eq!(spans.len(), expected, "{sampler}: {spans:#?}");
        for span in spans {
            assert_eq!(span["parent"], "");
            assert_eq!(span["resource"]["service.name"], "shop");
            assert_eq!(span["resource"]["deployment.environment.name"], "test");
        }
    }
}

#[tokio::test]
async fn every_rpc_has_its_span_and_every_ending_its_status() {
    let collector = Collector::start();
    let process = collector.traced(&[], &["--max-budget-calls", "1"]);
    let sampled = [("traceparent", &*parent("01"))];
    let mut expected = Vec::new();
    let mut came = |name: &str, code: &str, is_fault: bool| {
        expected.push((name.to_owned(), code.to_owned(), is_fault));
    };
    for method in ["ReportUsage", "AcquireRetries", "ReleaseRetries", "GetBudget", "WatchBudget"] {
        let path = format!("/retryd.v1.BudgetService/{method}");
        // Without a name.
        assert_eq!(ask(&process, &path, &sampled, vec![0; 5]).await, Some(Code::InvalidArgument));
        came(&path, "INVALID_ARGUMENT", false);
    }
    let list = "/retryd.v1.BudgetService/ListBudgets";
    assert_eq!(ask(&process, list, &sampled, vec![0; 5]).await, Some(Code::Ok));
    came(list, "OK", false);
    assert_eq!(ask(&process, DECIDE_STREAM, &sampled, question()).await, Some(Code::Ok));
    came(DECIDE_STREAM, "OK", false);
    let bad = vec![0, 0, 0, 0, 1, 0xff];
    assert_eq!(ask(&process, DECIDE, &sampled, bad).await, Some(Code::InvalidArgument));
    came(DECIDE, "INVALID_ARGUMENT", false);
    let late = [sampled[0], ("grpc-timeout", "0m")];
    assert_eq!(ask(&process, DECIDE, &late, question()).await, Some(Code::DeadlineExceeded));
    came(DECIDE, "DEADLINE_EXCEEDED", true);
    let large = vec![0, 0xff, 0xff, 0xff, 0xff];
    assert_eq!(ask(&process, DECIDE, &sampled, large).await, Some(Code::ResourceExhausted));
    came(DECIDE, "RESOURCE_EXHAUSTED", false);

    // Given up by its caller, and refused.
    let connection = connection(process.calls).await;
    let report = "/retryd.v1.BudgetService/ReportUsage";
    let open = async |path| {
        let request = grpc(path).header("traceparent", parent("01")).body(()).unwrap();
        connection.clone().ready().await.unwrap().send_request(request, false).unwrap()
    };
    let (answers, mut questions) = open(DECIDE_STREAM).await;
    questions.send_data(question().into(), false).unwrap();
    let mut answers = timeout(SOON, answers).await.unwrap().unwrap().into_body();
    timeout(SOON, answers.data()).await.unwrap().unwrap().unwrap();
    drop((answers, questions));
    came(DECIDE_STREAM, "CANCELLED", false);
    let _held = open(report).await;
    process.metric_reaches("retryd_calls_in_flight{limit=\"budget_calls\"}", 1).await;
    let (refused, _body) = open(report).await;
    assert_eq!(timeout(SOON, refused).await.unwrap().unwrap().headers()["grpc-status"], "14");
    came(report, "UNAVAILABLE", true);

    let spans = collector.until(expected.len()).await;
    for (name, code, is_fault) in &expected {
        let is_it = |span: &&Value| {
            span["name"] == name[1..] && span["attributes"]["rpc.response.status_code"] == **code
        };
        let span = spans.iter().find(is_it).unwrap_or_else(|| panic!("{name} {code}: {spans:#?}"));
        let status = if *is_fault { "STATUS_CODE_ERROR" } else { "STATUS_CODE_UNSET" };
        assert_eq!(span["status"], status, "{name} {code}");
        let error = if *is_fault { json!(code) } else { Value::Null };
        assert_eq!(span["attributes"]["error.type"], error, "{name} {code}");
    }
    assert_eq!(spans.len(), expected.len(), "{spans:#?}");
}

#[tokio::test]
async fn what_waits_is_sent_when_the_process_ends() {
    let collector = Collector::start();
    let slow = [("OTEL_BSP_SCHEDULE_DELAY", "600000")];
    let mut process = collector.traced(&slow, &["--drain-delay", "0s"]);
    ask(&process, DECIDE, &[("traceparent", &parent("01"))], question()).await;
    assert_eq!(collector.spans().len(), 0);
    process.signal("TERM");
    assert_eq!(process.exit(SOON).code(), Some(0));
    collector.until(1).await;
}

/// One call after the other on one connection.
async fn many_calls(process: &Process, count: usize) {
    let mut send: h2::client::SendRequest<Bytes> = connection(process.calls).await;
    for _ in 0..count {
        let request = grpc(DECIDE).header("traceparent", parent("01"));
        let ending = call(&mut send, request, question()).await.unwrap();
        assert_eq!(ending.code, Some(Code::Ok));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collector_that_never_answers_slows_no_call_and_no_end() {
    // It takes connections, as far as the system does that by itself, and reads nothing.
    let dead = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", dead.local_addr().unwrap());
    let environment = [
        (ENDPOINT, &*endpoint),
        ("OTEL_BSP_SCHEDULE_DELAY", "50"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "100"),
    ];
    let drain = ["--drain-delay", "0s", "--drain-timeout", "4s"];
    let mut process = Process::start_in(&environment, &drain);
    many_calls(&process, 1000).await;
    // What fits the queue waits, and the rest is gone.
    process.metric_is("retryd_spans_total{outcome=\"dropped\"}", 900).await;
    assert_eq!(process.metric("retryd_spans_total{outcome=\"exported\"}").await, 0);

    let signalled = Instant::now();
    process.signal("TERM");
    assert_eq!(process.exit(SOON).code(), Some(0));
    let took = signalled.elapsed();
    assert!(took < Duration::from_secs(8), "4 s were allowed, it took {took:?}");
}

#[tokio::test]
async fn a_second_signal_does_not_wait_for_a_collector() {
    let dead = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", dead.local_addr().unwrap());
    let environment = [(ENDPOINT, &*endpoint), ("OTEL_BSP_SCHEDULE_DELAY", "50")];
    let mut process = Process::start_in(&environment, &["--drain-delay", "20s"]);
    many_calls(&process, 10).await;
    process.signal("TERM");
    process.logged("asked to stop");
    process.signal("TERM");
    // The library by itself would wait for five seconds.
    assert_eq!(process.exit(Duration::from_secs(4)).code(), Some(130));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collector_that_is_not_there_is_told_once() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let endpoint = format!("http://{nobody}");
    let environment = [(ENDPOINT, &*endpoint), ("OTEL_BSP_SCHEDULE_DELAY", "50")];
    let process = Process::start_in(&environment, &[]);
    let since = Instant::now();
    // Many exports have failed.
    while process.metric("retryd_spans_total{outcome=\"failed\"}").await < 100 {
        assert!(since.elapsed() < SOON);
        many_calls(&process, 10).await;
        sleep(Duration::from_millis(100)).await;
    }
    let told = process.lines_with("traces cannot be exported");
    let times_ten_seconds = usize::try_from(since.elapsed().as_secs() / 10).unwrap();
    assert!((1..=1 + times_ten_seconds).contains(&told.len()), "{told:?}");
}

#[tokio::test]
async fn switched_off_it_connects_to_nobody() {
    let collector = TcpListener::bind("127.0.0.1:0").unwrap();
    collector.set_nonblocking(true).unwrap();
    let endpoint = format!("http://{}", collector.local_addr().unwrap());
    for environment in [
        &[(ENDPOINT, &*endpoint), ("OTEL_SDK_DISABLED", "true")][..],
        &[(ENDPOINT, &*endpoint), ("OTEL_TRACES_EXPORTER", "none")],
        // No endpoint, but everything else.
        &[(ENDPOINT, ""), ("OTEL_SERVICE_NAME", "shop"), ("OTEL_TRACES_SAMPLER", "always_on")],
    ] {
        let mut process = Process::start_in(environment, &["--drain-delay", "0s"]);
        many_calls(&process, 10).await;
        process.signal("TERM");
        assert_eq!(process.exit(SOON).code(), Some(0));
        assert!(process.lines_with("sampled calls are traced").is_empty());
        let error = collector.accept().unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
    }
}

#[test]
fn a_variable_that_makes_no_sense_is_named() {
    for (variable, value) in [
        ("OTEL_TRACES_SAMPLER", "sometimes"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "not a url"),
    ] {
        let ended = Command::new(env!("CARGO_BIN_EXE_retryd"))
            .args(["serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"])
            .env(ENDPOINT, "http://127.0.0.1:4317")
            .env(variable, value)
            .output()
            .unwrap();
        let error = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(2), "{variable}: {error}");
        let named = if variable == ENDPOINT { "traces" } else { variable };
        assert!(error.contains(named), "{variable}: {error}");
    }
}
