//! What happens twice: attempts, reports and leases.
use retryd::budget::{
    AttemptName, Grant, GrantName, LeaseName, Once, Payment, ReportName, Store, Turn,
};

use super::{Bench, ask, bucket, budget, charge};

const ATTEMPT: AttemptName<'_> =
    AttemptName { tenant: "a", operation: "op", call_id: "call", attempts_made: 1 };
const LEASE: LeaseName<'_> = LeaseName { tenant: "a", operation: "op", lease: "lease" };

fn report(id: &str) -> ReportName<'_> {
    ReportName { caller: &[], id }
}

fn turn(once: &Once, attempt: AttemptName<'_>, now_ms: u64) -> Turn {
    once.ask(attempt, false, now_ms, |turn, _| turn)
}

#[test]
fn an_attempt_is_new_once_and_free_three_times() {
    use Turn::{First, Further, Repeat};
    let once = Once::new();
    let turns =
        [(); 7].map(|()| once.ask(ATTEMPT, false, 0, |turn, grant| (turn, grant.is_some())));
    let [first, repeat, further] = [(First, true), (Repeat, true), (Further, false)];
    assert_eq!(turns, [first, repeat, repeat, repeat, further, further, further]);
}

#[test]
fn without_a_call_id_every_ask_is_new_and_nothing_is_remembered() {
    let once = Once::default();
    let nameless = AttemptName { call_id: "", ..ATTEMPT };
    for _ in 0..6 {
        let heard = once.ask(nameless, false, 0, |turn, grant| (turn, grant.is_some()));
        assert_eq!(heard, (Turn::First, false));
    }
    assert_eq!(once.release(GrantName::Attempt(nameless), 0, |_| 1), 0);
}

#[test]
fn a_dry_run_hears_what_an_ask_would_and_is_not_remembered() {
    let once = Once::new();
    let dry = |()| once.ask(ATTEMPT, true, 0, |turn, _| turn);
    assert_eq!([(); 5].map(dry), [Turn::First; 5]);
    assert_eq!(turn(&once, ATTEMPT, 0), Turn::First);
    assert_eq!([(); 5].map(dry), [Turn::Repeat; 5]);
    let turns = [(); 4].map(|()| turn(&once, ATTEMPT, 0));
    assert_eq!(turns, [Turn::Repeat, Turn::Repeat, Turn::Repeat, Turn::Further]);
    assert_eq!([(); 5].map(dry), [Turn::Further; 5]);
}

#[test]
fn an_attempt_is_forgotten_ten_seconds_after_its_first_ask() {
    let once = Once::new();
    let turns = [5, 9_000, 10_004, 10_005].map(|now_ms| turn(&once, ATTEMPT, now_ms));
    assert_eq!(turns, [Turn::First, Turn::Repeat, Turn::Repeat, Turn::First]);
}

#[test]
fn attempts_are_told_apart_by_every_part_of_their_names() {
    let once = Once::new();
    let named = |tenant, operation, call_id, attempts_made| {
        turn(&once, AttemptName { tenant, operation, call_id, attempts_made }, 0)
    };
    for (tenant, operation, call_id, attempts_made) in [
        ("a", "op", "call", 1),
        ("b", "op", "call", 1),
        ("a", "po", "call", 1),
        ("a", "op", "Call", 1),
        ("a", "op", "call", 2),
        ("a", "op", "call", 257),
        ("aop", "", "call", 1),
        ("", "aop", "call", 1),
        ("a", "opcall", "c", 1),
        ("a", "opc", "all", 1),
        ("ao", "p", "call", 1),
        ("a", "o", "pcall", 1),
    ] {
        let name = format!("{tenant} {operation} {call_id} {attempts_made}");
        assert_eq!(named(tenant, operation, call_id, attempts_made), Turn::First, "{name}");
        assert_eq!(named(tenant, operation, call_id, attempts_made), Turn::Repeat, "{name}");
    }
}

#[test]
fn what_was_released_is_paid_again() {
    let bench = Bench::of(&[budget("b", bucket(30))]);
    let once = Once::new();
    let pay = || {
        once.ask(ATTEMPT, false, 0, |_, grant| {
            charge(&bench, ask(bench.holder("a")), grant.unwrap())
        })
    };
    let release = || {
        let holder = bench.holder("a");
        let give_back = |grant: &mut _| bench.memory.give_back(holder, grant, 7, 0);
        once.release(GrantName::Attempt(ATTEMPT), 0, give_back)
    };
    assert_eq!(release(), 0);
    assert_eq!([pay(), pay()], [Some(Payment::Paid), Some(Payment::Remembered)]);
    assert_eq!([release(), release()], [1, 0]);
    assert_eq!(bench.available(bench.holder("a"), 0), [10]);
    assert_eq!([pay(), pay()], [Some(Payment::Paid), Some(Payment::Remembered)]);
    assert_eq!(bench.available(bench.holder("a"), 0), [9]);
}

#[test]
fn the_retry_of_an_attempt_is_released_while_the_attempt_is_remembered() {
    for (now_ms, released) in [(9_999, 1), (10_000, 0)] {
        let once = Once::new();
        turn(&once, ATTEMPT, 0);
        assert_eq!(once.release(GrantName::Attempt(ATTEMPT), now_ms, |_| 1), released);
    }
    let once = Once::new();
    turn(&once, ATTEMPT, 0);
    let other = AttemptName { attempts_made: 2, ..ATTEMPT };
    assert_eq!(once.release(GrantName::Attempt(other), 0, |_| 1), 0);
}

#[test]
fn a_report_is_new_again_after_ten_minutes() {
    let once = Once::new();
    let is_new =
        [5, 5, 600_004, 600_005, 600_006].map(|now_ms| once.is_new_report(report("id"), now_ms));
    assert_eq!(is_new, [true, false, false, true, false]);
    assert!(once.is_new_report(report("di"), 0));
    assert!(
        once.is_new_report(report(""), 0) && once.is_new_report(report(""), 0),
        "it has no name"
    );
}

#[test]
fn nobody_uses_up_the_reports_of_another() {
    let callers: [&[Box<str>]; 5] = [
        &[],
        &["shop".into()],
        &["bank".into()],
        &["shop".into(), "bank".into()],
        &["bank".into(), "shop".into()],
    ];
    let once = Once::new();
    for caller in callers {
        let report = ReportName { caller, id: "id" };
        assert_eq!([0, 0].map(|now_ms| once.is_new_report(report, now_ms)), [true, false]);
    }
    // An id that reads as one more name, with its length.
    let disguised = "\0\0\0\0\0\0\0\u{4}bankid";
    assert!(once.is_new_report(ReportName { caller: callers[1], id: disguised }, 0));
}

#[test]
fn a_lease_is_given_back_by_whoever_took_it_and_before_its_time_is_over() {
    let bench = Bench::of(&[budget("b", bucket(30))]);
    let once = Once::new();
    once.lend(LEASE, bench.acquire(bench.holder("a"), 4), 5_000, 0);
    let release = |lease, now_ms, retries| {
        let holder = bench.holder("a");
        let give_back = |grant: &mut _| bench.memory.give_back(holder, grant, retries, now_ms);
        once.release(GrantName::Lease(lease), now_ms, give_back)
    };
    for foreign in [
        LeaseName { tenant: "b", ..LEASE },
        LeaseName { operation: "po", ..LEASE },
        LeaseName { lease: "other", ..LEASE },
        LeaseName { tenant: "ao", operation: "p", ..LEASE },
        LeaseName { operation: "o", lease: "please", ..LEASE },
    ] {
        assert_eq!(release(foreign, 0, 4), 0, "{foreign:?}");
    }
    assert_eq!(release(LEASE, 0, 1), 1);
    assert_eq!(release(LEASE, 5_000, 1), 0, "its time is over");
    assert_eq!(release(LEASE, 4_999, 2), 2);
    assert_eq!([release(LEASE, 0, 2), release(LEASE, 0, 2)], [1, 0]);
    assert_eq!(bench.available(bench.holder("a"), 0), [10]);
}

#[test]
fn a_lease_is_remembered_for_ten_seconds_at_most() {
    for (now_ms, released) in [(10_004, 1), (10_005, 0)] {
        let bench = Bench::of(&[budget("b", bucket(30))]);
        let once = Once::new();
        once.lend(LEASE, bench.acquire(bench.holder("a"), 1), u64::MAX, 5);
        assert_eq!(once.release(GrantName::Lease(LEASE), now_ms, |_| 1), released);
    }
}

#[test]
fn no_name_of_a_caller_gets_into_a_log() {
    let bench = Bench::of(&[budget("b", bucket(30))]);
    let once = Once::new();
    turn(&once, AttemptName { tenant: "secret", ..ATTEMPT }, 0);
    bench.acquire(bench.holder("secret"), 1);
    assert_eq!(format!("{once:?}"), "Once { .. }");
    let shown = format!("{:?}", bench.memory);
    assert!(shown.contains("balances: 1") && !shown.contains("secret"), "{shown}");
}

/// Under names like those that callers make up. The oldest would be forgotten first.
#[test]
fn so_much_is_remembered_at_once() {
    let names = |count| (0..count).map(|number: u32| format!("{number:032}"));
    let once = Once::new();
    assert!(names(100_000).all(|id| once.is_new_report(report(&id), 0)));
    assert!(!names(1_000).any(|id| once.is_new_report(report(&id), 0)));
    for lease in names(100_000) {
        once.lend(LeaseName { lease: &lease, ..LEASE }, Grant::default(), 9_000, 0);
    }
    assert!(names(1_000).all(|lease| {
        let lease = GrantName::Lease(LeaseName { lease: &lease, ..LEASE });
        once.release(lease, 0, |_| 1) == 1
    }));
    let turn = |call_id: &str| turn(&once, AttemptName { call_id, ..ATTEMPT }, 0);
    assert!(names(200_000).all(|call_id| turn(&call_id) == Turn::First));
    assert!(names(1_000).all(|call_id| turn(&call_id) == Turn::Repeat));
}
