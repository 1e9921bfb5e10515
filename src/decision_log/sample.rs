//! Which share of the retries is logged.
use std::{fmt, str::FromStr};

/// A share from nothing to all, such as `1%` or `0.01`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Of the 2^32 draws, so many are taken.
    draws: u64,
}

/// Digits after the point that are read.
const PLACES: usize = 9;
/// One, in the last of these places.
const ONE: u64 = 1_000_000_000;

impl Sample {
    /// Whether the decision with this draw is taken.
    ///
    /// No dice are rolled for it. The draw is scrambled first, one to one: a decision that is taken
    /// has a short wait as often as a long one.
    pub(super) fn takes(self, draw: u32) -> bool {
        /// 2^32 over the golden ratio: neighbours end far apart.
        const SCRAMBLE: u32 = 0x9E37_79B9;
        u64::from(draw.wrapping_mul(SCRAMBLE)) < self.draws
    }
}

impl FromStr for Sample {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Sample, &'static str> {
        let (number, parts) = match text.strip_suffix('%') {
            Some(percent) => (percent, 100),
            None => (text, 1),
        };
        let share = parse(number).map(|share| share / parts).filter(|share| *share <= ONE);
        let share = share.ok_or("write a share from 0 to 1 such as `0.01`, or `0%` to `100%`")?;
        Ok(Sample { draws: (share << u32::BITS) / ONE })
    }
}

/// Digits with at most one point, in the last place that is read.
fn parse(text: &str) -> Option<u64> {
    let (before, after) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(before) || !digits(after) || (before.is_empty() && after.is_empty()) {
        return None;
    }
    let places: String = after.chars().chain(['0'; PLACES]).take(PLACES).collect();
    format!("{before}{places}").parse().ok()
}

impl fmt::Debug for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sample({} of 2^32)", self.draws)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(text: &str) -> Option<u64> {
        text.parse::<Sample>().ok().map(|sample| sample.draws)
    }

    #[test]
    fn shares_and_percents() {
        const ALL: u64 = 1 << 32;
        for (text, expected) in [
            ("0", 0),
            ("0%", 0),
            ("1", ALL),
            ("100%", ALL),
            ("1.0", ALL),
            ("0.5", ALL / 2),
            (".5", ALL / 2),
            ("50%", ALL / 2),
            ("12.5%", ALL / 8),
            ("0.01", ALL / 100),
            ("1%", ALL / 100),
            ("0.000000001", 4),
            ("0.0000000001", 0),
        ] {
            assert_eq!(draws(text), Some(expected), "{text}");
        }
        for text in
            ["", "%", ".", "-1%", "+1", "1.01", "101%", "1e-2", "0.1.2", "nan", "1 %", "٣%", "0,5"]
        {
            assert_eq!(draws(text), None, "{text}");
        }
        assert_eq!(draws(&"9".repeat(40)), None);
    }

    #[test]
    fn so_many_draws_are_taken_short_waits_as_often_as_long_ones() {
        let sample: Sample = "1%".parse().unwrap();
        // Every 4,096th draw, in ten parts from the shortest wait to the longest.
        let mut taken = [0_u32; 10];
        let mut asked = 0_u32;
        for draw in (0..=u32::MAX).step_by(4_096) {
            let part = usize::try_from((u64::from(draw) * 10) >> 32).unwrap();
            taken[part] += u32::from(sample.takes(draw));
            asked += 1;
        }
        for part in taken {
            let share = f64::from(part) / (f64::from(asked) / 10.0);
            assert!((0.009..0.011).contains(&share), "{taken:?} of {asked}");
        }
        let all: Sample = "1".parse().unwrap();
        let none: Sample = "0".parse().unwrap();
        for draw in [0, 1, u32::MAX / 2, u32::MAX] {
            assert!(all.takes(draw) && !none.takes(draw), "{draw}");
        }
    }
}
