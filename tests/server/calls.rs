//! What becomes of one call.
use retryd::admin::metrics::Format;
use tonic::Code;
use tonic_types::StatusExt as _;

use crate::support::{Answer, Client, Running, SLOW, framed, ms, small};

fn reason(answer: &Answer) -> (String, String) {
    let info = answer.status().get_details_error_info().expect("an ErrorInfo");
    (info.domain, info.reason)
}

#[tokio::test]
async fn a_call_sees_its_peer_and_its_deadline() {
    let running = Running::with(small()).await;
    let client = running.client().await;

    let answer = client.call("Echo", &[], b"hello").await;
    assert_eq!(answer.code(), Code::Ok);
    assert_eq!(answer.bytes, &framed(0, b"hello")[..]);
    assert!(answer.head["x-peer"].to_str().unwrap().starts_with("Tcp(127.0.0.1:"));
    assert_eq!(answer.head["x-left"], "None");

    let answer = client.call("Echo", &[("grpc-timeout", "5S")], b"").await;
    let left = answer.head["x-left"].to_str().unwrap();
    assert!(left.starts_with("Some(4.") || left == "Some(5s)", "{left}");
}

#[tokio::test]
async fn what_takes_longer_than_its_own_deadline_ends_with_deadline_exceeded() {
    let running = Running::with(small()).await;
    let client = running.client().await;
    let soon = [("grpc-timeout", "50m")];

    let unread = client.open("Check", &soon, None).await.answer();
    assert_eq!(unread.await.unwrap().code(), Code::DeadlineExceeded);
    assert_eq!(client.call("Slow", &soon, b"").await.code(), Code::DeadlineExceeded);
    let stream = client.call("Open", &soon, b"").await;
    assert_eq!((stream.code(), &stream.bytes[..]), (Code::DeadlineExceeded, &b"first"[..]));
    let passed = client.call("Echo", &[("grpc-timeout", "0m")], b"").await;
    assert_eq!(passed.code(), Code::DeadlineExceeded);
    assert_eq!(client.call("Slow", &[("grpc-timeout", "5S")], b"").await.code(), Code::Ok);
    assert_eq!(running.metrics.deadlines_exceeded.get(), 4);
}

#[tokio::test]
async fn a_request_that_never_comes_ends_and_a_stream_stays() {
    let running = Running::with(small()).await;
    let client = running.client().await;
    let stream = client.open("Open", &[], Some(b"")).await;
    let stream = tokio::spawn(stream.answer());

    let answer = client.open("Check", &[], None).await.answer().await.unwrap();
    assert_eq!(answer.code(), Code::DeadlineExceeded);
    assert_eq!(answer.status().message(), "the request was not complete in time");
    assert!(!stream.is_finished());
}

#[tokio::test]
async fn a_message_over_the_limit_is_resource_exhausted() {
    let running = Running::with(small()).await;
    let client = running.client().await;

    let answer = client.call("Check", &[], &[0; 2000]).await;
    assert_eq!(answer.code(), Code::ResourceExhausted);
    assert_eq!(
        answer.status().message(),
        "decoded message length too large: found 2000 bytes, the limit is: 1024 bytes"
    );
    assert_eq!(reason(&answer), ("retryd".to_owned(), "MESSAGE_TOO_LARGE".to_owned()));

    // A declared length of 4 GB is refused before anything is kept for it.
    let mut open = client.open("Check", &[], None).await;
    open.body.send_data(vec![0, 0xff, 0xff, 0xff, 0xff].into(), false).unwrap();
    assert_eq!(open.answer().await.unwrap().code(), Code::ResourceExhausted);

    let text = running.metrics.render(Format::OpenMetrics).unwrap();
    assert!(
        text.contains("retryd_requests_refused_total{reason=\"MESSAGE_TOO_LARGE\"} 2"),
        "{text}"
    );
}

#[tokio::test]
async fn compressed_messages_are_unimplemented() {
    let running = Running::with(small()).await;
    let client = running.client().await;
    let mut open = client.open("Check", &[("grpc-encoding", "gzip")], None).await;
    open.body.send_data(framed(1, b"\x1f\x8b"), true).unwrap();
    assert_eq!(open.answer().await.unwrap().code(), Code::Unimplemented);

    let mut open = client.open("Check", &[], None).await;
    open.body.send_data(framed(1, b"\x1f\x8b"), true).unwrap();
    assert_eq!(open.answer().await.unwrap().code(), Code::Internal);
}

#[tokio::test]
async fn what_is_not_grpc_is_told_so() {
    let running = Running::with(small()).await;
    let client = running.client().await;
    let json = client.call("Echo", &[("content-type", "application/json")], b"{}").await;
    assert_eq!(json.http, http::StatusCode::UNSUPPORTED_MEDIA_TYPE);

    let get = http::Request::get("http://retryd/retryd.v1.Hand/Echo").body(()).unwrap();
    let mut send = client.send.clone().ready().await.unwrap();
    let response = send.send_request(get, true).unwrap().0.await.unwrap();
    assert_eq!(response.status(), http::StatusCode::METHOD_NOT_ALLOWED);
}

#[tokio::test]
async fn a_panic_ends_its_own_call_only() {
    let running = Running::with(small()).await;
    let client = running.client().await;
    let slow = client.open("Slow", &[], Some(b"")).await;

    assert_eq!(client.call("Panic", &[], b"").await.code(), Code::Internal);
    assert_eq!(client.call("PanicLater", &[], b"").await.code(), Code::Internal);

    assert_eq!(slow.answer().await.unwrap().code(), Code::Ok);
    assert_eq!(client.call("Echo", &[], b"").await.code(), Code::Ok);
    assert_eq!(running.metrics.panics.get(), 2);
    assert_eq!(running.counts().accepted.get(), 1);
}

#[tokio::test]
async fn headers_over_the_limit_are_refused() {
    let running = Running::with(small()).await;
    let client = running.client().await;
    let long = "x".repeat(20_000);
    let open = client.open("Echo", &[("x-long", &long)], Some(b"")).await;
    match open.answer().await {
        Ok(answer) => assert_eq!(answer.http, http::StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE),
        Err(error) => assert!(error.is_reset() || error.is_go_away(), "{error}"),
    }
    assert_eq!(running.client().await.call("Echo", &[], b"").await.code(), Code::Ok);
}

#[tokio::test]
async fn a_cancelled_call_leaves_the_connection_alone() {
    let running = Running::with(small()).await;
    let client: Client = running.client().await;
    drop(client.open("Stuck", &[], Some(b"")).await);
    tokio::time::sleep(ms(50)).await;
    assert_eq!(client.call("Slow", &[], b"").await.code(), Code::Ok);
    assert!(SLOW < small().request_max);
}
