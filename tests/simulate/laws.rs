//! Laws of every outage, whatever its parameters.
use proptest::prelude::*;
use retryd::simulate::{Outcome, Scenario, Second};

use super::{outcome, played, scenario};

prop_compose! {
    /// A few seconds of a few calls.
    fn small()(
        duration_s in 5_u64..8,
        (count, calls_per_second, even_calls) in (1_u32..5, 1_u32..250, any::<bool>()),
        (attempt_timeout_ms, more_ms) in (1_u64..1_500, 0_u64..3_000),
        without_key_percent in 0_u32..=100,
        (workers, work_ms, even_work) in (1_u32..5, 1_u64..200, any::<bool>()),
        (queue, failing_percent, given_up) in (0_u32..30, 0_u32..30, 0_u32..200),
        (from_ms, length_ms) in (0_u64..2_000, 0_u64..2_000),
        (work_percent, broken_percent) in (1_u32..2_000, 0_u32..=100),
        (replicas, lost_ms) in (1_u32..5, 0_u64..4_000),
    ) -> Scenario {
        let spread = |even| if even { "even" } else { "random" };
        let deadline_ms = attempt_timeout_ms + more_ms;
        scenario(&format!("
duration: {duration_s}s
clients:
  count: {count}
  calls_per_second: {calls_per_second}
  spread: {}
  attempt_timeout: {attempt_timeout_ms}ms
  deadline: {deadline_ms}ms
  without_key_percent: {without_key_percent}
service:
  workers: {workers}
  work: {work_ms}ms
  spread: {}
  queue: {queue}
  failing_percent: {failing_percent}
  given_up_work_percent: {given_up}
outage:
  from: {from_ms}ms
  length: {length_ms}ms
  work_percent: {work_percent}
  failing_percent: {broken_percent}
recovered: {{for: 1s}}
retryd: {{replicas: {replicas}, store_lost_from: 1s, store_lost: {lost_ms}ms}}
", spread(even_calls), spread(even_work)))
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_call_and_every_attempt_is_somewhere(scenario in small(), seed: u64) {
        let report = played(&scenario, &[seed]);
        for contestant in &report.contestants {
            let outcome = &contestant.outcomes[0];
            conserves(&scenario, outcome).map_err(|wrong| {
                TestCaseError::fail(format!("{}: {wrong}: {outcome:?}", contestant.name))
            })?;
        }
        let calls = outcome(&report, "none").calls;
        prop_assert!(report.contestants.iter().all(|it| it.outcomes[0].calls == calls));
        // (The most attempts of one call.)
        for (name, most) in [("none", 1), ("naive", 3), ("grpc-throttling", 4), ("envoy-budget", 2), ("aws-standard", 3), ("retryd", 3)] {
            prop_assert!(outcome(&report, name).attempts <= calls * most, "{}", name);
        }
        // One process hears all that there is, and grants what one exact budget does, to the retry.
        let retryd = outcome(&report, "retryd");
        prop_assert_eq!(retryd.retries, retryd.entitled);
        for name in ["retryd", "retryd-shared", "retryd-store-lost"] {
            let outcome = outcome(&report, name);
            prop_assert_eq!(outcome.processed_again, 0, "{}", name);
            let within_s = outcome.curve.len() as u64 + 1;
            let floor = 10 * (1 + within_s) + u64::from(scenario.retryd.replicas);
            // While the store is lost, each replica adds its part of the floor.
            let local = match name {
                "retryd-store-lost" => u64::from(scenario.retryd.replicas) * (1 + within_s) * 10,
                _ => 0,
            };
            prop_assert!(outcome.retries <= calls / 5 + floor + local, "{}", name);
        }
    }

    #[test]
    fn one_seed_gives_one_report(scenario in small(), seed: u64) {
        let [first, second] = [(); 2].map(|()| serde_json::to_vec(&played(&scenario, &[seed, 1])).unwrap());
        prop_assert_eq!(first, second);
    }
}

fn conserves(scenario: &Scenario, outcome: &Outcome) -> Result<(), String> {
    let sum = |field: fn(&Second) -> u64| outcome.curve.iter().map(field).sum::<u64>();
    let check = |holds: bool, law: &str| if holds { Ok(()) } else { Err(law.to_owned()) };
    check(outcome.calls == outcome.succeeded + outcome.failed, "a call succeeds or fails")?;
    check(outcome.attempts == outcome.calls + outcome.retries, "a first attempt, or a retry")?;
    check(sum(|it| it.calls) == outcome.calls, "calls by the second")?;
    check(sum(|it| it.succeeded) == outcome.succeeded, "successes by the second")?;
    check(sum(|it| it.goodput) == outcome.succeeded, "one good answer for each success")?;
    check(sum(|it| it.attempts) == outcome.attempts, "attempts by the second")?;
    check(sum(|it| it.for_nobody) == outcome.for_nobody, "wasted work by the second")?;
    check(outcome.for_nobody + sum(|it| it.dropped) == sum(|it| it.timed_out), "whoever gives up")?;
    let (mut arrived, mut left) = (0, 0);
    for second in &outcome.curve {
        arrived += second.attempts;
        left +=
            second.goodput + second.for_nobody + second.rejected + second.broken + second.dropped;
        let worked_on = (arrived - left).checked_sub(second.queued);
        let workers = u64::from(scenario.service.workers);
        check(worked_on.is_some_and(|it| it <= workers), "queued, or one of the workers has it")?;
        check(second.queued <= u64::from(scenario.service.queue), "the queue has an end")?;
    }
    check(arrived == left, "every attempt leaves")
}
