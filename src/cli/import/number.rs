//! Numbers and durations as other tools write them.

/// The longest number of seconds in a duration of protobuf has twelve digits.
const SECONDS_DIGITS_MAX: usize = 12;
const NANOS_DIGITS: usize = 9;
const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// Nanoseconds of a duration in proto-JSON, such as `0.1s`. gRPC's own documents have `.1s`, too.
pub(super) fn nanos(text: &str) -> Option<u64> {
    let number = text.strip_suffix('s')?;
    let (seconds, part) = number.split_once('.').unwrap_or((number, ""));
    if !is_digits(&format!("{seconds}{part}")) {
        return None;
    }
    if SECONDS_DIGITS_MAX < seconds.len() || NANOS_DIGITS < part.len() {
        return None;
    }
    let seconds: u64 = format!("0{seconds}").parse().ok()?;
    let nanos: u64 = format!("{part:0<NANOS_DIGITS$}").parse().ok()?;
    seconds.checked_mul(NANOS_PER_SECOND)?.checked_add(nanos)
}

/// A number above 0 or 0 in thousandths, and whether further decimals were cut off. By its decimal
/// text: what 0.29 times 1000 is in binary may be less than 290.
pub(super) fn thousandths(number: f64) -> Option<(u64, bool)> {
    const PLACES: usize = 3;
    let text = number.to_string();
    let (whole, part) = text.split_once('.').unwrap_or((&text, ""));
    let kept: String = part.chars().take(PLACES).collect();
    let value = format!("{whole}{kept:0<PLACES$}");
    let value = value.parse().ok().filter(|_| is_digits(&value))?;
    Some((value, PLACES < part.len()))
}

/// A number without decimals.
pub(super) fn whole(number: f64) -> Option<u64> {
    let text = number.to_string();
    text.parse().ok().filter(|_| is_digits(&text))
}

pub(super) fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_of_proto_json() {
        let cases = [
            ("1s", Some(1_000_000_000)),
            ("0.1s", Some(100_000_000)),
            (".1s", Some(100_000_000)),
            ("1.s", Some(1_000_000_000)),
            ("0.000000001s", Some(1)),
            ("315576000000s", None),
            ("0s", Some(0)),
            ("", None),
            ("s", None),
            (".s", None),
            ("1", None),
            ("-1s", None),
            ("+1s", None),
            ("1ms", None),
            ("1e3s", None),
            ("0.0000000001s", None),
            ("9999999999999s", None),
            ("١s", None),
        ];
        for (text, expected) in cases {
            assert_eq!(nanos(text), expected, "{text}");
        }
    }

    #[test]
    fn thousandths_are_those_of_the_decimal_text() {
        let cases = [
            (0.29, Some((290, false))),
            (0.57, Some((570, false))),
            (1.6, Some((1_600, false))),
            (2.0, Some((2_000, false))),
            (0.5466, Some((546, true))),
            (0.0, Some((0, false))),
            (0.0001, Some((0, true))),
            (-0.1, None),
            (f64::NAN, None),
            (f64::INFINITY, None),
            (1e300, None),
        ];
        for (number, expected) in cases {
            assert_eq!(thousandths(number), expected, "{number}");
        }
    }
}
