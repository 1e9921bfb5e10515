//! What was played, in words.
use super::grid::seconds;
use crate::simulate::{
    Report,
    scenario::{Outage, Spread},
};

/// Such as `work takes 10 times as long and 20 % of the attempts fail`.
pub(super) fn cause(outage: &Outage) -> String {
    let slow = (outage.work_percent != 100).then(|| {
        format!("its work takes {} times as long", f64::from(outage.work_percent) / 100.0)
    });
    let failing = (0 < outage.failing_percent)
        .then(|| format!("it fails {} % of the attempts", outage.failing_percent));
    let causes: Vec<String> = slow.into_iter().chain(failing).collect();
    if causes.is_empty() { "nothing goes wrong".to_owned() } else { causes.join(" and ") }
}

/// Each with its value, in the order of the scenario file.
pub(super) fn parameters(report: &Report) -> Vec<(&'static str, String)> {
    let scenario = &report.scenario;
    let (clients, service, retryd) = (&scenario.clients, &scenario.service, &scenario.retryd);
    let seeds: Vec<String> = report.seeds.iter().map(u64::to_string).collect();
    let lost = match retryd.store_lost_ms {
        0 => "never".to_owned(),
        lost_ms => format!(
            "from {} to {}, with all that it holds",
            seconds(retryd.store_lost_from_ms),
            seconds(retryd.store_lost_from_ms.saturating_add(lost_ms))
        ),
    };
    vec![
        ("Calls begin for", seconds(scenario.duration_ms)),
        ("Clients", clients.count.to_string()),
        ("Calls a second, of all", clients.calls_per_second.to_string()),
        ("Times between calls", spread(clients.spread)),
        ("An attempt is given up after", seconds(clients.attempt_timeout_ms)),
        ("A call, at last", seconds(clients.deadline_ms)),
        ("Calls without a key", format!("{} %", clients.without_key_percent)),
        ("Workers", service.workers.to_string()),
        ("One attempt's work, on average", seconds(service.work_ms)),
        ("Times of work", spread(service.spread)),
        ("Attempts that fail, also when all is well", format!("{} %", service.failing_percent)),
        ("Room in the queue", service.queue.to_string()),
        (
            "Work for a caller who gave up",
            format!("{} % of the usual", service.given_up_work_percent),
        ),
        ("A question to retryd takes", seconds(retryd.question_ms)),
        ("Replicas of retryd, where budgets are shared", retryd.replicas.to_string()),
        ("The store is lost, where it is", lost),
        ("Seeds", seeds.join(", ")),
    ]
}

fn spread(spread: Spread) -> String {
    match spread {
        Spread::Random => "random".to_owned(),
        Spread::Even => "all the same".to_owned(),
    }
}
