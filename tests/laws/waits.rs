//! Waits: the contract's numbers, the bounds of jitter, and no overflow anywhere.
use proptest::prelude::*;
use retryd::engine::{
    Backoff, Coverage, Evidence, Facts, Failure, GrpcCode, Hint, Idempotency, Jitter, Judged,
    Rules, Wait, decide,
};

use super::grid::http;
use super::{Policy, agrees, clear};

const HOUR_MS: u64 = 3_600_000;

/// The delay after `attempts_made`, of a policy that allows a thousand of them.
fn delay_ms(backoff: Backoff, attempts_made: u32, draw: u32) -> u64 {
    let rules = Rules { attempts_max: 1_000, backoff, ..Policy::default().rules };
    let facts = Facts { attempts_made, draw, ..clear(&rules, http(503)) };
    decide(&facts).unwrap().delay().ms()
}

fn steady(base_ms: u64, multiplier_thousandths: u32) -> Backoff {
    Backoff { base_ms, max_ms: 5_000, multiplier_thousandths, jitter: Jitter::None }
}

#[test]
fn waits_grow_as_in_the_contract() {
    let grown = [1, 2, 3, 4, 5, 6].map(|attempt| delay_ms(steady(100, 1_100), attempt, 7));
    assert_eq!(grown, [100, 110, 121, 134, 148, 163]);
}

/// Case B23: after some forty attempts the doubled wait no longer fits an integer.
#[test]
fn waits_stop_at_the_maximum() {
    for attempt in [7, 30, 40, 63, 64, 65, 200, 999] {
        assert_eq!(delay_ms(steady(100, 2_000), attempt, 0), 5_000, "attempt {attempt}");
    }
}

/// Case B26: waits are whole milliseconds, and no wait is zero.
#[test]
fn short_waits_are_kept() {
    let first = [500, 1_500, 1, 0].map(|base_ms| delay_ms(steady(base_ms, 2_000), 1, 0));
    assert_eq!(first, [500, 1_500, 1, 1]);
    assert_eq!(delay_ms(steady(0, 2_000), 999, 0), 1, "nothing doubled stays nothing");
    assert_eq!(delay_ms(steady(100, 1_000), 999, 0), 100, "without growth");
}

#[test]
fn the_extreme_draws_reach_both_ends_of_the_jitter() {
    let spread = |jitter, draw| delay_ms(Backoff { jitter, ..steady(101, 2_000) }, 1, draw);
    let ends = |jitter| [0, u32::MAX].map(|draw| spread(jitter, draw));
    assert_eq!(ends(Jitter::None), [101, 101]);
    assert_eq!(ends(Jitter::Full), [1, 101]);
    assert_eq!(ends(Jitter::Equal), [51, 101]);
}

fn jitters() -> impl Strategy<Value = Jitter> {
    prop_oneof![Just(Jitter::None), Just(Jitter::Full), Just(Jitter::Equal)]
}

/// Every backoff that a policy file can hold.
fn backoffs() -> impl Strategy<Value = Backoff> {
    (0..=HOUR_MS, 1_000..=100_000_u32, jitters()).prop_flat_map(
        |(base_ms, multiplier_thousandths, jitter)| {
            (base_ms.max(1)..=24 * HOUR_MS).prop_map(move |max_ms| Backoff {
                base_ms,
                max_ms,
                multiplier_thousandths,
                jitter,
            })
        },
    )
}

/// Mostly numbers near an edge, among them the ends of the type.
fn times_ms() -> impl Strategy<Value = u64> {
    prop_oneof![0..3_u64, 40..400_u64, 0..2 * HOUR_MS, u64::MAX - 2..=u64::MAX, any::<u64>()]
}

fn waits() -> impl Strategy<Value = Wait> {
    prop_oneof![Just(Wait::Unsaid), Just(Wait::Forbidden), times_ms().prop_map(Wait::AtLeast)]
}

fn evidence() -> impl Strategy<Value = Option<Evidence>> {
    prop::option::of(prop_oneof![Just(Evidence::NotSent), Just(Evidence::Processed)])
}

prop_compose! {
    fn rules()(
        attempts_max in prop_oneof![1..=1_000_u32, Just(u32::MAX)],
        min_attempt_budget_ms in times_ms(),
        hint_ms_max in times_ms(),
        backoff in backoffs(),
    ) -> Rules {
        let rules = Policy::default().rules;
        Rules { attempts_max, min_attempt_budget_ms, hint_ms_max, backoff, ..rules }
    }
}

/// Facts of every size, mostly such as reach the last stage.
fn check(rules: &Rules, drawn: Drawn, then: impl Fn(&Facts<'_>)) {
    let (attempts_made, remaining_ms, wait, evidence, declared, grpc, draw) = drawn;
    let failure = if grpc { Failure::Grpc(GrpcCode::ResourceExhausted) } else { http(503) };
    then(&Facts {
        rules,
        attempts_made,
        budget: Coverage::Unbudgeted,
        body_replayable: true,
        first_byte_delivered: false,
        runtime_draining: false,
        remaining_ms,
        failure: Judged::by(rules, failure),
        evidence,
        idempotency: Idempotency { declared, ..Idempotency::default() },
        hint: Hint { wait, malformed: false },
        draw,
    });
}

type Drawn = (u32, Option<u64>, Wait, Option<Evidence>, bool, bool, u32);

fn drawn() -> impl Strategy<Value = Drawn> {
    (
        prop_oneof![0..4_u32, 0..=1_001_u32, u32::MAX - 1..=u32::MAX],
        prop::option::of(times_ms()),
        waits(),
        evidence(),
        prop::bool::weighted(0.9),
        any::<bool>(),
        prop_oneof![Just(0), Just(u32::MAX), any::<u32>()],
    )
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn no_size_of_number_breaks_the_contract(rules in rules(), drawn in drawn()) {
        check(&rules, drawn, |f| agrees(&Policy { rules, ..Policy::default() }, f));
    }

    /// Rules made by hand may hold what no policy file does. They still cause no panic.
    #[test]
    fn no_rules_cause_an_overflow(
        rules in rules(),
        (base_ms, max_ms) in (times_ms(), times_ms()),
        multiplier_thousandths in prop_oneof![Just(0), Just(u32::MAX), 900..=3_000_u32],
        drawn in drawn(),
    ) {
        let jitter = rules.backoff.jitter;
        let max_ms = max_ms.max(1);
        let backoff = Backoff { base_ms, max_ms, multiplier_thousandths, jitter };
        check(&Rules { backoff, ..rules }, drawn, |f| match decide(f) {
            Ok(retry) => {
                assert!(1 <= retry.delay().ms());
                assert_eq!(retry.steps().count(), 15);
            }
            Err(denied) => assert!(denied.steps().count() < 15),
        });
    }

    #[test]
    fn jitter_stays_in_its_bounds(backoff in backoffs(), attempt in 1..=999_u32, draw: u32) {
        let whole_ms = delay_ms(Backoff { jitter: Jitter::None, ..backoff }, attempt, draw);
        let spread = |jitter| delay_ms(Backoff { jitter, ..backoff }, attempt, draw);
        prop_assert!((1..=backoff.max_ms).contains(&whole_ms));
        prop_assert!((1..=whole_ms).contains(&spread(Jitter::Full)));
        prop_assert!((whole_ms.div_ceil(2)..=whole_ms).contains(&spread(Jitter::Equal)));
    }

    /// The next attempt waits at least as long, up to the maximum.
    #[test]
    fn waits_never_shrink(backoff in backoffs(), attempt in 1..999_u32) {
        let backoff = Backoff { jitter: Jitter::None, ..backoff };
        prop_assert!(delay_ms(backoff, attempt, 0) <= delay_ms(backoff, attempt + 1, 0));
    }
}
