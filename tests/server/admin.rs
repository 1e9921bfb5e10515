//! The admin listener.
use std::{net::SocketAddr, sync::Arc};

use retryd::{
    admin::{Admin, metrics::Metrics},
    budget::Occupancy,
    server::{Drain, Health},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

use crate::support::{Running, SOON, local, ms, small};

async fn get(at: SocketAddr, path: &str) -> String {
    let mut socket = TcpStream::connect(at).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: retryd\r\nconnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    timeout(SOON, socket.read_to_string(&mut text)).await.expect("an answer").unwrap();
    text
}

async fn admin(health: Health, metrics: Arc<Metrics>, drain: Drain) -> SocketAddr {
    let bound = local().await;
    let at = bound.local().to_string().parse().unwrap();
    tokio::spawn(
        Admin {
            health,
            metrics,
            occupancy: Arc::new(Occupancy::default),
            sharing: None,
            console: None,
        }
        .run(bound, drain),
    );
    at
}

#[tokio::test]
async fn probes_follow_the_phases() {
    let starting = admin(Health::new().await, Arc::default(), Drain::new()).await;
    assert!(get(starting, "/livez").await.starts_with("HTTP/1.1 200 "));
    let text = get(starting, "/readyz?verbose").await;
    assert!(text.starts_with("HTTP/1.1 503 "), "{text}");
    assert!(
        text.ends_with("\r\n\r\n[-] started\n[+] not-draining\n[+] policy\nnot ready\n"),
        "{text}"
    );

    let running = Running::with(small()).await;
    let at = admin(running.health.clone(), running.metrics.clone(), running.drain.clone()).await;
    let text = get(at, "/readyz").await;
    assert!(text.starts_with("HTTP/1.1 200 ") && text.ends_with("\r\n\r\nready\n"), "{text}");

    running.drain.begin();
    tokio::time::sleep(ms(50)).await;
    assert!(get(at, "/livez").await.starts_with("HTTP/1.1 200 "));
    let text = get(at, "/readyz?verbose").await;
    assert!(text.starts_with("HTTP/1.1 503 "), "{text}");
    assert!(
        text.ends_with("\r\n\r\n[+] started\n[-] not-draining\n[+] policy\nnot ready\n"),
        "{text}"
    );

    running.ended().await;
    tokio::time::sleep(ms(50)).await;
    assert!(TcpStream::connect(at).await.is_err());
}

#[tokio::test]
async fn metrics_are_openmetrics() {
    let running = Running::with(small()).await;
    let at = admin(running.health.clone(), running.metrics.clone(), running.drain.clone()).await;
    let _client = running.client().await.call("Echo", &[], b"").await;
    let text = get(at, "/metrics").await;
    assert!(text.contains("content-type: application/openmetrics-text; version=1.0.0"), "{text}");
    assert!(text.contains("retryd_connections_accepted_total{port=\"calls\"} 1\n"), "{text}");
    assert!(text.contains("retryd_build_info{version=\""), "{text}");
    assert!(text.ends_with("# EOF\n"), "{text}");
}
