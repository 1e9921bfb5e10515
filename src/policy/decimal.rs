//! Numbers as the file writes them: digits, and in a decimal at most one point.
//!
//! They are read from the file's own characters, so that `1e3`, `0x10`, `1_000` and `.nan`, all of
//! them numbers to YAML, are refused here.

/// The whole number `text`. One that is too large becomes the largest, which no range allows.
///
/// A zero before another digit is refused: some readers of YAML take `010` for eight.
pub(super) fn whole(text: &str) -> Option<u64> {
    match text.as_bytes() {
        [] | [b'0', b'0'..=b'9', ..] => None,
        digits => digits.iter().try_fold(0, |number, digit| push(number, *digit)),
    }
}

/// A decimal, cut to thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Thousandths {
    pub(super) value: u64,
    /// Digits after the third decimal were dropped.
    pub(super) cut: bool,
}

/// The decimal `text`: digits with at most one point.
pub(super) fn thousandths(text: &str) -> Option<Thousandths> {
    const PLACES: usize = 3;
    let (before, after) = text.split_once('.').unwrap_or((text, ""));
    let before = match (before, after) {
        ("", "") => return None,
        ("", _) => 0,
        (before, _) => whole(before)?,
    };
    if !after.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let mut padded = after.bytes().chain([b'0'; PLACES]).take(PLACES);
    let value = padded.try_fold(before, push)?;
    Some(Thousandths { value, cut: after.len() > PLACES })
}

fn push(number: u64, digit: u8) -> Option<u64> {
    let digit = char::from(digit).to_digit(10)?;
    Some(number.saturating_mul(10).saturating_add(digit.into()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn whole_numbers_are_digits() {
        let cases = [
            ("0", Some(0)),
            ("7", Some(7)),
            ("1000", Some(1000)),
            ("18446744073709551616", Some(u64::MAX)),
            ("", None),
            ("+5", None),
            ("-1", None),
            ("010", None),
            ("00", None),
            ("1.0", None),
            ("1e3", None),
            ("0x10", None),
            ("1_000", None),
            ("٣", None),
        ];
        for (text, expected) in cases {
            assert_eq!(whole(text), expected, "{text}");
        }
    }

    #[test]
    fn decimals_are_digits_with_at_most_one_point() {
        let exact = |value| Some(Thousandths { value, cut: false });
        let cut = |value| Some(Thousandths { value, cut: true });
        let cases = [
            ("2", exact(2_000)),
            ("1.1", exact(1_100)),
            ("0.253", exact(253)),
            (".5", exact(500)),
            ("5.", exact(5_000)),
            ("1.500", exact(1_500)),
            ("0.2539", cut(253)),
            ("0.0009", cut(0)),
            ("99999999999999999999", exact(u64::MAX)),
            (".", None),
            ("", None),
            ("1.2.3", None),
            ("01.5", None),
            ("-0.1", None),
            ("+0.1", None),
            ("1e0", None),
            ("1.5e0", None),
            (".nan", None),
            (".inf", None),
            ("1_0.0", None),
            ("1.0_0", None),
        ];
        for (text, expected) in cases {
            assert_eq!(thousandths(text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn three_decimals_lose_nothing(value in 0..=9_999_999u64) {
            let text = format!("{}.{:03}", value / 1000, value % 1000);
            prop_assert_eq!(thousandths(&text), Some(Thousandths { value, cut: false }));
        }
    }
}
