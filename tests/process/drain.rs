//! SIGTERM with everything open: exit 0 within the limit, and no failed call for clients that
//! follow GOAWAY.
use std::time::{Duration, Instant};

use retryd::wire::pb;
use tokio::{io::AsyncWriteExt as _, net::TcpStream, time::timeout};
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};

use crate::support::{
    DECIDE, DECIDE_STREAM, Process, SOON, call, connection, context, encoded, grpc,
};

const DRAIN: [&str; 4] = ["--drain-delay", "1s", "--drain-timeout", "5s"];

fn health(service: &str) -> HealthCheckRequest {
    HealthCheckRequest { service: service.to_owned() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_open_at_once() {
    let limits = ["--drain-delay", "3s", "--drain-timeout", "8s"];
    let mut process = Process::start(&limits);
    let channel = tonic::transport::Endpoint::from_shared(format!("http://{}", process.calls));
    let channel = channel.unwrap().connect().await.unwrap();

    // An idle socket, a silent HTTP/2 client, a call whose message never comes.
    let _idle = TcpStream::connect(process.calls).await.unwrap();
    let mut silent = TcpStream::connect(process.calls).await.unwrap();
    silent.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
    let endless = connection(process.calls).await;
    let mut ready = endless.clone().ready().await.unwrap();
    let (_never, _body) = ready.send_request(grpc(DECIDE).body(()).unwrap(), false).unwrap();

    // An open health Watch, and an open stream that has had an answer.
    let mut watch = HealthClient::new(channel.clone());
    let mut watch = watch.watch(health("")).await.unwrap().into_inner();
    assert_eq!(watch.message().await.unwrap().unwrap().status, 1);
    let streaming = connection(process.calls).await;
    let mut ready = streaming.clone().ready().await.unwrap();
    let open = grpc(DECIDE_STREAM).body(()).unwrap();
    let (response, mut questions) = ready.send_request(open, false).unwrap();
    questions.send_data(encoded(&context("stream")).into(), false).unwrap();
    let mut answers = timeout(SOON, response).await.unwrap().unwrap().into_body();
    assert!(timeout(SOON, answers.data()).await.unwrap().is_some());

    let signalled = Instant::now();
    process.signal("TERM");

    // B35: NOT_SERVING at once, well within the delay, and still answering.
    assert_eq!(timeout(SOON, watch.message()).await.unwrap().unwrap().unwrap().status, 2);
    assert!(signalled.elapsed() < Duration::from_secs(2), "{:?}", signalled.elapsed());
    let mut asked = HealthClient::new(channel);
    for (service, status) in
        [("", 2), ("retryd.v1.RetryService", 2), ("retryd.v1.BudgetService", 2), ("liveness", 1)]
    {
        let answer = asked.check(health(service)).await.unwrap();
        assert_eq!(answer.get_ref().status, status, "{service}");
    }
    process.answers().await;

    // The stream ends at the GOAWAY, in retryd's own words.
    assert!(timeout(SOON, answers.data()).await.unwrap().is_none());
    let trailers = answers.trailers().await.unwrap().unwrap();
    assert_eq!(trailers["grpc-status"], "14");
    assert_eq!(trailers["grpc-retry-pushback-ms"], "-1");
    let status = tonic::Status::from_header_map(&trailers).unwrap();
    let details = tonic_types::StatusExt::get_error_details(&status);
    assert_eq!(details.error_info().unwrap().reason, "STOPPING");

    let status = process.exit(Duration::from_secs(15));
    assert_eq!(status.code(), Some(0));
    let took = signalled.elapsed();
    assert!(took < Duration::from_secs(11), "8 s were allowed, it took {took:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_call_fails_for_clients_that_follow_goaway() {
    let mut process = Process::start(&DRAIN);
    let mut clients = Vec::new();
    for place in 0..8 {
        let at = process.calls;
        clients.push(tokio::spawn(async move {
            let mut calls = 0;
            // A connection that got its GOAWAY takes no new call; a new one is refused at the end.
            while let Ok(stream) = TcpStream::connect(at).await {
                stream.set_nodelay(true).unwrap();
                let Ok((send, driver)) = h2::client::handshake(stream).await else { break };
                let driver = tokio::spawn(driver);
                let mut send = send;
                while let Ok(ready) = send.clone().ready().await {
                    send = ready;
                    let asked = encoded(&context(&format!("client-{place}")));
                    match call(&mut send, grpc(DECIDE), asked).await {
                        Ok(ending) => assert_eq!(ending.code, Some(tonic::Code::Ok)),
                        // Not sent: the client has followed the GOAWAY.
                        Err(error) => {
                            assert!(error.is_go_away(), "a call failed: {error}");
                            assert_eq!(error.reason(), Some(h2::Reason::NO_ERROR), "{error}");
                            break;
                        }
                    }
                    calls += 1;
                }
                driver.await.ok();
            }
            calls
        }));
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    process.signal("TERM");
    let status = tokio::task::spawn_blocking(move || process.exit(Duration::from_secs(10)));
    assert_eq!(status.await.unwrap().code(), Some(0));
    for client in clients {
        let calls = timeout(SOON, client).await.unwrap().unwrap();
        // Enough to have met the drain; how many is a matter of the machine.
        assert!(5 < calls, "only {calls} calls");
    }
}

#[tokio::test]
async fn a_second_signal_ends_at_once() {
    let mut process = Process::start(&["--drain-delay", "20s"]);
    process.signal("TERM");
    process.answers().await;
    process.signal("TERM");
    assert_eq!(process.exit(Duration::from_secs(5)).code(), Some(130));
}

/// B37: a caller that drains is told to stop; a server that drains still decides.
#[tokio::test]
async fn a_draining_server_still_says_yes() {
    let process = Process::start(&["--drain-delay", "20s"]);
    process.signal("TERM");
    process.answers().await;
    let draining = pb::RetryContext { runtime_draining: true, ..context("t") };
    let decision = process.client().await.decide(draining).await.unwrap();
    assert_eq!(decision.get_ref().reason(), pb::Reason::RuntimeDraining);
}
