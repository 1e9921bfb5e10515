//! Servers that forget, stop, refuse or go.
use std::time::Duration;

use retryd::budget::shared::pools::{Failure, Pools as _};
use retryd::clock::Dice;
use retryd::remote::{RedisPools, Settings};

use crate::servers::{Cluster, Flavour, Guard, Moving, Sentinels, Server, wait_for};
use crate::support::{
    call, connections, errand, exchange, hasty_replica, replica, settings, try_exchange,
    until_it_answers,
};

/// This process's connections to a port, read from the kernel: the server may not answer.
fn open_connections(port: u16) -> usize {
    const ESTABLISHED: &str = "01";
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let remote = format!(":{port:04X}");
    let is_one = |row: &&str| {
        let cells: Vec<&str> = row.split_whitespace().collect();
        cells[2].ends_with(&remote) && cells[3] == ESTABLISHED
    };
    table.lines().skip(1).filter(is_one).count()
}

fn calls(server: &Server, command: &str) -> u64 {
    let line = server.info("commandstats", &format!("cmdstat_{command}")).unwrap_or_default();
    let calls = line.split(',').next().and_then(|part| part.strip_prefix("calls="));
    calls.map_or(0, |calls| calls.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn b45_a_script_that_was_flushed_is_loaded_once() {
    for flavour in Flavour::ALL {
        let server = Server::start(flavour);
        let mut pools = replica(&server.url(), "one");
        exchange(&mut pools, "p", call(1)).await;
        assert_eq!(calls(&server, "script|load"), 1, "{flavour:?}");
        let () = server.ask(&["SCRIPT", "FLUSH"]);
        let errands: Vec<_> = (0..200).map(|n| errand(&format!("p{n}"), call(1))).collect();
        let answers = pools.exchange(&errands).await;
        assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 200, "{flavour:?}");
        assert_eq!(calls(&server, "script|load"), 2, "{flavour:?}");
        assert_eq!(server.keys().len(), 201, "{flavour:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn b45_in_a_cluster_every_node_learns_the_script() {
    let cluster = Cluster::start(Flavour::Redis7);
    let mut pools = replica(&cluster.url(), "one");
    let errands: Vec<_> = (0..200).map(|n| errand(&format!("p{n}"), call(1))).collect();
    assert!(pools.exchange(&errands).await.iter().all(Result::is_ok));
    for node in &cluster.nodes {
        let () = node.ask(&["SCRIPT", "FLUSH"]);
    }
    let errands: Vec<_> = (0..200).map(|n| errand(&format!("p{n}"), call(2))).collect();
    assert!(pools.exchange(&errands).await.iter().all(Result::is_ok));
    for node in &cluster.nodes {
        assert_eq!(calls(node, "script|load"), 2);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn b48_a_server_that_stands_still_holds_nobody_up() {
    for flavour in Flavour::ALL {
        let server = Server::start(flavour);
        let mut pools = hasty_replica(&server.url(), "one");
        until_it_answers(&mut pools, 1).await;
        server.freeze();
        let sent = try_exchange(&mut pools, "p", call(100)).await;
        assert!(matches!(sent, Err(Failure::Unknown(_))), "{flavour:?}: {sent:?}");
        for sequence in 101..150 {
            // From here on there is no connection, so that nothing is sent.
            let kept = try_exchange(&mut pools, "p", call(sequence)).await;
            assert!(matches!(kept, Err(Failure::Refused(_))), "{flavour:?}: {kept:?}");
            // On a busy machine one may be closing while the next one opens.
            assert!(open_connections(server.port) <= 3, "{flavour:?}: they pile up");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        server.thaw();
        until_it_answers(&mut pools, 200).await;
        wait_for("one connection", || connections(&server).len() == 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_waits_for_a_server_that_is_not_there() {
    let port = crate::servers::free_port();
    let mut pools = replica(&format!("redis://127.0.0.1:{port}"), "one");
    for sequence in 1..10 {
        let failure = try_exchange(&mut pools, "p", call(sequence)).await.unwrap_err();
        let Failure::Refused(text) = &failure else { panic!("{failure:?}") };
        assert!(text.contains(&format!("cannot connect to `redis://127.0.0.1:{port}`")), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_comes_back_empty_is_used_again() {
    let mut server = Server::start(Flavour::Redis7);
    let mut pools = replica(&server.url(), "one");
    exchange(&mut pools, "a", call(1)).await;
    server.kill();
    try_exchange(&mut pools, "a", call(2)).await.unwrap_err();
    server.start_empty();
    until_it_answers(&mut pools, 3).await;
    assert_eq!(server.keys(), ["retryd:pool:a"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_became_a_replica_refuses() {
    let server = Server::start(Flavour::Redis7);
    let master = Server::start(Flavour::Redis7);
    let mut pools = replica(&server.url(), "one");
    exchange(&mut pools, "a", call(1)).await;
    let before = connections(&server);
    let () = server.ask(&["REPLICAOF", "127.0.0.1", &master.port.to_string()]);
    wait_for("a replica", || {
        server.info("replication", "master_link_status").as_deref() == Some("up")
    });
    let refused = try_exchange(&mut pools, "a", call(2)).await.unwrap_err();
    assert!(matches!(&refused, Failure::Refused(_)), "{refused:?}");
    let () = server.ask(&["REPLICAOF", "NO", "ONE"]);
    until_it_answers(&mut pools, 3).await;
    // It might have been the address of another server by now.
    wait_for("a new connection alone", || {
        connections(&server).iter().all(|connection| !before.contains(connection))
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_server_refuses_and_keeps_its_connection() {
    for flavour in Flavour::ALL {
        let server = Server::with(flavour, &["--maxmemory-policy", "noeviction"]);
        let mut pools = replica(&server.url(), "one");
        exchange(&mut pools, "a", call(1)).await;
        let before = connections(&server);
        let () = server.ask(&["CONFIG", "SET", "maxmemory", "1"]);
        let refused = try_exchange(&mut pools, "a", call(2)).await.unwrap_err();
        let Failure::Refused(text) = &refused else { panic!("{flavour:?}: {refused:?}") };
        assert!(text.contains("OOM"), "{flavour:?}: {text}");
        let () = server.ask(&["CONFIG", "SET", "maxmemory", "0"]);
        exchange(&mut pools, "a", call(3)).await;
        assert_eq!(connections(&server), before, "{flavour:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_master_is_found_by_the_sentinels() {
    let mut group = Sentinels::start(Flavour::Valkey8, Guard::Nobody);
    let mut pools = replica(&group.url(), "one");
    exchange(&mut pools, "a", call(1)).await;
    group.fail_over();
    until_it_answers(&mut pools, 2).await;
    assert_eq!(group.replica.info("replication", "role").as_deref(), Some("master"));
    assert!(group.replica.keys().contains(&"retryd:pool:a".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_that_moves_is_followed() {
    let cluster = Cluster::start(Flavour::Redis7);
    let mut pools = replica(&cluster.url(), "one");
    exchange(&mut pools, "a", call(1)).await;
    let key = "retryd:pool:a";
    let (from, others): (Vec<_>, Vec<_>) =
        cluster.nodes.iter().partition(|node| node.keys().contains(&key.to_owned()));
    let moving = Moving::begin(from[0], others[0], key);
    // Half way: its new home serves it to those who were sent there.
    let asked = exchange(&mut pools, "a", call(2)).await;
    assert_eq!((asked.granted, asked.active), (0, 1));
    moving.end();
    exchange(&mut pools, "a", call(3)).await;
    assert!(others[0].keys().contains(&key.to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn b48_a_node_that_stands_still_does_not_hold_up_the_others() {
    let cluster = Cluster::start(Flavour::Redis7);
    let settings = Settings { call_max: Duration::from_secs(1), ..settings(&cluster.url(), "one") };
    let mut pools = RedisPools::new(settings, Dice::fair()).unwrap();
    let errands =
        |sequence| (0..30).map(|n| errand(&format!("p{n}"), call(sequence))).collect::<Vec<_>>();
    let all_answer = async |pools: &mut RedisPools, first: u64| {
        for sequence in first..first + 1_000 {
            if pools.exchange(&errands(sequence)).await.iter().all(Result::is_ok) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("the cluster does not answer");
    };
    all_answer(&mut pools, 1).await;
    let silent = &cluster.nodes[1];
    let its: Vec<String> = silent.keys();
    silent.freeze();
    for (answer, errand) in pools.exchange(&errands(2_000)).await.into_iter().zip(errands(2_000)) {
        if its.contains(&format!("retryd:pool:{}", errand.pool)) {
            assert!(matches!(answer, Err(Failure::Unknown(_))), "{errand:?}: {answer:?}");
        } else {
            assert!(answer.is_ok(), "{errand:?}: {answer:?}");
        }
    }
    silent.thaw();
    all_answer(&mut pools, 3_000).await;
}
