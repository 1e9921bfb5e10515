//! Outages so small that each attempt can be followed with a pencil.
use retryd::simulate::Outcome;

use super::{outcome, played, scenario};

/// Calls at 0 s, 1 s, ... 9 s. Those of 3 s, 4 s and 5 s fail at once, whenever they are repeated.
const BROKEN: &str = "
duration: 10s
clients: {count: 1, calls_per_second: 1, spread: even, without_key_percent: 0}
service: {workers: 1, work: 100ms, spread: even, queue: 0, failing_percent: 0}
outage: {from: 3s, length: 3s, work_percent: 100, failing_percent: 100}
recovered: {success_percent: 100, for: 1s}
retryd:
  policy: |
    version: 1
    budgets:
      - name: half
        scope: global
        ratio: {percent: 50, interval: 10s, min_retry_rate: {count: 0, interval: 1s}}
    policies:
      - name: default
        budgets: [half]
";

#[test]
fn three_calls_that_fail_at_once() {
    let report = played(&scenario(BROKEN), &[7]);
    for (name, retries, why) in [
        ("none", 0, "nothing is repeated"),
        ("naive", 6, "each of the three twice, within 300 ms"),
        (
            "grpc-throttling",
            3,
            "10 tokens: 9, 8 and 7 are above half, the fourth attempt is the last (6); then 5 and 4",
        ),
        ("envoy-budget", 3, "each once"),
        (
            "retryd",
            3,
            "the question of 3 s tells of 4 calls, which are 2 retries; that of 4 s of half a one, that of 5 s of the other half",
        ),
    ] {
        let outcome = outcome(&report, name);
        assert_eq!((outcome.calls, outcome.succeeded), (10, 7), "{name}");
        assert_eq!(outcome.retries, retries, "{name}: {why}");
        assert_eq!(outcome.attempts, 10 + retries, "{name}");
        assert_eq!(outcome.recovery_s, Some(0.0), "{name}");
    }
    let retryd = outcome(&report, "retryd");
    assert_eq!((retryd.entitled, retryd.accuracy), (3, Some(1.0)));
    let naive = &outcome(&report, "naive").curve;
    let by_second: Vec<(u64, u64)> =
        naive.iter().map(|second| (second.attempts, second.broken)).collect();
    let (well, broken) = ((1, 0), (3, 3));
    assert_eq!(by_second, [well, well, well, broken, broken, broken, well, well, well, well]);
}

/// A floor of COUNT retries a second, and nothing earned. Without the store it grants nothing.
const FLOOR: &str = "
retryd:
  replicas: REPLICAS
  store_lost_from: 3300ms
  store_lost: 4s
  policy: |
    version: 1
    budgets:
      - name: floor
        scope: global
        ratio: {percent: 0, interval: 10s, min_retry_rate: {count: COUNT, interval: 1s}}
        on_store_loss: deny
    policies:
      - name: default
        budgets: [floor]
";

/// The outage of `BROKEN`, with the budget of `FLOOR`.
fn with_floor(count: u32, replicas: u32) -> String {
    let (outage, _) = BROKEN.split_once("retryd:").unwrap();
    let floor = FLOOR.replace("COUNT", &count.to_string());
    format!("{outage}{}", floor.replace("REPLICAS", &replicas.to_string()))
}

/// Each of the three calls wants two retries, and the floor has two a second. The store is lost after those
/// of 3 s are made; by 4 s four exchanges were missed, and so those of 4 s and 5 s are not granted.
#[test]
fn what_needs_the_store_ends_with_it() {
    let report = played(&scenario(&with_floor(2, 1)), &[7]);
    for (name, by_second) in [("retryd-shared", [3, 3, 3]), ("retryd-store-lost", [3, 1, 1])] {
        let attempts = outcome(&report, name).curve.iter().map(|second| second.attempts);
        assert_eq!(attempts.skip(3).take(3).collect::<Vec<_>>(), by_second, "{name}");
    }
}

/// Ten calls fail each second, and the floor has one retry a second: one process grants one in each of the
/// three. Three that did not share would grant nine at least; of those that do, each may hold one ahead.
#[test]
fn replicas_that_share_have_one_floor() {
    let text = with_floor(1, 3)
        .replace("calls_per_second: 1,", "calls_per_second: 10,")
        .replace("workers: 1,", "workers: 2,");
    for seed in 1..9 {
        let report = played(&scenario(&text), &[seed]);
        assert_eq!(outcome(&report, "retryd").retries, 3);
        let shared = outcome(&report, "retryd-shared").retries;
        assert!((3..=6).contains(&shared), "seed {seed}: {shared}");
    }
}

/// The second attempt of AWS comes up to 1 s later, and the third up to 2 s after that: by then the
/// outage may be over.
#[test]
fn a_long_wait_may_outlast_the_outage() {
    let report = played(&scenario(BROKEN), &[7]);
    let aws = outcome(&report, "aws-standard");
    assert!((3..=6).contains(&aws.retries) && (7..=10).contains(&aws.succeeded), "{aws:?}");
}

/// One worker, 600 ms an attempt and three times that from 3 s to 6 s. Who waits a second gives up.
///
/// ```text
/// call     3          4          5          6          7          8          9
/// begins   3.0        4.8        6.6        7.2        7.8        8.4        9.0
/// ends     4.8        6.6        7.2        7.8        8.4        9.0        9.6
/// given up 4.0        5.0        6.0        7.0        8.0        9.0
/// ```
const SLOW: &str = "
duration: 15s
clients: {count: 1, calls_per_second: 1, spread: even, attempt_timeout: 1s, without_key_percent: 0}
service: {workers: 1, work: 600ms, spread: even, queue: 10, failing_percent: 0, given_up_work_percent: GIVEN_UP}
outage: {from: 3s, length: 3s, work_percent: 300, failing_percent: 0}
recovered: {success_percent: 100, for: 3s}
";

#[test]
fn work_for_nobody_delays_those_who_still_wait() {
    let report = played(&scenario(&SLOW.replace("GIVEN_UP", "100")), &[1]);
    let none = outcome(&report, "none");
    assert_eq!((none.calls, none.succeeded, none.for_nobody), (15, 9, 6));
    assert_eq!(none.recovery_s, Some(3.0), "the call of 9 s is the first that succeeds");
    let queued: Vec<u64> = none.curve.iter().map(|second| second.queued).collect();
    assert_eq!(
        queued[..10],
        [0, 0, 0, 0, 0, 1, 1, 0, 0, 0],
        "5 just before 6 s, 6 just before 7 s"
    );
}

#[test]
fn a_service_that_looks_at_deadlines_is_back_sooner() {
    let report = played(&scenario(&SLOW.replace("GIVEN_UP", "0")), &[1]);
    let none = outcome(&report, "none");
    // At 6.6 s call 5 is dropped, and call 6 begins: until 7.2 s, which is too late. Call 7 is not.
    assert_eq!((none.succeeded, none.for_nobody), (11, 3));
    assert_eq!(none.curve.iter().map(|second| second.dropped).sum::<u64>(), 1);
    assert_eq!(none.recovery_s, Some(1.0));
}

/// Each attempt takes 600 ms, and each caller waits 500 ms. So all of it is done, and nobody knows.
#[test]
fn what_is_repeated_without_knowing_is_done_again() {
    let text = "
duration: 10s
clients: {count: 1, calls_per_second: 1, spread: even, attempt_timeout: 500ms, without_key_percent: 100}
service: {workers: 10, work: 600ms, spread: even, queue: 0, failing_percent: 0}
outage: {from: 3s, length: 0s}
recovered: {for: 1s}
";
    let report = played(&scenario(text), &[1]);
    for (name, attempts) in [
        ("none", 10),
        ("naive", 30),
        ("grpc-throttling", 10),
        ("envoy-budget", 20),
        ("retryd", 10),
        ("retryd-shared", 10),
    ] {
        let outcome = outcome(&report, name);
        let told = (outcome.attempts, outcome.for_nobody, outcome.processed_again);
        assert_eq!(told, (attempts, attempts, attempts - 10), "{name}");
        assert_eq!((outcome.succeeded, outcome.recovery_s), (0, None), "{name}");
    }
    // With a key it is no harm.
    let report = played(
        &scenario(&text.replace("without_key_percent: 100", "without_key_percent: 0")),
        &[1],
    );
    let retryd = outcome(&report, "retryd");
    assert_eq!((retryd.attempts, retryd.processed_again), (30, 0));
}

/// Two calls in the same 100 ms and one worker: where the queue has no room, the second is rejected.
#[test]
fn what_finds_the_queue_full_is_rejected() {
    let text = "
duration: 5s
clients: {count: 1, calls_per_second: 2, spread: even, without_key_percent: 0}
service: {workers: 1, work: 700ms, spread: even, queue: 0, failing_percent: 0}
outage: {from: 1s, length: 0s}
recovered: {for: 1s}
";
    let none = played(&scenario(text), &[1]);
    let none = outcome(&none, "none");
    // Begun at 0, 1, 2 ... s; those of 0.5, 1.5, 2.5 ... s find the worker busy.
    assert_eq!((none.calls, none.succeeded), (10, 5));
    assert_eq!(none.curve.iter().map(|second| second.rejected).sum::<u64>(), 5);
    let queued = played(&scenario(&text.replace("queue: 0", "queue: 1")), &[1]);
    let queued = outcome(&queued, "none");
    // A room to wait in makes it worse. The call of 0.5 s is answered at 1.4 s; that of 1 s begins then, and
    // its caller goes at 2 s. From there on each waits too long, and those of 2 and 4 s find the room taken.
    let rejected = queued.curve.iter().map(|second| second.rejected).sum::<u64>();
    assert_eq!((queued.succeeded, queued.for_nobody, rejected), (2, 6, 2));
}

/// A run by chance cannot be worked out by hand: that it is the same on every machine is seen by its figures.
#[test]
fn a_seed_plays_the_same_for_ever() {
    let text = "
duration: 20s
clients: {count: 5, calls_per_second: 50, without_key_percent: 20}
service: {workers: 3, queue: 40}
outage: {from: 5s, length: 5s}
recovered: {for: 1s}
";
    let report = played(&scenario(text), &[1]);
    // Calls, those that succeed, attempts, work for nobody, calls done again.
    for (name, figures) in [
        ("none", [982, 734, 982, 69, 0]),
        ("naive", [982, 749, 1479, 69, 1]),
        ("grpc-throttling", [982, 736, 1007, 69, 0]),
    ] {
        let Outcome { calls, succeeded, attempts, for_nobody, processed_again, .. } =
            outcome(&report, name).clone();
        assert_eq!([calls, succeeded, attempts, for_nobody, processed_again], figures, "{name}");
    }
}
