//! Two contestants, two seeds, six seconds, and two points of the grid.
use crate::simulate::{
    Cell, Outcome, Played, Report, Scenario, Second,
    scenario::{Clients, Grid, Outage, Recovered, Retryd, Service, Spread},
};

pub(super) const EVIL: &str = r#"<script>alert("1")</script> & 'so'"#;

pub(super) fn report() -> Report {
    let played = |name: &str, title: &str, outcomes| Played {
        name: name.to_owned(),
        title: title.to_owned(),
        source: "The paper says so (https://example.org/a&b).".to_owned(),
        outcomes,
    };
    let calm = Outcome {
        success: 0.8,
        amplification: 1.0,
        curve: curve([10; 6], [10, 10, 5, 5, 8, 8]),
        ..outcome(7)
    };
    let storm = Outcome {
        success: 0.3,
        amplification: 2.4,
        accuracy: Some(5.0),
        processed_again: 2,
        curve: curve([10, 10, 20, 30, 30, 30], [10, 10, 5, 0, 2, 1]),
        ..outcome(7)
    };
    Report {
        scenario: scenario(),
        seeds: vec![7, 8],
        contestants: vec![
            played(
                "no-retries",
                "No retries",
                vec![
                    Outcome { recovery_s: Some(1.0), ..calm.clone() },
                    Outcome { seed: 8, recovery_s: Some(2.0), ..calm },
                ],
            ),
            played(
                "naive",
                EVIL,
                vec![
                    Outcome {
                        seed: 8,
                        success: 0.31,
                        amplification: 2.5,
                        accuracy: Some(5.1),
                        processed_again: 4,
                        ..storm.clone()
                    },
                    storm,
                ],
            ),
        ],
        grid: [5, 10]
            .into_iter()
            .flat_map(|rate| [cell("no-retries", rate, Some(3.0)), cell("naive", rate, None)])
            .collect(),
    }
}

fn outcome(seed: u64) -> Outcome {
    Outcome {
        seed,
        calls: 60,
        succeeded: 0,
        failed: 0,
        attempts: 0,
        retries: 0,
        entitled: 0,
        entitled_at_once: 0,
        for_nobody: 0,
        processed_again: 0,
        amplification: 0.0,
        success: 0.0,
        recovery_s: None,
        accuracy: None,
        curve: Vec::new(),
    }
}

/// Ten calls a second, and one more second in which attempts end.
fn curve(attempts: [u64; 6], goodput: [u64; 6]) -> Vec<Second> {
    let seconds = attempts.into_iter().zip(goodput).map(|(attempts, goodput)| Second {
        calls: 10,
        succeeded: goodput,
        attempts,
        goodput,
        ..Second::default()
    });
    seconds.chain([Second { attempts: 500, ..Second::default() }]).collect()
}

fn cell(contestant: &str, calls_per_second: u32, recovery_s: Option<f64>) -> Cell {
    Cell {
        contestant: contestant.to_owned(),
        work_percent: 1_000,
        outage_ms: 2_000,
        calls_per_second,
        clients: 2,
        without_key_percent: 20,
        amplification: 1.2,
        success: 0.9,
        recovery_s,
        accuracy: Some(0.98),
        processed_again: 4,
    }
}

fn scenario() -> Scenario {
    Scenario {
        duration_ms: 6_000,
        clients: Clients {
            count: 2,
            calls_per_second: 10,
            spread: Spread::Even,
            attempt_timeout_ms: 500,
            deadline_ms: 2_500,
            without_key_percent: 20,
        },
        service: Service {
            workers: 2,
            work_ms: 100,
            spread: Spread::Even,
            queue: 50,
            failing_percent: 0,
            given_up_work_percent: 100,
        },
        outage: Outage {
            from_ms: 2_000,
            length_ms: 1_000,
            work_percent: 1_000,
            failing_percent: 5,
        },
        recovered: Recovered { success_percent: 99, for_ms: 2_000 },
        retryd: Retryd {
            policy: "<policy>".to_owned(),
            question_ms: 1,
            replicas: 3,
            store_lost_from_ms: 2_000,
            store_lost_ms: 1_000,
        },
        grid: Grid {
            work_percent: vec![],
            outage_ms: vec![2_000],
            calls_per_second: vec![5, 10],
            clients: vec![],
            without_key_percent: vec![],
        },
    }
}
