//! How the process ends.
use std::{net::SocketAddr, time::Duration};

use retryd::server::{Ended, LIVENESS, Limits, READINESS};
use tokio::{
    io::AsyncWriteExt as _,
    time::{Instant, sleep, timeout},
};
use tonic::{Code, Streaming, transport::Endpoint};
use tonic_health::pb::{
    HealthCheckRequest, HealthCheckResponse, health_check_response::ServingStatus,
    health_client::HealthClient,
};

use crate::support::{Running, SOON, ms, small};

type Health = HealthClient<tonic::transport::Channel>;

async fn health(at: SocketAddr) -> Health {
    let endpoint = Endpoint::from_shared(format!("http://{at}")).unwrap();
    HealthClient::new(endpoint.connect().await.unwrap())
}

async fn check(health: &mut Health, name: &str) -> Result<ServingStatus, Code> {
    let request = HealthCheckRequest { service: name.to_owned() };
    health.check(request).await.map(|is| is.get_ref().status()).map_err(|status| status.code())
}

#[tokio::test]
async fn health_tells_the_phases() {
    use ServingStatus::{NotServing, Serving};
    let running = Running::with(small()).await;
    let (mut main, mut probe) = (health(running.at).await, health(running.probe).await);
    for name in READINESS.into_iter().chain([LIVENESS]) {
        assert_eq!(check(&mut main, name).await, Ok(Serving), "`{name}`");
        assert_eq!(check(&mut probe, name).await, Ok(Serving), "`{name}`");
    }
    assert_eq!(check(&mut main, "nobody").await, Err(Code::NotFound));

    running.drain.begin();
    sleep(ms(50)).await;
    // New connections are taken, too.
    for health in [&mut main, &mut probe, &mut health(running.at).await] {
        for name in READINESS {
            assert_eq!(check(health, name).await, Ok(NotServing), "`{name}`");
        }
        assert_eq!(check(health, LIVENESS).await, Ok(Serving));
    }
    running.health.ready().await;
    assert_eq!(check(&mut main, "").await, Ok(NotServing), "a drain is not undone");
    assert_eq!(running.client().await.call("Echo", &[], b"").await.code(), Code::Ok);
    drop(main);
    assert_eq!(running.ended().await, Ended::Drained);
}

#[tokio::test]
async fn liveness_is_served_until_the_end() {
    let running = Running::with(small()).await;
    let client = running.client().await;
    let stuck = client.open("Flood", &[], Some(b"")).await;
    let mut probe = health(running.probe).await;
    running.drain.begin();
    running.drain.stopping().cancelled().await;
    sleep(ms(100)).await;
    assert_eq!(check(&mut probe, LIVENESS).await, Ok(ServingStatus::Serving));
    assert!(tokio::net::TcpStream::connect(running.at).await.is_err(), "no new connections");
    drop(stuck);
}

async fn watch(at: SocketAddr) -> Streaming<HealthCheckResponse> {
    let watch = health(at).await.watch(HealthCheckRequest::default()).await;
    let mut watch = watch.unwrap().into_inner();
    assert_eq!(next(&mut watch).await, Ok(Some(ServingStatus::Serving)));
    watch
}

async fn next(watch: &mut Streaming<HealthCheckResponse>) -> Result<Option<ServingStatus>, Code> {
    let message = timeout(SOON, watch.message()).await.expect("a message or an end");
    message.map(|is| is.map(|is| is.status())).map_err(|status| status.code())
}

#[tokio::test]
async fn a_watch_sees_not_serving_and_ends() {
    let running = Running::with(small()).await;
    let stay = running.client().await.open("Flood", &[], Some(b"")).await;
    let (mut main, mut probe) = (watch(running.at).await, watch(running.probe).await);
    running.drain.begin();
    for watch in [&mut main, &mut probe] {
        assert_eq!(next(watch).await, Ok(Some(ServingStatus::NotServing)));
    }
    // With the GOAWAY: by the name that goes, or by the connection that does.
    let ending = next(&mut main).await;
    assert!(matches!(ending, Ok(None) | Err(Code::Unavailable)), "{ending:?}");
    // This port says no goodbye before the end: only the name goes.
    assert_eq!(next(&mut probe).await, Ok(None));
    assert!(!running.task.is_finished());
    drop(stay);
    assert_eq!(running.ended().await, Ended::Drained);
}

#[tokio::test]
async fn calls_finish_and_nobody_else_is_waited_for() {
    let running = Running::with(small()).await;
    let (idle, working, streaming) =
        (running.client().await, running.client().await, running.client().await);
    let silent = running.tcp().await;
    let mut mute = running.tcp().await;
    mute.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
    mute.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).await.unwrap();
    let stream = tokio::spawn(streaming.open("Open", &[], Some(b"")).await.answer());
    let watch = tokio::spawn(streaming.open("Watch", &[], Some(b"")).await.answer());
    sleep(ms(50)).await;

    let since = Instant::now();
    running.drain.begin();
    let drain = running.drain.clone();
    // Its end lies after the GOAWAY.
    sleep(ms(200)).await;
    let slow = tokio::spawn(working.open("Slow", &[], Some(b"")).await.answer());
    drain.stopping().cancelled().await;
    assert!(ms(300) <= since.elapsed());
    assert!(!slow.is_finished());

    assert_eq!(slow.await.unwrap().unwrap().code(), Code::Ok);
    let stream = stream.await.unwrap().unwrap();
    assert_eq!(stream.code(), Code::Unavailable);
    assert_eq!(stream.ending["grpc-retry-pushback-ms"], "-1");
    watch.await.unwrap().expect("an ending, not a reset");
    assert_eq!(running.ended().await, Ended::Drained);
    assert!(since.elapsed() < ms(2500), "{:?}", since.elapsed());
    drop((idle, silent, mute));
}

/// Ends `running` while a client does not read an answer that has no end.
async fn with_a_client_that_does_not_read(
    limits: Limits,
    hurry: Option<Duration>,
) -> (Ended, Duration) {
    let running = Running::with(limits).await;
    let client = running.client().await;
    let flood = client.open("Flood", &[], Some(b"")).await;
    sleep(ms(100)).await;
    let since = Instant::now();
    running.drain.begin();
    if let Some(after) = hurry {
        sleep(after).await;
        running.drain.hurry();
    }
    let ended = running.ended().await;
    drop(flood);
    (ended, since.elapsed())
}

#[tokio::test]
async fn time_is_up_when_it_is_up() {
    let limits = Limits { drain_timeout: ms(1000), ..small() };
    let (ended, took) = with_a_client_that_does_not_read(limits, None).await;
    assert_eq!(ended, Ended::Cut(1));
    assert_eq!(ended.exit_code(), 0);
    // Counted from the start: the delay is a part of it.
    assert!(ms(990) <= took && took < ms(1900), "{took:?}");
}

#[tokio::test]
async fn the_delay_is_never_longer_than_the_timeout() {
    let limits = Limits { drain_delay: SOON * 10, drain_timeout: ms(300), ..small() };
    let running = Running::with(limits).await;
    running.drain.begin();
    running.ended().await;
}

#[tokio::test]
async fn a_second_signal_ends_at_once() {
    let long = Limits { drain_delay: SOON * 10, drain_timeout: SOON * 20, ..small() };
    let (ended, took) = with_a_client_that_does_not_read(long, Some(ms(100))).await;
    assert_eq!(ended, Ended::Hurried(1));
    assert_eq!(ended.exit_code(), 130);
    assert!(took < ms(1500), "{took:?}");

    let long = Limits { drain_timeout: SOON * 20, ..small() };
    let (ended, took) = with_a_client_that_does_not_read(long, Some(ms(500))).await;
    assert_eq!(ended, Ended::Hurried(1));
    assert!(took < ms(1900), "{took:?}");
}
