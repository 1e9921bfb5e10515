//! How long calls took: each is told once, by the status that it ended with.
use std::collections::BTreeMap;

use retryd::admin::metrics::{Format, Metrics};
use tokio::time::sleep;

use crate::support::{Running, SLOW, eventually, ms, small};

/// Every series of a histogram: what stands behind its name.
fn series(metrics: &Metrics, suffix: &str) -> BTreeMap<String, f64> {
    let text = metrics.render(Format::OpenMetrics).unwrap();
    let name = format!("retryd_rpc_server_call_duration_seconds_{suffix}");
    let lines = text.lines().filter_map(|line| line.strip_prefix(&name));
    lines
        .map(|line| line.rsplit_once(' ').unwrap())
        .map(|(labels, value)| (labels.to_owned(), value.parse().unwrap()))
        .collect()
}

/// How many calls ended with this status. All of those here are of no method of the contract.
fn ended(metrics: &Metrics, status: &str) -> f64 {
    let labels = format!("{{method=\"_other\",status=\"{status}\"}}");
    series(metrics, "count").get(&labels).copied().unwrap_or_default()
}

fn in_flight(metrics: &Metrics) -> i64 {
    let text = metrics.render(Format::OpenMetrics).unwrap();
    let name = "retryd_rpc_server_calls_in_flight{method=\"_other\"} ";
    text.lines().find_map(|line| line.strip_prefix(name)).unwrap().parse().unwrap()
}

/// A method, headers, a message, and the status that the call ends with.
type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a [u8], &'a str);

#[tokio::test]
async fn each_call_is_told_once_by_how_it_ended() {
    let running = Running::with(small()).await;
    let (client, metrics) = (running.client().await, running.metrics.clone());
    let soon = [("grpc-timeout", "50m")];
    let cases: &[Case<'_>] = &[
        ("AtOnce", &[], b"", "OK"),
        ("AtOnce", &[], b"refuse", "INVALID_ARGUMENT"),
        ("AtOnce", &[], b"panic", "INTERNAL"),
        ("Echo", &[], b"hello", "OK"),
        ("Check", &[], &[0; 2000], "RESOURCE_EXHAUSTED"),
        ("Slow", &soon, b"", "DEADLINE_EXCEEDED"),
        ("Open", &soon, b"", "DEADLINE_EXCEEDED"),
        ("Echo", &[("grpc-timeout", "0m")], b"", "DEADLINE_EXCEEDED"),
        ("Panic", &[], b"", "INTERNAL"),
        ("PanicLater", &[], b"", "INTERNAL"),
    ];
    let mut expected = BTreeMap::<&str, f64>::new();
    for (method, headers, message, status) in cases {
        client.call(method, headers, message).await;
        *expected.entry(status).or_default() += 1.0;
        for (status, count) in &expected {
            eventually(&format!("{count} {status} after {method}"), || {
                ended(&metrics, status) == *count
            })
            .await;
        }
        let all: f64 = series(&metrics, "count").values().sum();
        assert_eq!(all, expected.values().sum::<f64>(), "{method}");
        assert_eq!(in_flight(&metrics), 0, "{method}");
    }
    // What is no gRPC has no status.
    client.call("Echo", &[("content-type", "application/json")], b"").await;
    assert_eq!(series(&metrics, "count").values().sum::<f64>(), 10.0);
}

#[tokio::test]
async fn who_gives_up_is_told_as_cancelled_and_is_in_flight_until_then() {
    let running = Running::with(small()).await;
    let (client, metrics) = (running.client().await, running.metrics.clone());
    // One that waits for its answer, and one in the middle of it.
    let waits = client.open("Stuck", &[], Some(b"")).await;
    let reads = client.open("Open", &[], Some(b"")).await;
    eventually("both are in flight", || in_flight(&metrics) == 2).await;
    drop((waits, reads));
    eventually("both have ended", || ended(&metrics, "CANCELLED") == 2.0).await;
    assert_eq!(in_flight(&metrics), 0);

    // A connection that is gone takes its calls with it.
    let _stuck = client.open("Stuck", &[], Some(b"")).await;
    eventually("it is in flight", || in_flight(&metrics) == 1).await;
    client.connection.abort();
    eventually("it has ended", || ended(&metrics, "CANCELLED") == 3.0).await;
}

#[tokio::test]
async fn a_call_takes_from_its_head_to_its_end() {
    let running = Running::with(small()).await;
    let client = running.client().await;
    let mut open = client.open("Echo", &[], None).await;
    sleep(ms(100)).await;
    open.body.send_data(vec![0; 5].into(), true).unwrap();
    open.answer().await.unwrap();
    let took = series(&running.metrics, "sum").values().sum::<f64>();
    assert!(0.1 <= took, "{took}");
    client.call("Slow", &[], b"").await;
    let took = series(&running.metrics, "sum").values().sum::<f64>();
    assert!(0.1 + SLOW.as_secs_f64() <= took, "{took}");
    let buckets = series(&running.metrics, "bucket");
    let below = |le: &str| buckets[&format!("{{le=\"{le}\",method=\"_other\",status=\"OK\"}}")];
    assert_eq!((below("0.1"), below("+Inf")), (0.0, 2.0));
}
