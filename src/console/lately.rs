//! Decisions and refusals by reason: in the last minute, in the last ten, and since the start.
use std::{cmp::Reverse, sync::Weak, time::Duration};

use tokio::time::{MissedTickBehavior, interval};

use super::recent::{Counts, KEPT_MS, Recent};
use super::{Running, shown};
use crate::admin::metrics::Refused;
use crate::budget::Store;
use crate::engine::Rule;

const EVERY: Duration = Duration::from_secs(5);
const MINUTE_MS: u64 = 60 * 1_000;

/// Takes samples as long as the console is there. Twenty numbers are read, and no decision waits.
pub(super) async fn sample<S: Store>(running: Weak<Running<S>>) {
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let Some(running) = running.upgrade() else { return };
        let retryd = &running.console.retryd;
        let now_ms = retryd.decider().now().monotonic_ms;
        running.recent.lock().take(now_ms, Counts::of(retryd.metrics()));
    }
}

/// The counters, for people.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Lately {
    pub(super) decided: String,
    pub(super) denied: String,
    pub(super) refused: String,
    /// Reasons that occurred since the start, the most frequent of the last ten minutes first.
    pub(super) rows: Vec<Row>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) reason: &'static str,
    pub(super) meaning: &'static str,
    pub(super) minute: String,
    pub(super) ten_minutes: String,
    pub(super) start: String,
}

impl Lately {
    pub(super) fn read(recent: &Recent, now_ms: u64, counts: &Counts) -> Lately {
        let minute = recent.before(now_ms, MINUTE_MS);
        let ten_minutes = recent.before(now_ms, KEPT_MS);
        let rules = Rule::ALL.into_iter().map(|rule| (rule.name(), rule.sentence()));
        let decided =
            Reading::of_all(rules, [&counts.decided, &minute.decided, &ten_minutes.decided]);
        let refused = Refused::ALL.into_iter().map(|refused| (refused.name(), NO_DECISION));
        let refused =
            Reading::of_all(refused, [&counts.refused, &minute.refused, &ten_minutes.refused]);

        let of_ten_minutes = |readings: &[Reading]| -> u64 {
            readings.iter().map(|reading| reading.ten_minutes).sum()
        };
        let (all, none) = (of_ten_minutes(&decided), of_ten_minutes(&refused));
        // The last rule says yes.
        let denials: Vec<Reading> =
            decided.into_iter().filter(|it| it.reason != Rule::Retryable.name()).collect();
        let denied = of_ten_minutes(&denials);
        let mut rows: Vec<Reading> =
            denials.into_iter().chain(refused).filter(|reading| 0 < reading.start).collect();
        rows.sort_by_key(|reading| Reverse((reading.ten_minutes, reading.start)));
        Lately {
            decided: shown::number(all),
            denied: shown::number(denied),
            refused: shown::number(none),
            rows: rows.into_iter().map(Row::from).collect(),
        }
    }
}

const NO_DECISION: &str = "The request was refused, without a decision.";

#[derive(Clone, Copy, Debug)]
struct Reading {
    reason: &'static str,
    meaning: &'static str,
    minute: u64,
    ten_minutes: u64,
    start: u64,
}

impl Reading {
    fn of_all<const N: usize>(
        names: impl Iterator<Item = (&'static str, &'static str)>,
        [now, minute, ten_minutes]: [&[u64; N]; 3],
    ) -> Vec<Reading> {
        let counts = now.iter().zip(minute).zip(ten_minutes);
        let read =
            |((reason, meaning), ((now, minute), ten_minutes)): (_, ((&u64, &u64), &u64))| {
                Reading {
                    reason,
                    meaning,
                    minute: now.saturating_sub(*minute),
                    ten_minutes: now.saturating_sub(*ten_minutes),
                    start: *now,
                }
            };
        names.zip(counts).map(read).collect()
    }
}

impl From<Reading> for Row {
    fn from(Reading { reason, meaning, minute, ten_minutes, start }: Reading) -> Row {
        Row {
            reason,
            meaning,
            minute: shown::number(minute),
            ten_minutes: shown::number(ten_minutes),
            start: shown::number(start),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(retries: u64, exhausted: u64, bad_bytes: u64) -> Counts {
        let mut counts = Counts::default();
        counts.decided[Rule::Retryable as usize] = retries;
        counts.decided[Rule::BudgetExhausted as usize] = exhausted;
        counts.refused[Refused::NotProtobuf as usize] = bad_bytes;
        counts
    }

    #[test]
    fn each_window_counts_what_came_in_it() {
        let mut recent = Recent::default();
        recent.take(0, counts(5, 1, 0));
        recent.take(100_000, counts(50, 10, 2));
        recent.take(600_000, counts(500, 100, 3));
        let lately = Lately::read(&recent, 660_000, &counts(5_000, 107, 9));
        let row = |reason, meaning, minute: &str, ten_minutes: &str, start: &str| Row {
            reason,
            meaning,
            minute: minute.to_owned(),
            ten_minutes: ten_minutes.to_owned(),
            start: start.to_owned(),
        };
        let expected = Lately {
            decided: "5\u{202f}101".to_owned(),
            denied: "106".to_owned(),
            refused: "9".to_owned(),
            rows: vec![
                row("BUDGET_EXHAUSTED", Rule::BudgetExhausted.sentence(), "7", "106", "107"),
                row("NOT_PROTOBUF", NO_DECISION, "6", "9", "9"),
            ],
        };
        assert_eq!(lately, expected);
    }
}
