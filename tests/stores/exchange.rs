//! What the pool answers, in every kind of store.
use retryd::budget::shared::exchange::Call;
use retryd::budget::shared::pools::{Attendance, Pools as _};
use retryd::clock::Dice;
use retryd::remote::{Credentials, RedisPools, Settings, SettingsError};

use crate::servers::{Certificates, Cluster, Flavour, Guard, PASSWORD, Sentinels, Server};
use crate::support::{SIZES, attend, call, errand, exchange, replica, settings, try_exchange};

/// Leases, debts, units and sizes, told and asked by two replicas.
async fn all_of_it(mut one: RedisPools, mut other: RedisPools, at: &str) {
    let whole = |level: u64| level / SIZES.parts;

    // A pool begins with what the replica says, leases it, and takes it back.
    let leased = exchange(&mut one, "p", saying(1, |call| call.wants = 10)).await;
    assert_eq!((leased.granted, leased.active, leased.debt), (10, 1, 0), "{at}");
    assert_eq!(whole(leased.level), 90, "{at}");
    let shared = exchange(&mut other, "p", saying(1, |call| call.wants = 4)).await;
    assert_eq!((shared.granted, whole(shared.level)), (4, 86), "{at}");
    let back = exchange(&mut one, "p", saying(2, |call| call.returns = 10)).await;
    assert_eq!((back.granted, whole(back.level)), (0, 96), "{at}");

    // Late, or twice.
    let stale = saying(2, |call| (call.wants, call.owes) = (10, 7));
    let stale = exchange(&mut one, "p", stale).await;
    assert_eq!((stale.granted, stale.debt, whole(stale.level)), (0, 0, 96), "{at}");

    // A debt is paid out of the level, then out of what comes in.
    let paid = exchange(&mut one, "p", saying(3, |call| call.owes = 6)).await;
    assert_eq!((paid.debt, whole(paid.level)), (0, 90), "{at}");
    let owed = exchange(&mut one, "p", saying(4, |call| call.owes = 95)).await;
    assert_eq!((owed.debt, whole(owed.level)), (5, 0), "{at}");
    let began = owed.now_ms * 10;
    let units = saying(5, |call| call.gives = vec![(began, 900)]);
    let units = exchange(&mut one, "p", units).await;
    assert_eq!((units.debt, units.units_left), (0, 400), "{at}: five retries of 100 units");

    // Units go to whoever lacks them, with the time of their slot.
    let taken = exchange(&mut other, "p", saying(2, |call| call.wants_units = 300)).await;
    let slot = began / SIZES.interval_ms * SIZES.interval_ms;
    assert_eq!((taken.units, taken.units_left), (vec![(slot, 200)], 200), "{at}: at most half");

    // Another size, that of a newer policy file.
    let mut smaller = call(6);
    (smaller.sizes.tokens, smaller.returns) = (10, 40);
    let smaller = exchange(&mut one, "p", smaller).await;
    assert!(whole(smaller.level) <= 10, "{at}: {smaller:?}");

    // The fleet.
    assert_eq!(attend(&mut one).await.unwrap().replicas, 1, "{at}");
    let fleet = attend(&mut other).await.unwrap();
    assert_eq!((fleet.replicas, fleet.emptied_ms), (2, None), "{at}");
    one.leave().await.unwrap();
    assert_eq!(attend(&mut other).await.unwrap().replicas, 1, "{at}");
}

fn saying(sequence: u64, change: impl FnOnce(&mut Call)) -> Call {
    let mut call = call(sequence);
    change(&mut call);
    call
}

fn assert_every_key_expires(server: &Server) {
    for key in server.keys() {
        let left_ms: i64 = server.ask(&["PTTL", &key]);
        assert!((1..=86_400_000).contains(&left_ms), "`{key}`: {left_ms}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn b49_every_kind_of_server_shares_and_every_key_expires() {
    for flavour in Flavour::ALL {
        let server = Server::start(flavour);
        let at = format!("{flavour:?}");
        all_of_it(replica(&server.url(), "one"), replica(&server.url(), "other"), &at).await;
        let mut keys = server.keys();
        keys.sort();
        assert_eq!(keys, ["retryd:fleet", "retryd:pool:p"], "{at}");
        assert_every_key_expires(&server);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_database_is_another_store() {
    let server = Server::start(Flavour::Redis7);
    let url = format!("{}/3", server.url());
    exchange(&mut replica(&url, "one"), "p", call(1)).await;
    assert!(server.keys().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn b47_a_cluster_shares_pools_of_every_slot() {
    for flavour in Flavour::ALL {
        let cluster = Cluster::start(flavour);
        let at = format!("a cluster of {flavour:?}");
        all_of_it(replica(&cluster.url(), "one"), replica(&cluster.url(), "other"), &at).await;
        let errands: Vec<_> = (0..200).map(|n| errand(&format!("t_{n}:b-{n}"), call(1))).collect();
        let answers = replica(&cluster.url(), "one").exchange(&errands).await;
        assert_eq!(answers.len(), 200);
        for (answer, errand) in answers.iter().zip(&errands) {
            assert!(answer.is_ok(), "{at}: {errand:?}: {answer:?}");
        }
        for node in &cluster.nodes {
            assert!(20 < node.keys().len(), "{at}: slots of every node");
            assert_every_key_expires(node);
        }
        assert_eq!(cluster.keys().len(), 202);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sentinels_name_the_master() {
    // One password for all, one for the servers alone, or none.
    for guard in [Guard::All, Guard::Servers, Guard::Nobody] {
        let group = Sentinels::start(Flavour::Redis7, guard);
        let known = |name: &str| {
            let password = (guard != Guard::Nobody).then(|| PASSWORD.to_owned());
            let credentials = Credentials { user: None, password };
            let settings = Settings { credentials, ..settings(&group.url(), name) };
            RedisPools::new(settings, Dice::fair()).unwrap()
        };
        all_of_it(known("one"), known("other"), &format!("sentinels, {guard:?}")).await;
        assert_every_key_expires(&group.master);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_and_a_password() {
    for flavour in [Flavour::Redis7, Flavour::Valkey8] {
        let certificates = Certificates::make();
        let server = Server::secured(flavour, &certificates, "open sesame");
        let with = |name: &str, password: Option<&str>, ca: bool| {
            let credentials = Credentials { user: None, password: password.map(str::to_owned) };
            let ca_file = ca.then(|| certificates.authority());
            let settings = Settings { credentials, ca_file, ..settings(&server.url(), name) };
            assert!(!format!("{settings:?}").contains("sesame"));
            let pools = RedisPools::new(settings, Dice::fair()).unwrap();
            assert!(!format!("{pools:?}").contains("sesame"));
            pools
        };
        let right = |name: &str| with(name, Some("open sesame"), true);
        all_of_it(right("one"), right("other"), &format!("TLS of {flavour:?}")).await;
        for (mut wrong, part) in [
            (with("one", Some("open rye"), true), "authentication failed"),
            (with("one", None, true), "NOAUTH"),
            (with("one", Some("open sesame"), false), "certificate"),
        ] {
            let error = try_exchange(&mut wrong, "p", call(9)).await.unwrap_err().to_string();
            assert!(error.contains(part), "{flavour:?}: {error}");
            assert!(!error.contains("open "), "{flavour:?}: {error}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_work_with_no_store_is_refused_at_once() {
    let refused = |change: &dyn Fn(&mut Settings)| {
        let mut settings = settings("redis://127.0.0.1", "one");
        change(&mut settings);
        RedisPools::new(settings, Dice::fair()).map(drop).unwrap_err()
    };
    let slots = refused(&|settings| settings.prefix = "{x}".to_owned());
    assert_eq!(slots, SettingsError::Prefix("{x}".to_owned()));
    let user = refused(&|settings| settings.credentials.user = Some("me".to_owned()));
    assert_eq!(user, SettingsError::UserWithoutPassword("me".to_owned()));
    let plain = refused(&|settings| settings.ca_file = Some("/ca.pem".into()));
    assert_eq!(plain, SettingsError::CaWithoutTls { plain: "redis", tls: "rediss" });
    let missing = refused(&|settings| {
        settings.url = "rediss://127.0.0.1".parse().unwrap();
        settings.ca_file = Some("/no/such/ca.pem".into());
    });
    assert!(missing.to_string().contains("`/no/such/ca.pem`"), "{missing}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_lost_the_fleet_says_so() {
    let server = Server::start(Flavour::Redis7);
    let mut one = replica(&server.url(), "one");
    let before = attend(&mut one).await.unwrap();
    assert_eq!(before.emptied_ms, None);
    let again = |attended_ms| Attendance { now_ms: before.now_ms + 10, attended_ms };
    assert_eq!(one.attend(again(before.now_ms)).await.unwrap().emptied_ms, None);
    let () = server.ask(&["FLUSHALL"]);
    // Whoever comes first need not know.
    let mut newcomer = replica(&server.url(), "newcomer");
    let born = newcomer.attend(again(0)).await.unwrap();
    assert_eq!(born.emptied_ms, None);
    let found = one.attend(again(before.now_ms)).await.unwrap();
    assert_eq!(found.emptied_ms, Some(born.now_ms));
    assert_eq!(attend(&mut newcomer).await.unwrap().emptied_ms, found.emptied_ms);
    // Who ends leaves no trace in an empty store: it would look like one that was never lost.
    let () = server.ask(&["FLUSHALL"]);
    one.leave().await.unwrap();
    assert!(server.keys().is_empty());
}

/// Somebody, or another version, has written there. It is as good as gone, and expires again.
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_is_written_anew() {
    let server = Server::start(Flavour::Redis7);
    let mut one = replica(&server.url(), "one");
    let packed = "redis.call('SET', KEYS[1], cmsgpack.pack({ at = 1, level = 'x', born = 1 }))";
    let spoilt: [&[&str]; 4] = [
        &["SET", "{}", "garbage"],
        &["SET", "{}", "5"],
        &["LPUSH", "{}", "1"],
        &["EVAL", packed, "1", "{}"],
    ];
    for (round, command) in (0..).zip(spoilt) {
        for key in ["retryd:pool:p", "retryd:fleet"] {
            let _: i64 = server.ask(&["DEL", key]);
            let command: Vec<&str> =
                command.iter().map(|word| if *word == "{}" { key } else { word }).collect();
            let _: redis::Value = server.ask(&command);
        }
        let reply = exchange(&mut one, "p", saying(round + 1, |call| call.wants = 4)).await;
        assert_eq!(reply.granted, 4, "{command:?}");
        assert_eq!(attend(&mut one).await.unwrap().replicas, 1, "{command:?}");
        assert_every_key_expires(&server);
    }
}
