//! A process without a free file descriptor waits for one, and says so once. Alone in its process,
//! since it takes them all.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
use std::{fs::File, sync::Arc, time::Duration};

use retryd::{
    admin::{metrics::Metrics, ports::Port},
    clock::Clock,
    server::{Drain, Health, Limits, Listen, Server},
};
use tokio::{net::TcpSocket, time::sleep};
use tonic::service::Routes;

#[tokio::test]
async fn accepting_goes_on_when_descriptors_come_back() {
    let bound = "127.0.0.1:0".parse::<Listen>().unwrap().bind().await.unwrap();
    let at = bound.local().to_string().parse().unwrap();
    let health = Health::new().await;
    let metrics = Arc::new(Metrics::new());
    let server = Server {
        listeners: vec![bound],
        probe: None,
        routes: Routes::new(health.service()),
        at_once: None,
        limits: Limits::default(),
        health,
        metrics: Arc::clone(&metrics),
        clock: Clock::system(),
        tls: None,
        traces: None,
    };
    tokio::spawn(server.run(Drain::new()));
    let counts = metrics.connections(Port::Calls);

    let socket = TcpSocket::new_v4().unwrap();
    let (_, hard) = rlimit::getrlimit(rlimit::Resource::NOFILE).unwrap();
    rlimit::setrlimit(rlimit::Resource::NOFILE, 128.min(hard), hard).unwrap();
    let hoard: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    assert!(!hoard.is_empty());

    // The kernel finishes the handshake; the process cannot take the connection.
    let _waiting = socket.connect(at).await.unwrap();
    sleep(Duration::from_millis(1000)).await;
    let errors = counts.accept_errors.get();
    assert!((2..=15).contains(&errors), "it tries again, without spinning: {errors}");
    assert_eq!(counts.accepted.get(), 0);

    drop(hoard);
    sleep(Duration::from_millis(1000)).await;
    assert_eq!(counts.accepted.get(), 1);
}
