//! Ratios of the same round, and how sure they are.
use std::fmt;

use serde_json::{Value, json};

/// The median of ratios, and between what it lies in 95 of 100 draws from the same rounds.
pub(crate) struct Ratio {
    median: f64,
    low: f64,
    high: f64,
}

impl Ratio {
    pub(crate) fn of(own: &[f64], base: &[f64]) -> Ratio {
        let ratios: Vec<f64> = own.iter().zip(base).map(|(own, base)| own / base).collect();
        let redrawn =
            || (0..ratios.len()).map(|_| ratios[fastrand::usize(..ratios.len())]).collect();
        let mut medians: Vec<f64> = (0..2_000).map(|_| median(redrawn())).collect();
        medians.sort_unstable_by(f64::total_cmp);
        Ratio { median: median(ratios), low: medians[50], high: medians[1_949] }
    }

    pub(crate) fn holds_one(&self) -> bool {
        self.low <= 1.0 && 1.0 <= self.high
    }

    pub(crate) fn json(&self) -> Value {
        json!({ "median": self.median, "low": self.low, "high": self.high })
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3} ({:.3} to {:.3})", self.median, self.low, self.high)
    }
}

pub(crate) fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_unstable_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

/// Of the last minute: who else wanted the cores.
pub(crate) fn load_average() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or_default().to_owned()
}
