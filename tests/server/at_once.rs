//! A method that is answered at once, and what is unusual about a call of it.
use bytes::Bytes;
use http::HeaderMap;
use tonic::Code;

use crate::support::{Answer, Running, framed, small};

/// What the routes answer names the peer.
fn is_routed(answer: &Answer) -> bool {
    answer.head.contains_key("x-peer")
}

#[tokio::test]
async fn one_whole_message_is_answered_without_the_routes() {
    let running = Running::with(small()).await;
    let client = running.client().await;
    for message in [&b"hello"[..], b"", &[7; 1024]] {
        let answer = client.call("AtOnce", &[], message).await;
        assert_eq!((answer.http.as_u16(), answer.code()), (200, Code::Ok));
        assert_eq!(answer.head["content-type"], "application/grpc");
        assert_eq!(answer.bytes, &framed(0, message)[..]);
        assert!(!is_routed(&answer));
    }
    // Many clients end a request by a frame of its own.
    let mut open = client.open("AtOnce", &[], None).await;
    open.body.send_data(framed(0, b"hello"), false).unwrap();
    open.body.send_data(Bytes::new(), true).unwrap();
    let answer = open.answer().await.unwrap();
    assert_eq!((answer.code(), is_routed(&answer)), (Code::Ok, false));

    let refused = client.call("AtOnce", &[], b"refuse").await;
    assert_eq!((refused.code(), refused.status().message()), (Code::InvalidArgument, "refused"));
}

#[tokio::test]
async fn what_is_unusual_goes_to_the_routes_as_it_came() {
    let running = Running::with(small()).await;
    let client = running.client().await;
    let whole = framed(0, b"hello");
    let twice = [&whole[..], &whole].concat();
    let too_large = framed(0, &[7; 1025]);
    for frames in [
        vec![],
        vec![&b""[..]],
        vec![&whole[..3], &whole[3..]],
        vec![&whole[..5], &whole[5..]],
        vec![&whole, &whole],
        vec![&twice],
        vec![&whole, b"rest"],
        vec![&whole[..7]],
        vec![&framed(1, b"hello")],
        vec![&too_large],
    ] {
        let mut open = client.open("AtOnce", &[], None).await;
        for frame in &frames {
            open.body.send_data(Bytes::copy_from_slice(frame), false).unwrap();
        }
        open.body.send_data(Bytes::new(), true).unwrap();
        let answer = open.answer().await.unwrap();
        assert!(is_routed(&answer), "{frames:?}");
        assert_eq!(answer.bytes, frames.concat(), "{frames:?}");
    }
    let encoded = client.call("AtOnce", &[("grpc-encoding", "identity")], b"hello").await;
    assert!(is_routed(&encoded));

    let mut open = client.open("AtOnce", &[], None).await;
    open.body.send_data(whole.clone(), false).unwrap();
    open.body
        .send_trailers(HeaderMap::from_iter([("a".parse().unwrap(), "b".parse().unwrap())]))
        .unwrap();
    let answer = open.answer().await.unwrap();
    assert!(is_routed(&answer));
    assert_eq!(answer.bytes, &whole[..]);
}

#[tokio::test]
async fn a_message_that_does_not_come_ends_in_time() {
    let running = Running::with(small()).await;
    let client = running.client().await;
    let nothing = client.open("AtOnce", &[], None).await.answer();
    let answer = nothing.await.unwrap();
    assert_eq!(answer.code(), Code::DeadlineExceeded);
    assert_eq!(answer.status().message(), "the request was not complete in time");

    // Whole, but the request does not end.
    let mut endless = client.open("AtOnce", &[("grpc-timeout", "50m")], None).await;
    endless.body.send_data(framed(0, b"hello"), false).unwrap();
    let answer = endless.answer().await.unwrap();
    assert_eq!(answer.code(), Code::DeadlineExceeded);
    assert_eq!(answer.status().message(), "the deadline of the call has passed");
    assert_eq!(running.metrics.deadlines_exceeded.get(), 2);
}

#[tokio::test]
async fn a_panic_at_once_ends_its_own_call_only() {
    let running = Running::with(small()).await;
    let client = running.client().await;
    assert_eq!(client.call("AtOnce", &[], b"panic").await.code(), Code::Internal);
    assert_eq!(client.call("AtOnce", &[], b"hello").await.code(), Code::Ok);
    assert_eq!(running.metrics.panics.get(), 1);
}
