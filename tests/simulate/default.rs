//! What the default scenario must show, by its own parameters.
use retryd::policy::Policies;
use retryd::simulate::{Played, Scenario};

use super::{outcome, played, scenario};

/// `retryd simulate` plays ten.
const SEEDS: [u64; 3] = [1, 2, 3];

#[test]
fn naive_retries_keep_the_service_down_and_budgets_bring_it_back() {
    let scenario = scenario("");
    let report = played(&scenario, &SEEDS);
    let all = |name: &str| -> &Played {
        report.contestants.iter().find(|played| played.name == name).unwrap()
    };
    for outcome in &all("naive").outcomes {
        assert_eq!(outcome.recovery_s, None, "seed {}", outcome.seed);
        let last = &outcome.curve[110];
        assert!(last.goodput * 2 < last.calls && last.calls * 2 < last.attempts, "{last:?}");
    }
    for outcome in &all("none").outcomes {
        assert!(outcome.recovery_s.is_some_and(|s| s <= 10.0), "seed {}", outcome.seed);
    }
    // The policy: 20 % within 10 s, and a floor of 10 a second.
    let calls_per_second = f64::from(scenario.clients.calls_per_second);
    let (ratio, floor_share, interval_s) = (0.2, 10.0 / calls_per_second, 10.0);
    for name in ["retryd", "retryd-shared", "retryd-store-lost"] {
        for outcome in &all(name).outcomes {
            let about = format!("{name}, seed {}", outcome.seed);
            assert!(outcome.amplification <= 1.0 + ratio + floor_share, "{about}");
            assert!(outcome.recovery_s.is_some_and(|s| s <= interval_s), "{about}");
            let accuracy = outcome.accuracy.unwrap();
            assert!((0.95..=1.02).contains(&accuracy), "{about}: {accuracy}");
            assert_eq!(outcome.processed_again, 0, "{about}");
        }
    }
    assert!(0 < outcome(&report, "naive").processed_again);
}

/// Half of the default outage is long enough for the queue to fill, and naive retries never let it empty.
#[test]
fn naive_retries_turn_a_short_outage_into_a_lasting_one() {
    let mut scenario = scenario("");
    (scenario.duration_ms, scenario.outage.length_ms) = (60_000, 10_000);
    let report = played(&scenario, &[4]);
    assert!(outcome(&report, "none").recovery_s.is_some_and(|s| s <= 10.0));
    assert_eq!(outcome(&report, "naive").recovery_s, None);
}

#[test]
fn the_default_is_the_file_that_a_reader_can_change() {
    let text = include_str!("../../src/simulate/default.yaml");
    let parsed = Scenario::parse("default.yaml", text.as_bytes()).unwrap();
    assert_eq!(parsed, Scenario::default());
    let policies = Policies::parse("policy", parsed.retryd.policy.as_bytes()).unwrap();
    assert_eq!(policies.warnings(), []);
}
