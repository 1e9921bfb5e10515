//! Signals drive the drain. Alone in its process, since a signal reaches all of it.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
use std::{process::Command, sync::Arc, time::Duration};

use retryd::{
    admin::metrics::Metrics,
    clock::Clock,
    server::{Drain, Ended, Health, Limits, Listen, Server},
};
use tokio::time::{sleep, timeout};
use tonic::service::Routes;

#[tokio::test]
async fn the_first_begins_the_drain_and_the_second_ends_it() {
    let hour = Duration::from_secs(3600);
    for [first, second] in [["-TERM", "-INT"], ["-INT", "-TERM"], ["-TERM", "-TERM"]] {
        let health = Health::new().await;
        let server = Server {
            listeners: vec!["127.0.0.1:0".parse::<Listen>().unwrap().bind().await.unwrap()],
            probe: None,
            routes: Routes::new(health.service()),
            at_once: None,
            limits: Limits { drain_delay: hour, drain_timeout: hour, ..Limits::default() },
            health,
            metrics: Arc::new(Metrics::new()),
            clock: Clock::system(),
            tls: None,
            traces: None,
        };
        let drain = Drain::new();
        drain.on_signals().unwrap();
        let run = tokio::spawn(server.run(drain.clone()));
        assert!(!drain.begun().is_cancelled());

        raise(first);
        timeout(Duration::from_secs(10), drain.begun().cancelled()).await.expect("begun");
        sleep(Duration::from_millis(100)).await;
        assert!(!run.is_finished(), "it keeps answering");

        raise(second);
        let ended = timeout(Duration::from_secs(10), run).await.expect("ended").unwrap();
        assert_eq!(ended, Ended::Hurried(0));
    }
}

fn raise(signal: &str) {
    let process = std::process::id().to_string();
    assert!(Command::new("kill").args([signal, &process]).status().unwrap().success());
}
