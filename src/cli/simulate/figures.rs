//! The figures of each contestant over all seeds, in words: the same ones on the terminal and on the page.
use std::fmt;

use crate::simulate::{Outcome, Played, Report};

pub(super) const STAYS_DOWN: &str = "stays down";

/// What is told of each contestant, in this order.
pub(super) const MEASURES: [Measure; 6] = [
    Measure {
        name: "success",
        short: "success",
        text: "Calls that succeed",
        of: |outcome, _| Some(100.0 * outcome.success),
        digits: 1,
        unit: " %",
        none: Lack::Nothing("no calls"),
        is_charted: false,
    },
    Measure {
        name: "amplification",
        short: "amplification",
        text: "Attempts a call",
        of: |outcome, _| Some(outcome.amplification),
        digits: 2,
        unit: "",
        none: Lack::Nothing("no calls"),
        is_charted: true,
    },
    Measure {
        name: "recovery",
        short: "recovers in",
        text: "Time to recover after the outage",
        of: |outcome, _| outcome.recovery_s,
        digits: 1,
        unit: " s",
        none: Lack::StaysDown,
        is_charted: true,
    },
    Measure {
        name: "accuracy",
        short: "accuracy",
        text: "Retries made of those that one exact budget would grant",
        of: |outcome, _| outcome.accuracy,
        digits: 2,
        unit: "",
        none: Lack::Nothing("none to grant"),
        is_charted: false,
    },
    Measure {
        name: "done-again",
        short: "done again",
        text: "Operations done again, although they are not idempotent and have no key",
        of: |outcome, _| Some(outcome.processed_again as f64),
        digits: 0,
        unit: "",
        none: Lack::Nothing("no calls"),
        is_charted: false,
    },
    Measure {
        name: "goodput",
        short: "goodput after",
        text: "Calls answered well a second, after the outage",
        of: goodput_after,
        digits: 0,
        unit: "/s",
        none: Lack::Nothing("nothing after it"),
        is_charted: false,
    },
];

pub(super) struct Measure {
    /// Names the file of its chart.
    pub(super) name: &'static str,
    /// Heads a column of the terminal.
    pub(super) short: &'static str,
    /// Heads a column of the page.
    pub(super) text: &'static str,
    of: fn(&Outcome, &Report) -> Option<f64>,
    digits: usize,
    pub(super) unit: &'static str,
    /// Said where an outcome has no such figure.
    none: Lack,
    /// It has a chart of its own.
    pub(super) is_charted: bool,
}

/// Why an outcome has no such figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lack {
    /// There was nothing to measure, in these words.
    Nothing(&'static str),
    /// It does not recover.
    StaysDown,
}

/// One figure: over the seeds, or of the only one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Span {
    pub(super) mean: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

/// One figure in words.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Figure {
    /// The mean, or what there is instead.
    pub(super) mean: String,
    /// From the lowest seed to the highest, and how many seeds have none. Nothing where all are the same.
    pub(super) spread: Option<String>,
    pub(super) stays_down: bool,
}

impl Measure {
    pub(super) fn figure(&self, played: &Played, report: &Report) -> Figure {
        let seeds = played.outcomes.len();
        let without =
            played.outcomes.iter().filter(|outcome| (self.of)(outcome, report).is_none()).count();
        let Some(span) = self.span(played, report) else {
            return Figure {
                mean: self.none.text().to_owned(),
                spread: (1 < seeds).then(|| format!("in all {seeds}")),
                stays_down: self.none == Lack::StaysDown,
            };
        };
        let [mean, low, high] = [span.mean, span.low, span.high].map(|figure| self.number(figure));
        let range = (low != high).then(|| format!("{low} to {high}"));
        let lacking =
            (0 < without).then(|| format!("{} in {without} of {seeds}", self.none.short()));
        let spread: Vec<String> = range.into_iter().chain(lacking).collect();
        Figure {
            mean: mean + self.unit,
            spread: (!spread.is_empty()).then(|| spread.join("; ")),
            stays_down: false,
        }
    }

    /// Over those seeds that have a figure.
    pub(super) fn span(&self, played: &Played, report: &Report) -> Option<Span> {
        let figures: Vec<f64> =
            played.outcomes.iter().filter_map(|outcome| (self.of)(outcome, report)).collect();
        let low = figures.iter().copied().reduce(f64::min)?;
        let high = figures.iter().copied().reduce(f64::max)?;
        Some(Span { mean: figures.iter().sum::<f64>() / figures.len() as f64, low, high })
    }

    fn number(&self, figure: f64) -> String {
        format!("{figure:.*}", self.digits)
    }
}

impl Lack {
    fn text(self) -> &'static str {
        match self {
            Lack::Nothing(text) => text,
            Lack::StaysDown => STAYS_DOWN,
        }
    }

    /// Beside a number of seeds.
    fn short(self) -> &'static str {
        match self {
            Lack::Nothing(_) => "none",
            Lack::StaysDown => "down",
        }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.spread {
            Some(spread) => write!(f, "{} ({spread})", self.mean),
            None => f.write_str(&self.mean),
        }
    }
}

/// From the end of the outage until the last call begins.
fn goodput_after(outcome: &Outcome, report: &Report) -> Option<f64> {
    let whole_seconds = |ms: u64| usize::try_from(ms.div_ceil(1_000)).unwrap_or(usize::MAX);
    let from = whole_seconds(report.scenario.outage.to_ms());
    let to = whole_seconds(report.scenario.duration_ms).min(outcome.curve.len());
    let after = outcome.curve.get(from..to).filter(|after| !after.is_empty())?;
    Some(after.iter().map(|second| second.goodput).sum::<u64>() as f64 / after.len() as f64)
}
