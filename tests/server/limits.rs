//! What becomes of one call, and of one connection of a peer, too many.
use std::net::{IpAddr, SocketAddr};

use retryd::admin::metrics::Format;
use retryd::{
    admin::lanes::{Lane, LaneCounts},
    server::Limits,
};
use tokio::{
    io::AsyncReadExt as _,
    net::{TcpSocket, TcpStream},
    time::timeout,
};
use tonic::{
    Code,
    transport::{Channel, Endpoint},
};
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};
use tonic_types::StatusExt as _;

use crate::support::{Answer, Client, Open, Running, SOON, eventually, framed, ms, small};

/// Calls wait for as long as a test does.
fn patient() -> Limits {
    Limits { request_max: SOON * 10, handshake_max: SOON * 10, ..small() }
}

fn calls(running: &Running) -> &LaneCounts {
    running.metrics.lanes.of(Lane::Calls)
}

fn assert_overloaded(answer: &Answer) {
    let status = answer.status();
    assert_eq!(status.code(), Code::Unavailable, "{status:?}");
    assert_eq!(status.get_details_error_info().expect("an ErrorInfo").reason, "OVERLOADED");
    assert_eq!(answer.ending["grpc-retry-pushback-ms"], "-1");
}

/// Finishes a call whose message was missing.
async fn finish(mut open: Open) -> Answer {
    open.body.send_data(framed(0, b"late"), true).unwrap();
    timeout(SOON, open.answer()).await.expect("an answer").expect("no reset")
}

#[tokio::test]
async fn one_waiting_call_too_many_is_refused_and_a_whole_one_never_is() {
    let running = Running::with(Limits { calls_max: 3, ..patient() }).await;
    let client = running.client().await;
    // Three ways to wait: for a message, for one that the routes read, and for the service.
    let half = client.open("AtOnce", &[], None).await;
    let routed = client.open("Check", &[], None).await;
    let stuck = client.open("Stuck", &[], Some(b"")).await;
    eventually("three wait", || calls(&running).in_flight.get() == 3).await;

    for method in ["AtOnce", "Check"] {
        let one_more = client.open(method, &[], None).await.answer();
        assert_overloaded(&timeout(SOON, one_more).await.expect("an answer").unwrap());
    }
    assert_overloaded(&client.call("Stuck", &[], b"").await);
    assert_eq!(calls(&running).shed.get(), 3);
    let text = running.metrics.render(Format::OpenMetrics).unwrap();
    assert!(text.contains("retryd_requests_refused_total{reason=\"OVERLOADED\"} 3"), "{text}");
    // What can be answered on the spot is, by both ways.
    assert_eq!(client.call("AtOnce", &[], b"").await.code(), Code::Ok);
    assert_eq!(client.call("Echo", &[], b"").await.code(), Code::Ok);

    // Each end of a call makes room for one: answered, answered with an error, cancelled.
    assert_eq!(finish(half).await.bytes, &framed(0, b"late")[..]);
    finish(routed).await;
    drop(stuck);
    eventually("none waits", || calls(&running).in_flight.get() == 0).await;
    let half = client.open("AtOnce", &[], None).await;
    eventually("one waits", || calls(&running).in_flight.get() == 1).await;
    assert_eq!(finish(half).await.code(), Code::Ok);
    assert_eq!(calls(&running).shed.get(), 3);
}

#[tokio::test]
async fn a_message_that_comes_a_moment_after_its_head_is_answered_without_a_place() {
    let running = Running::with(Limits { calls_max: 1, ..patient() }).await;
    let socket = running.tcp().await;
    // So that a head leaves alone.
    socket.set_nodelay(true).unwrap();
    let client = Client::over(socket).await;
    let _held = client.open("AtOnce", &[], None).await;
    eventually("one waits", || calls(&running).in_flight.get() == 1).await;
    // On a busy machine the moment may be too long: then again.
    let answered = timeout(SOON, async {
        loop {
            let late = client.open("AtOnce", &[], None).await;
            tokio::time::sleep(ms(20)).await;
            if finish(late).await.code() == Code::Ok {
                break;
            }
        }
    });
    answered.await.expect("it is waited for");
    assert_eq!(calls(&running).in_flight.get(), 1);
}

#[tokio::test]
async fn a_place_comes_back_however_a_call_ends() {
    let running = Running::with(Limits { calls_max: 1, ..patient() }).await;
    let client = running.client().await;
    let free = || calls(&running).in_flight.get() == 0;

    assert_eq!(client.call("PanicSlow", &[], b"").await.code(), Code::Internal);
    eventually("free after a panic", free).await;
    let late = client.call("Stuck", &[("grpc-timeout", "50m")], b"").await;
    assert_eq!(late.code(), Code::DeadlineExceeded);
    eventually("free after a deadline", free).await;
    assert_eq!(client.call("Slow", &[], b"").await.code(), Code::Ok);
    eventually("free after an answer", free).await;

    let other = running.client().await;
    let _held = other.open("AtOnce", &[], None).await;
    eventually("taken", || calls(&running).in_flight.get() == 1).await;
    other.connection.abort();
    eventually("free after the connection", free).await;
    assert_eq!(client.call("Slow", &[], b"").await.code(), Code::Ok);
    assert_eq!(calls(&running).shed.get(), 0);
}

async fn health(at: SocketAddr) -> HealthClient<Channel> {
    let channel = Endpoint::from_shared(format!("http://{at}")).unwrap().connect().await;
    HealthClient::new(channel.unwrap())
}

#[tokio::test]
async fn health_is_answered_while_calls_are_refused() {
    let running =
        Running::with(Limits { calls_max: 1, budget_calls_max: 1, streams_max: 1, ..patient() })
            .await;
    let client = running.client().await;
    let _held = client.open("AtOnce", &[], None).await;
    eventually("full", || calls(&running).in_flight.get() == 1).await;
    assert_overloaded(&client.call("Stuck", &[], b"").await);

    let mut asked = health(running.at).await;
    for _ in 0..100 {
        let answer = asked.check(HealthCheckRequest::default()).await.unwrap();
        assert_eq!(answer.get_ref().status, 1);
    }
    let mut watch = asked.watch(HealthCheckRequest::default()).await.unwrap().into_inner();
    assert_eq!(watch.message().await.unwrap().unwrap().status, 1);
}

#[tokio::test]
async fn one_connection_cannot_take_the_places_of_health_from_another() {
    let running = Running::with(patient()).await;
    let mut greedy = health(running.at).await;
    let mut watches = Vec::new();
    for _ in 0..8 {
        watches.push(greedy.watch(HealthCheckRequest::default()).await.unwrap().into_inner());
    }
    let refused = greedy.check(HealthCheckRequest::default()).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable);
    assert_eq!(refused.get_details_error_info().unwrap().reason, "OVERLOADED");
    let counts = running.metrics.lanes.of(Lane::Health);
    assert_eq!((counts.in_flight.get(), counts.shed.get()), (8, 1));
    health(running.at).await.check(HealthCheckRequest::default()).await.unwrap();

    watches.pop();
    eventually("a place", || counts.in_flight.get() == 7).await;
    greedy.check(HealthCheckRequest::default()).await.unwrap();
}

async fn from(source: [u8; 4], to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::new(IpAddr::from(source), 0)).unwrap();
    socket.connect(to).await.unwrap()
}

#[tokio::test]
async fn a_peer_with_too_many_connections_shuts_nobody_else_out() {
    const ONE: [u8; 4] = [127, 0, 0, 1];
    const OTHER: [u8; 4] = [127, 0, 0, 2];
    let running = Running::with(Limits { connections_per_peer_max: 2, ..patient() }).await;
    let first = from(ONE, running.at).await;
    let _second = from(ONE, running.at).await;
    eventually("two open", || running.counts().open.get() == 2).await;

    let mut nothing = Vec::new();
    let mut third = from(ONE, running.at).await;
    timeout(SOON, third.read_to_end(&mut nothing)).await.expect("it is closed").ok();
    assert_eq!(nothing, b"");
    assert_eq!((running.counts().refused_peer.get(), running.counts().refused_full.get()), (1, 0));
    let other = Client::over(from(OTHER, running.at).await).await;
    assert_eq!(other.call("Echo", &[], b"").await.code(), Code::Ok);
    // Probes have places of their own, also from a peer that has none left.
    let probe = (from(ONE, running.probe).await, from(ONE, running.probe).await);
    let mut asked = health(running.probe).await;
    assert_eq!(asked.check(HealthCheckRequest::default()).await.unwrap().get_ref().status, 1);
    drop(probe);

    drop(first);
    eventually("one gone", || running.counts().open.get() == 2).await;
    let again = Client::over(from(ONE, running.at).await).await;
    assert_eq!(again.call("Echo", &[], b"").await.code(), Code::Ok);
    assert_eq!(running.counts().refused_peer.get(), 1);
}
