//! Addresses, and the files of Unix sockets.
use std::{fs, os::unix::net::UnixListener as StdListener};

use retryd::server::{Ended, Listen};
use tokio::net::UnixStream;
use tonic::Code;

use crate::support::{Client, Running, local, small};

#[test]
fn addresses() {
    // Text, and whether only this machine reaches it.
    let good = [
        ("127.0.0.1:50051", true),
        ("127.9.9.9:1", true),
        ("localhost:0", true),
        ("[::1]:50051", true),
        ("unix:/run/retryd.sock", true),
        ("unix:retryd.sock", true),
        ("0.0.0.0:50051", false),
        ("[::]:50051", false),
        ("10.0.0.1:50051", false),
        ("retryd.example:50051", false),
    ];
    for (text, is_loopback) in good {
        let address: Listen = text.parse().unwrap();
        assert_eq!(address.to_string(), text);
        assert_eq!(address.is_loopback(), is_loopback, "{text}");
    }
    let bad = [
        "",
        "50051",
        ":50051",
        "127.0.0.1",
        "127.0.0.1:",
        "a:65536",
        "::1:50051",
        "[::1]",
        "[a]:1",
        "unix:",
        "http://a:1",
        "a:+1x",
    ];
    for text in bad {
        let error = text.parse::<Listen>().unwrap_err().to_string();
        assert!(error.starts_with(&format!("`{text}` is no address to listen on: ")), "{error}");
    }
}

#[tokio::test]
async fn a_port_that_is_taken_is_named() {
    let taken = local().await.local().clone();
    let bound = taken.bind().await.unwrap();
    let error = bound.local().bind().await.unwrap_err().to_string();
    assert!(error.starts_with(&format!("cannot listen on `{taken}`: ")), "{error}");
}

#[tokio::test]
async fn a_unix_socket_serves_and_takes_its_file_along() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("retryd.sock");
    // Left by a process that was killed.
    drop(StdListener::bind(&path).unwrap());
    assert!(path.exists());

    let address: Listen = format!("unix:{}", path.display()).parse().unwrap();
    let running = Running::on(small(), address.bind().await.unwrap()).await;
    let client = Client::over(UnixStream::connect(&path).await.unwrap()).await;
    let answer = client.call("Echo", &[], b"").await;
    assert_eq!(answer.code(), Code::Ok);
    assert_eq!(answer.head["x-peer"], "Unix");

    let error = address.bind().await.unwrap_err().to_string();
    assert!(error.contains("in use"), "somebody answers there: {error}");
    assert!(path.exists());

    running.drain.begin();
    assert_eq!(running.ended().await, Ended::Drained);
    assert!(!path.exists());
}

#[tokio::test]
async fn a_file_of_somebody_else_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("retryd.sock");
    let address: Listen = format!("unix:{}", path.display()).parse().unwrap();

    fs::write(&path, "a document").unwrap();
    assert!(address.bind().await.is_err());
    assert_eq!(fs::read_to_string(&path).unwrap(), "a document");
    fs::remove_file(&path).unwrap();

    let bound = address.bind().await.unwrap();
    fs::remove_file(&path).unwrap();
    let _successor = StdListener::bind(&path).unwrap();
    drop(bound);
    assert!(path.exists(), "the file of a successor");
}
