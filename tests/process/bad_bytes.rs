//! Bad input on the wire: a clear error or a closed socket within its limit, nothing charged, and
//! other callers unaffected.
use std::time::Duration;

use retryd::wire::pb;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::{Instant, timeout},
};
use tonic::Code;

use crate::support::{
    DECIDE, DECIDE_STREAM, Ending, Process, SOON, call, connection, context, encoded, frame,
    framed, grpc,
};

const REPORT_USAGE: &str = "/retryd.v1.BudgetService/ReportUsage";

async fn decide(process: &Process, body: Vec<u8>) -> Ending {
    call(&mut connection(process.calls).await, grpc(DECIDE), body).await.unwrap()
}

#[track_caller]
fn refused(ending: &Ending, code: Code, reason: &str) {
    assert_eq!((ending.http, ending.code), (200, Some(code)), "{ending:?}");
    assert_eq!(ending.reason.as_deref(), Some(reason), "{ending:?}");
}

#[tokio::test]
async fn bytes_that_are_no_context() {
    let process = Process::start(&[]);
    let whole = encoded(&context("t"));
    let mut broken_utf8 = context("t");
    broken_utf8.operation = "oooo".to_owned();
    let mut broken_utf8 = encoded(&broken_utf8);
    let place = broken_utf8.windows(4).position(|four| four == b"oooo").unwrap();
    broken_utf8[place] = 0xff;
    for (what, body) in [
        ("broken UTF-8", broken_utf8),
        ("a field cut short", framed(&whole[5..whole.len() - 1])),
        ("a wrong wire type", framed(&[0x0d, 1, 2, 3, 4])),
        ("a length beyond the message", framed(&[0x0a, 0x7f, b'x'])),
        ("garbage", framed(&[0xff; 40])),
    ] {
        let ending = decide(&process, body).await;
        println!("{what}");
        refused(&ending, Code::InvalidArgument, "NOT_PROTOBUF");
    }
    process.metric_is("retryd_requests_refused_total{reason=\"NOT_PROTOBUF\"}", 5).await;
    process.answers().await;
}

#[tokio::test]
async fn a_message_that_is_cut_ends_in_an_error() {
    let process = Process::start(&[]);
    let whole = encoded(&context("t"));
    for length in [0, 1, 4, 5, whole.len() - 1] {
        let ending = decide(&process, whole[..length].to_vec()).await;
        assert_ne!(ending.code, Some(Code::Ok), "{length}: {ending:?}");
        assert!(ending.body.is_empty(), "{length}: {ending:?}");
    }
    process.answers().await;
}

#[tokio::test]
async fn every_violation_in_one_answer() {
    let process = Process::start(&[]);
    let wrong = pb::RetryContext { operation: "op".to_owned(), ..Default::default() };
    let ending = decide(&process, encoded(&wrong)).await;
    refused(&ending, Code::InvalidArgument, "CONTEXT_INVALID");
    assert_eq!(ending.fields, ["tenant", "attempts_made", "failure"]);
}

/// Reflection is asked for a name or two, on a stream that may stay open.
#[tokio::test]
async fn a_question_to_reflection_is_small() {
    let process = Process::start(&[]);
    for version in ["v1", "v1alpha"] {
        let path = format!("/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo");
        let mut send = connection(process.calls).await.ready().await.unwrap();
        let request = grpc(&path).body(()).unwrap();
        let (response, mut question) = send.send_request(request, false).unwrap();
        // Declared, and the stream stays open: nothing is kept for what may follow.
        question.send_data(frame(0, 1 << 20, b"x").into(), false).unwrap();
        let mut body = timeout(SOON, response).await.unwrap().unwrap().into_body();
        assert!(timeout(SOON, body.data()).await.expect("still waiting for more").is_none());
    }
    process.answers().await;
}

/// B42: a number that this version does not know is counted, whatever becomes of the question.
#[tokio::test]
async fn unknown_enum_numbers_are_counted() {
    let process = Process::start(&[]);
    let unknown = |category, evidence| {
        let failure = Some(pb::Failure { category, status: None });
        encoded(&pb::RetryContext { failure, evidence, ..context("t") })
    };
    assert_eq!(decide(&process, unknown(99, 42)).await.code, Some(Code::Ok));
    refused(&decide(&process, unknown(19, 0)).await, Code::InvalidArgument, "CONTEXT_INVALID");
    process.metric_is("retryd_unknown_enum_values_total", 3).await;
}

#[tokio::test]
async fn too_large() {
    let process = Process::start(&[]);
    let before = process.resident_bytes();
    let mut large = context("t");
    large.hint = Some(pb::ServerHint { date_header: "x".repeat(16 * 1024), ..Default::default() });
    let whole = encoded(&large);
    refused(&decide(&process, whole).await, Code::ResourceExhausted, "MESSAGE_TOO_LARGE");
    // Declared, and never sent.
    for length in [16 * 1024 + 1, 1 << 20, u32::MAX] {
        let ending = decide(&process, frame(0, length, b"x")).await;
        refused(&ending, Code::ResourceExhausted, "MESSAGE_TOO_LARGE");
    }
    let mut stream = connection(process.calls).await;
    let body = frame(0, u32::MAX, b"x");
    let ending = call(&mut stream, grpc(DECIDE_STREAM), body).await.unwrap();
    refused(&ending, Code::ResourceExhausted, "MESSAGE_TOO_LARGE");
    // One byte less than the limit is fine.
    let mut fits = context("fits");
    let room = 16 * 1024 - (encoded(&fits).len() - 5) - 6;
    fits.hint = Some(pb::ServerHint { date_header: "x".repeat(room), ..Default::default() });
    assert_eq!(encoded(&fits).len() - 5, 16 * 1024);
    assert_eq!(decide(&process, encoded(&fits)).await.code, Some(Code::Ok));

    let grown = process.resident_bytes().saturating_sub(before);
    assert!(grown < 16 << 20, "grew by {grown} bytes");
    process.answers().await;
}

#[tokio::test]
async fn a_compressed_message_is_never_inflated() {
    let process = Process::start(&[]);
    let before = process.resident_bytes();
    // 15 KiB that a decompressor would make a thousand times as large; it need not be valid.
    let bomb = frame(1, 15 << 10, &[0x1f; 15 << 10]);
    let mut send = connection(process.calls).await;
    for _ in 0..20 {
        let request = grpc(DECIDE).header("grpc-encoding", "gzip");
        let ending = call(&mut send, request, bomb.clone()).await.unwrap();
        assert_eq!(ending.code, Some(Code::Unimplemented), "{ending:?}");
        // The flag alone, without an encoding, is no better.
        let ending = call(&mut send, grpc(DECIDE), bomb.clone()).await.unwrap();
        assert!(!matches!(ending.code, None | Some(Code::Ok)), "{ending:?}");
    }
    let grown = process.resident_bytes().saturating_sub(before);
    assert!(grown < 16 << 20, "grew by {grown} bytes");
    process.answers().await;
}

/// B60: what is small on the wire and large in memory, to both services.
#[tokio::test]
async fn what_would_be_large_in_memory() {
    let process = Process::start(&[]);
    process.answers().await;
    let before = process.resident_bytes();
    let mut send = connection(process.calls).await;
    for (path, bytes_max) in [(DECIDE, 16 << 10), (REPORT_USAGE, 512 << 10)] {
        // As long as a gigabyte of zeros, compressed.
        let bomb = frame(1, 1 << 20, &vec![0x1f; 1 << 20]);
        let ending = call(&mut send, grpc(path).header("grpc-encoding", "gzip"), bomb).await;
        assert_eq!(ending.unwrap().code, Some(Code::Unimplemented), "{path}");
        let over = framed(&vec![0x7a; bytes_max + 1]);
        let endless = frame(0, u32::MAX, &[]);
        for body in [over, endless] {
            let ending = call(&mut send, grpc(path), body).await.unwrap();
            refused(&ending, Code::ResourceExhausted, "MESSAGE_TOO_LARGE");
        }
        let many = (0..1_000).fold(grpc(path), |request, place| {
            request.header(format!("x-many-{place}"), "value of a header")
        });
        let ending = call(&mut connection(process.calls).await, many, framed(&[])).await;
        assert!(ending.is_err() || ending.is_ok_and(|it| it.http == 431), "{path}");
        process.answers().await;
    }
    let grown = process.resident_bytes().saturating_sub(before);
    assert!(grown < 8 << 20, "grew by {grown} bytes");
}

#[tokio::test]
async fn too_many_headers() {
    let process = Process::start(&[]);
    let mut request = grpc(DECIDE);
    for place in 0..1_000 {
        request = request.header(format!("x-many-{place}"), "value of a header");
    }
    let mut send = connection(process.calls).await;
    match call(&mut send, request, encoded(&context("t"))).await {
        Ok(ending) => assert!(ending.http == 431 || ending.code != Some(Code::Ok), "{ending:?}"),
        Err(error) => println!("{error}"),
    }
    process.answers().await;
}

#[tokio::test]
async fn what_is_not_grpc() {
    let process = Process::start(&[]);
    let mut send = connection(process.calls).await;
    for content_type in ["application/json", "text/plain", "application/grpc-web"] {
        let request = http::Request::post(format!("http://retryd{DECIDE}"))
            .header("content-type", content_type);
        let ending = call(&mut send, request, encoded(&context("t"))).await.unwrap();
        assert_eq!(ending.http, 415, "{content_type}: {ending:?}");
    }
    let unknown = grpc("/retryd.v1.RetryService/Guess");
    let ending = call(&mut send, unknown, encoded(&context("t"))).await.unwrap();
    assert_eq!(ending.code, Some(Code::Unimplemented), "{ending:?}");
    process.answers().await;
}

/// Sends `bytes` and tells how long it took until the server closed the socket.
async fn closed_after(process: &Process, bytes: &[u8]) -> Duration {
    let start = Instant::now();
    let mut stream = TcpStream::connect(process.calls).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    let mut received = Vec::new();
    // A reset is as good as an end.
    timeout(SOON, stream.read_to_end(&mut received)).await.expect("still open").ok();
    assert!(received.len() < 1_000, "{}", String::from_utf8_lossy(&received));
    start.elapsed()
}

#[tokio::test]
async fn sockets_that_speak_no_http2_are_closed() {
    let process = Process::start(&[]);
    let silent = closed_after(&process, b"").await;
    assert!(Duration::from_secs(4) < silent, "a slow client has 5 s, not {silent:?}");
    for (what, bytes) in [
        ("HTTP/1.1", &b"GET / HTTP/1.1\r\nhost: a\r\n\r\n"[..]),
        ("TLS", &[0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03][..]),
        ("half a preface", &b"PRI * HTTP/2.0\r\n"[..]),
        ("garbage", &[0xa5; 200][..]),
        ("a preface and garbage", &b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff\xff\xff"[..]),
    ] {
        println!("{what}: {:?}", closed_after(&process, bytes).await);
    }
    process.answers().await;
}
