//! Durations as Gateway API writes them (GEP-2257).
use std::fmt;

const COMPONENTS_MAX: usize = 4;
const DIGITS_MAX: usize = 5;

/// The milliseconds of `text`, if it is a GEP-2257 duration: `^([0-9]{1,5}(h|m|s|ms)){1,4}$`.
///
/// The units may stand in any order and repeat; the duration is the sum. Leading zeros mean nothing.
pub(crate) fn parse_ms(text: &str) -> Option<u64> {
    let mut rest = text;
    let mut total_ms: u64 = 0;
    for _ in 0..COMPONENTS_MAX {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (value, after) = rest.split_at_checked(digits)?;
        if digits == 0 || digits > DIGITS_MAX {
            return None;
        }
        // `ms` before `m`: the longer name first.
        let (unit_ms, after) = [("ms", 1), ("h", 3_600_000), ("m", 60_000), ("s", 1_000)]
            .iter()
            .find_map(|(unit, ms)| Some((*ms, after.strip_prefix(unit)?)))?;
        total_ms += value.parse::<u64>().ok()? * unit_ms;
        if after.is_empty() {
            return Some(total_ms);
        }
        rest = after;
    }
    None
}

/// Milliseconds in the standard form: descending units, each at most once, `0s` for zero.
pub(crate) struct Gep2257(pub(crate) u64);

impl fmt::Display for Gep2257 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = self.0;
        if ms == 0 {
            return f.write_str("0s");
        }
        let units = [
            (ms / 3_600_000, "h"),
            (ms / 60_000 % 60, "m"),
            (ms / 1_000 % 60, "s"),
            (ms % 1_000, "ms"),
        ];
        units
            .iter()
            .filter(|(value, _)| *value != 0)
            .try_for_each(|(value, unit)| write!(f, "{value}{unit}"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_the_gep_allows_is_read() {
        let cases = [
            ("0s", 0),
            ("0h", 0),
            ("100ms", 100),
            ("500ms", 500),
            ("1s500ms", 1_500),
            ("1m30s", 90_000),
            ("1h30m30s500ms", 5_430_500),
            ("01h", 3_600_000),
            ("00060m", 3_600_000),
            ("1h2h20m10m", 12_600_000),
            ("30m1h", 5_400_000),
            ("99999h99999h99999h99999h", 4 * 99_999 * 3_600_000),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_ms(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn everything_else_is_refused() {
        let refused = [
            "",
            "0",
            "1",
            "s",
            "ms",
            "1.5s",
            "300us",
            "1ns",
            "-1s",
            "+1s",
            "1 s",
            " 1s",
            "1s ",
            "1d",
            "100000ms",
            "1s1s1s1s1s",
            "1e3s",
            "1S",
            "1s,",
            "١s",
            "1sm",
            "infinite",
        ];
        for text in refused {
            assert_eq!(parse_ms(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_shown_is_read_again(ms in 0..=359_999_999_999u64) {
            prop_assert_eq!(parse_ms(&Gep2257(ms).to_string()), Some(ms));
        }
    }
}
