//! The header by which gRPC tells how long a call may take.
use std::time::Duration;

use http::{HeaderName, HeaderValue};

pub(crate) const HEADER: HeaderName = HeaderName::from_static("grpc-timeout");

/// At most eight digits, then the unit.
const DIGITS_MAX: usize = 8;

/// `None` where it is malformed.
pub(crate) fn parse(value: &HeaderValue) -> Option<Duration> {
    let text = value.to_str().ok()?;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if DIGITS_MAX < digits.len() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let count = digits.parse().ok()?;
    Some(match unit {
        "H" => Duration::from_secs(count * 3600),
        "M" => Duration::from_secs(count * 60),
        "S" => Duration::from_secs(count),
        "m" => Duration::from_millis(count),
        "u" => Duration::from_micros(count),
        "n" => Duration::from_nanos(count),
        _ => return None,
    })
}

/// Rounded up, in the smallest of ms, s and h that has room for it.
pub(crate) fn format(left: Duration) -> HeaderValue {
    const MAX: u128 = 99_999_999;
    let millis = left.as_nanos().div_ceil(1_000_000);
    let seconds = millis.div_ceil(1000);
    let text = if millis <= MAX {
        format!("{millis}m")
    } else if seconds <= MAX {
        format!("{seconds}S")
    } else {
        format!("{}H", seconds.div_ceil(3600).min(MAX))
    };
    HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("0m"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for (left, text, read) in [
            (Duration::ZERO, "0m", Duration::ZERO),
            (Duration::from_nanos(1), "1m", Duration::from_millis(1)),
            (Duration::from_millis(99_999_999), "99999999m", Duration::from_millis(99_999_999)),
            (Duration::from_millis(100_000_000), "100000S", Duration::from_secs(100_000)),
            (Duration::MAX, "99999999H", Duration::from_secs(99_999_999 * 3600)),
        ] {
            assert_eq!(format(left), text);
            assert_eq!(parse(&format(left)), Some(read));
        }
    }

    #[test]
    fn every_unit_is_read_and_nothing_else() {
        let cases =
            [("2H", 7200.0), ("2M", 120.0), ("2S", 2.0), ("2m", 2e-3), ("2u", 2e-6), ("2n", 2e-9)];
        for (text, seconds) in cases {
            assert_eq!(
                parse(&HeaderValue::from_static(text)),
                Some(Duration::from_secs_f64(seconds))
            );
        }
        for text in ["", "m", "1", "1h", "+1m", "-1m", "1.5S", "123456789m"] {
            assert_eq!(parse(&HeaderValue::from_static(text)), None, "{text}");
        }
    }
}
