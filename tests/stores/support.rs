//! Replicas that exchange, and what they say.
use std::time::Duration;

use retryd::budget::shared::exchange::{Call, Reply, Sizes};
use retryd::budget::shared::pools::{Attendance, Errand, Failure, Fleet, Pools as _};
use retryd::clock::Dice;
use retryd::remote::{CALL_MAX, Credentials, RedisPools, Settings};

use crate::servers::{SOON, Server};

/// 100 tokens, of which each millisecond brings a thousandth; earned units count for 10 s.
pub(crate) const SIZES: Sizes = Sizes {
    tokens: 100,
    parts: 1_000_000,
    refill: 1_000,
    interval_ms: 10_000,
    price: 1,
    forgives: false,
};

pub(crate) fn settings(url: &str, replica: &str) -> Settings {
    Settings {
        url: url.parse().unwrap(),
        credentials: Credentials::default(),
        ca_file: None,
        prefix: "retryd".to_owned(),
        replica: replica.to_owned(),
        call_max: SOON,
    }
}

/// A replica that waits as long as it takes.
pub(crate) fn replica(url: &str, name: &str) -> RedisPools {
    RedisPools::new(settings(url, name), Dice::fair()).unwrap()
}

/// A replica that waits as long as in service.
pub(crate) fn hasty_replica(url: &str, name: &str) -> RedisPools {
    RedisPools::new(Settings { call_max: CALL_MAX, ..settings(url, name) }, Dice::fair()).unwrap()
}

/// Says nothing but its number.
pub(crate) fn call(sequence: u64) -> Call {
    Call {
        sequence,
        sizes: SIZES,
        start: SIZES.full(),
        debt: 0,
        gives: Vec::new(),
        wants_units: 0,
        holds: 0,
        wants: 0,
        returns: 0,
        owes: 0,
    }
}

pub(crate) fn errand(pool: &str, call: Call) -> Errand {
    Errand { pool: pool.into(), now_ms: 0, call }
}

/// What the pool answers. On a busy machine an attempt to connect may take too long; what was
/// refused for that may be said again.
pub(crate) async fn exchange(pools: &mut RedisPools, pool: &str, call: Call) -> Reply {
    let until = tokio::time::Instant::now() + SOON;
    loop {
        match try_exchange(pools, pool, call.clone()).await {
            Ok(reply) => return reply,
            Err(Failure::Refused(text))
                if text.starts_with("cannot connect") && tokio::time::Instant::now() < until =>
            {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Err(failure) => panic!("`{pool}`: {failure:?}"),
        }
    }
}

pub(crate) async fn try_exchange(
    pools: &mut RedisPools,
    pool: &str,
    call: Call,
) -> Result<Reply, Failure> {
    let mut answers = pools.exchange(&[errand(pool, call)]).await;
    assert_eq!(answers.len(), 1);
    answers.pop().unwrap()
}

pub(crate) async fn attend(pools: &mut RedisPools) -> Result<Fleet, Failure> {
    pools.attend(Attendance { now_ms: 0, attended_ms: 0 }).await
}

/// Asks until the store answers, as the service does, and tells how it was refused before.
pub(crate) async fn until_it_answers(pools: &mut RedisPools, first: u64) -> (Reply, Vec<Failure>) {
    let mut failures = Vec::new();
    let until = tokio::time::Instant::now() + SOON;
    for sequence in first.. {
        match try_exchange(pools, "a", call(sequence)).await {
            Ok(reply) => return (reply, failures),
            Err(failure) => failures.push(failure),
        }
        assert!(tokio::time::Instant::now() < until, "{:?}", failures.last());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    unreachable!()
}

/// The numbers of a server's connections, without that of whoever asks.
pub(crate) fn connections(server: &Server) -> Vec<String> {
    let list: String = server.ask(&["CLIENT", "LIST"]);
    let others = list.lines().filter(|line| !line.contains("cmd=client"));
    others.map(|line| line.split(' ').next().unwrap().to_owned()).collect()
}
