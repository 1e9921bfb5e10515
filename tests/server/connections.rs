//! What becomes of one connection.
use std::{sync::atomic::Ordering, time::Duration};

use retryd::server::Limits;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::{Instant, sleep, timeout},
};
use tonic::Code;

use crate::support::{Client, Running, SOON, eventually, ms, small};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Sends `bytes`; returns what comes back until the server closes, and when that was.
async fn until_closed(mut socket: TcpStream, bytes: &[u8]) -> (Vec<u8>, Duration) {
    let since = Instant::now();
    socket.write_all(bytes).await.unwrap();
    let mut back = Vec::new();
    // A reset is a close, too.
    timeout(SOON, socket.read_to_end(&mut back)).await.expect("it is closed").ok();
    (back, since.elapsed())
}

#[tokio::test]
async fn a_handshake_has_a_time_limit() {
    let running = Running::with(small()).await;
    for silence in [&b""[..], b"P", &PREFACE[..23], PREFACE] {
        let (_, closed_after) = until_closed(running.tcp().await, silence).await;
        assert!(ms(190) <= closed_after && closed_after < ms(2000), "{closed_after:?}");
    }
    assert_eq!(running.counts().refused_handshake.get(), 4);
    eventually("all closed", || running.counts().open.get() == 0).await;
}

#[tokio::test]
async fn what_is_not_http2_is_closed_at_once() {
    let patient = Limits { handshake_max: SOON * 10, ..small() };
    let running = Running::with(patient).await;
    let garbage = [0xa5; 100_000];
    let long_line = [b"GET /", &[b'a'; 50_000][..]].concat();
    for bytes in [&b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"[..], b"\x16\x03\x01", &garbage, &long_line]
    {
        let (back, _) = until_closed(running.tcp().await, bytes).await;
        // No answer, but perhaps the server's own SETTINGS.
        assert!(!back.starts_with(b"HTTP/1"), "{back:?}");
        assert!(back.len() < 100, "{back:?}");
    }
    assert_eq!(running.counts().refused_handshake.get(), 4);
    assert_eq!(running.client().await.call("Echo", &[], b"").await.code(), Code::Ok);
}

#[tokio::test]
async fn one_connection_too_many_is_closed_and_the_others_go_on() {
    let patient = Limits { handshake_max: SOON * 10, connections_max: 3, ..small() };
    let running = Running::with(patient).await;
    let client = running.client().await;
    let silent = (running.tcp().await, running.tcp().await);
    eventually("three open", || running.counts().open.get() == 3).await;

    for _ in 0..20 {
        let (back, _) = until_closed(running.tcp().await, b"").await;
        assert_eq!(back, b"");
        assert_eq!(client.call("Echo", &[], b"").await.code(), Code::Ok);
    }
    assert_eq!(running.counts().refused_full.get(), 20);
    // The port for probes has its own places.
    let probe = Client::over(TcpStream::connect(running.probe).await.unwrap()).await;
    drop(probe);

    drop(silent);
    eventually("places free", || running.counts().open.get() == 1).await;
    assert_eq!(running.client().await.call("Echo", &[], b"").await.code(), Code::Ok);
}

#[tokio::test]
async fn many_calls_may_be_given_up_at_once_but_not_any_number() {
    const GOAWAY: u8 = 7;
    const PING: u8 = 6;
    let running = Running::with(small()).await;
    for (count, goes_on) in [(500, true), (2000, false)] {
        let mut socket = running.tcp().await;
        let given_up = (0..count).flat_map(|call| {
            let stream = 2 * call + 1;
            // `POST /` to `x`, and RST_STREAM with CANCEL.
            [frame(1, 4, stream, b"\x83\x86\x84\x41\x01x"), frame(3, 0, stream, &[0, 0, 0, 8])]
        });
        let opening = [PREFACE, &frame(4, 0, 0, b"")].concat();
        let closing = frame(PING, 0, 0, &[0; 8]);
        let bytes = [opening, given_up.collect::<Vec<_>>().concat(), closing].concat();
        socket.write_all(&bytes).await.unwrap();

        let last = timeout(SOON, async {
            loop {
                let (kind, flags) = read_frame(&mut socket).await;
                if kind == GOAWAY || (kind == PING && flags == 1) {
                    break kind;
                }
            }
        });
        assert_eq!(last.await.expect("an answer") == PING, goes_on, "{count} calls");
    }
}

#[tokio::test]
async fn one_call_too_many_on_a_connection_is_refused_by_http2_and_a_place_comes_back() {
    const HEADERS: u8 = 1;
    const RST_STREAM: u8 = 3;
    const REFUSED_STREAM: [u8; 4] = [0, 0, 0, 7];
    let limits = Limits { calls_per_connection_max: 3, request_max: SOON * 10, ..small() };
    let running = Running::with(limits).await;
    let mut socket = running.tcp().await;
    socket.write_all(&[PREFACE, &frame(4, 0, 0, b"")].concat()).await.unwrap();
    let settings = read_whole_frame(&mut socket).await.1;
    let most = settings.chunks(6).find(|setting| setting[..2] == [0, 3]).expect("a setting");
    assert_eq!(most[2..], [0, 0, 0, 3], "the client knows the limit");

    for stream in [1, 3, 5, 7] {
        socket.write_all(&frame(HEADERS, 4, stream, &echo())).await.unwrap();
    }
    let (stream, why) = next_of(RST_STREAM, &mut socket).await;
    assert_eq!((stream, &why[..]), (7, &REFUSED_STREAM[..]));
    // The first one ends, and there is room again.
    socket.write_all(&frame(0, 1, 1, &[0; 5])).await.unwrap();
    assert_eq!(next_of(HEADERS, &mut socket).await.0, 1);
    // Its trailers, so that it is over.
    assert_eq!(next_of(HEADERS, &mut socket).await.0, 1);
    let again = [frame(HEADERS, 4, 9, &echo()), frame(0, 1, 9, &[0; 5])].concat();
    socket.write_all(&again).await.unwrap();
    assert_eq!(next_of(HEADERS, &mut socket).await.0, 9);
}

/// The next frame of a kind: its stream, and what it carries.
async fn next_of(kind: u8, socket: &mut TcpStream) -> (u32, Vec<u8>) {
    let found = async {
        loop {
            let (head, payload) = read_whole_frame(socket).await;
            if head[3] == kind {
                break (u32::from_be_bytes([head[5], head[6], head[7], head[8]]), payload);
            }
        }
    };
    timeout(SOON, found).await.expect("a frame")
}

#[tokio::test]
async fn a_client_that_stands_still_at_the_goodbye_is_waited_for() {
    const HEADERS: u8 = 1;
    const GOAWAY: u8 = 7;
    let patient = Limits { farewell: SOON, drain_timeout: SOON * 4, ..small() };
    let running = Running::with(patient).await;
    let mut socket = running.tcp().await;
    socket.write_all(&[PREFACE, &frame(4, 0, 0, b"")].concat()).await.unwrap();
    sleep(ms(50)).await;
    running.drain.begin();
    while read_frame(&mut socket).await.0 != GOAWAY {}

    // Longer than any moment of quiet that a client gets by itself.
    sleep(ms(1200)).await;
    let call = [frame(HEADERS, 4, 1, &echo()), frame(0, 1, 1, &[0; 5])].concat();
    socket.write_all(&call).await.unwrap();
    let answered = timeout(SOON, async { while read_frame(&mut socket).await.0 != HEADERS {} });
    answered.await.expect("an answer");
    assert_eq!(running.echoes.load(Ordering::SeqCst), 1);
}

/// The head of a call of `Echo`, in HPACK.
fn echo() -> Vec<u8> {
    let path = [b"\x04\x14", &b"/retryd.v1.Hand/Echo"[..]].concat();
    let kind = [b"\x0f\x10\x10", &b"application/grpc"[..]].concat();
    [&b"\x83\x86\x41\x01x"[..], &path, &kind].concat()
}

/// RFC 9113, section 4.1.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// The kind and the flags of the next frame.
async fn read_frame(socket: &mut TcpStream) -> (u8, u8) {
    let (head, _) = read_whole_frame(socket).await;
    (head[3], head[4])
}

async fn read_whole_frame(socket: &mut TcpStream) -> ([u8; 9], Vec<u8>) {
    let mut head = [0; 9];
    socket.read_exact(&mut head).await.unwrap();
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
    let mut payload = vec![0; usize::try_from(length).unwrap()];
    socket.read_exact(&mut payload).await.unwrap();
    (head, payload)
}

#[tokio::test]
async fn an_old_connection_says_goodbye_and_no_call_fails() {
    let running = Running::with(Limits { age_max: ms(200), ..small() }).await;
    let mut client = running.client().await;
    let mut calls = 0;
    while running.counts().accepted.get() < 5 {
        let answer = match client.try_open("Echo", &[], Some(b"")).await {
            Ok(sent) => sent.answer().await,
            Err(not_sent) => Err(not_sent),
        };
        match answer {
            Ok(answer) => {
                assert_eq!(answer.code(), Code::Ok);
                calls += 1;
            }
            // Follows GOAWAY: what a connection did not take goes to the next one.
            Err(error) => {
                let is_farewell =
                    error.is_go_away() && error.reason() == Some(h2::Reason::NO_ERROR);
                assert!(is_farewell, "{error}");
                client = running.client().await;
            }
        }
    }
    assert_eq!(running.echoes.load(Ordering::SeqCst), calls, "each processed once, and answered");
    assert!(20 < calls, "{calls}");

    // A call that is in flight when the age is reached is finished.
    let client = running.client().await;
    assert_eq!(client.call("Slow", &[], b"").await.code(), Code::Ok);
    let ended = timeout(SOON, client.connection).await.expect("it is closed").unwrap();
    assert!(ended.is_ok(), "{ended:?}");
    assert_eq!(running.counts().cut.get(), 0);
}

#[tokio::test]
async fn a_stream_on_an_old_connection_gets_its_grace_and_then_an_ending() {
    let limits = Limits { age_max: ms(50), age_grace: ms(300), ..small() };
    let running = Running::with(limits).await;
    let client = running.client().await;
    let since = Instant::now();
    let answer = client.call("Open", &[], b"").await;
    assert!(ms(300) < since.elapsed());
    assert_eq!(answer.code(), Code::Unavailable);
    assert_eq!(answer.ending["grpc-retry-pushback-ms"], "-1");
}

#[tokio::test]
async fn an_old_connection_whose_client_does_nothing_is_cut() {
    let limits = Limits { age_max: ms(50), age_grace: ms(100), ..small() };
    let running = Running::with(limits).await;
    let mut silent = running.tcp().await;
    silent.write_all(PREFACE).await.unwrap();
    silent.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).await.unwrap();
    eventually("cut", || running.counts().cut.get() == 1).await;
}

#[tokio::test]
async fn a_client_that_gives_no_sign_of_life_is_closed() {
    let limits = Limits { keepalive_interval: ms(100), keepalive_timeout: ms(100), ..small() };
    let running = Running::with(limits).await;
    let mut silent = running.tcp().await;
    silent.write_all(PREFACE).await.unwrap();
    silent.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).await.unwrap();
    eventually("open", || running.counts().open.get() == 1).await;
    eventually("closed", || running.counts().open.get() == 0).await;

    let lively = running.client().await;
    sleep(ms(500)).await;
    assert_eq!(lively.call("Echo", &[], b"").await.code(), Code::Ok);
    assert_eq!(running.counts().accepted.get(), 2);
}
