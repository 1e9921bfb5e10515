//! Ten thousand idle connections: memory bounded, other callers unaffected.

use std::future::Future;
use tokio::{io::AsyncWriteExt as _, net::TcpStream, time::timeout};

use crate::support::{Process, SOON, context};

const IDLE: usize = 10_000;

async fn idle(at: std::net::SocketAddr) -> std::io::Result<TcpStream> {
    let mut stream = TcpStream::connect(at).await?;
    // The preface, and empty SETTINGS.
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await?;
    Ok(stream)
}

fn soon<T>(
    future: impl Future<Output = T>,
) -> impl Future<Output = Result<T, tokio::time::error::Elapsed>> {
    timeout(SOON, future)
}

#[tokio::test]
async fn ten_thousand_idle_connections() {
    rlimit::increase_nofile_limit(u64::MAX).unwrap();
    let process =
        Process::start(&["--max-connections", "10001", "--max-connections-per-peer", "20000"]);
    let mut client = process.client().await;
    client.decide(context("before")).await.unwrap();
    let before = process.resident_bytes();

    let mut held = Vec::with_capacity(IDLE);
    for _ in 0..IDLE {
        held.push(soon(idle(process.calls)).await.unwrap().unwrap());
    }
    let open = "retryd_connections_open{port=\"calls\"}";
    process.metric_reaches(open, IDLE as u64 + 1).await;
    let each = (process.resident_bytes() - before) / IDLE as u64;
    println!("{each} resident bytes for each idle connection");
    assert!(each < 64 << 10, "{each} bytes for each idle connection");

    soon(client.decide(context("during"))).await.unwrap().unwrap();
    // One more than allowed is closed at once, and the others stay.
    let mut over = soon(idle(process.calls)).await.unwrap().unwrap();
    let mut nothing = Vec::new();
    soon(tokio::io::AsyncReadExt::read_to_end(&mut over, &mut nothing)).await.unwrap().ok();
    process.metric_is("retryd_connections_refused_total{port=\"calls\",cause=\"full\"}", 1).await;
    drop(held);
    process.metric_is(open, 1).await;
    soon(client.decide(context("after"))).await.unwrap().unwrap();
}
