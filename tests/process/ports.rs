//! The ports for probes and for people have few places: docs/limits.md says how many of them one peer
//! may have, and others are answered all the same.
use std::net::{Ipv4Addr, SocketAddr};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
    time::timeout,
};
use tonic::Code;

use crate::support::{Process, SOON, call, framed, grpc};

const ONE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 1);
const OTHER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// What docs/limits.md says of a port: its places, and those of one peer.
fn documented(port: &str) -> (u64, u64) {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/limits.md"));
    let text = text.unwrap();
    let row = text.lines().find(|row| row.starts_with(&format!("| {port} ("))).unwrap();
    let cells: Vec<&str> = row.split('|').map(str::trim).collect();
    (cells[2].parse().unwrap(), cells[3].parse().unwrap())
}

async fn from(source: Ipv4Addr, to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::new(source.into(), 0)).unwrap();
    socket.connect(to).await.unwrap()
}

/// What the admin port answers to a peer. Nothing, if it closes the connection at once.
async fn page(source: Ipv4Addr, process: &Process, path: &str) -> String {
    let mut stream = from(source, process.admin).await;
    let head = format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await.ok();
    let mut text = String::new();
    timeout(SOON, stream.read_to_string(&mut text)).await.expect("it is closed").ok();
    text
}

/// How a question about health ends on a connection. `None`, if that is closed at once.
async fn health(stream: TcpStream) -> Option<Code> {
    let (mut send, connection) = h2::client::handshake(stream).await.ok()?;
    tokio::spawn(connection);
    let asked = call(&mut send, grpc("/grpc.health.v1.Health/Check"), framed(b"")).await.ok()?;
    asked.code
}

/// Waits for a line of `/metrics`, as the other peer sees it.
async fn shown(process: &Process, line: &str) {
    let seen = async {
        while !page(OTHER, process, "/metrics").await.lines().any(|shown| shown == line) {}
    };
    assert!(timeout(SOON, seen).await.is_ok(), "no `{line}`");
}

fn refused(port: &str, count: u64) -> String {
    format!("retryd_connections_refused_total{{port=\"{port}\",cause=\"peer\"}} {count}")
}

#[tokio::test]
async fn one_peer_takes_a_quarter_of_the_port_for_people() {
    let (places, each) = documented("admin");
    assert_eq!(each * 4, places);
    let process = Process::start(&[]);
    let mut held = Vec::new();
    for _ in 0..each {
        held.push(from(ONE, process.admin).await);
    }
    assert_eq!(page(ONE, &process, "/livez").await, "");
    assert!(page(OTHER, &process, "/livez").await.ends_with("ok\n"));
    shown(&process, &format!("retryd_connections_limit{{port=\"admin\"}} {places}")).await;
    shown(&process, &refused("admin", 1)).await;

    drop(held.pop());
    // The other one's own connection is open, too.
    shown(&process, &format!("retryd_connections_open{{port=\"admin\"}} {each}")).await;
    assert!(page(ONE, &process, "/livez").await.ends_with("ok\n"));
    shown(&process, &refused("admin", 1)).await;
}

#[tokio::test]
async fn one_peer_takes_a_quarter_of_the_port_for_probes() {
    let (places, each) = documented("probe");
    assert_eq!(each * 4, places);
    let process = Process::start(&["--probe-listen", "127.0.0.1:0"]);
    let probe = process.probe.unwrap();
    let mut held = Vec::new();
    for _ in 0..each {
        let (send, connection) = h2::client::handshake(from(ONE, probe).await).await.unwrap();
        tokio::spawn(connection);
        held.push(send);
    }
    assert_eq!(health(from(ONE, probe).await).await, None);
    assert_eq!(health(from(OTHER, probe).await).await, Some(Code::Ok));
    shown(&process, &format!("retryd_connections_limit{{port=\"probe\"}} {places}")).await;
    shown(&process, &refused("probe", 1)).await;

    drop(held.pop());
    shown(&process, &format!("retryd_connections_open{{port=\"probe\"}} {}", each - 1)).await;
    assert_eq!(health(from(ONE, probe).await).await, Some(Code::Ok));
}
