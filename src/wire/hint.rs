//! The server's word, in every form it takes: `Retry-After`, `grpc-retry-pushback-ms`, RetryInfo.
use std::time::{Duration, UNIX_EPOCH};

use crate::engine::Wait;

/// What a text form of a hint says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    Absent,
    Malformed,
    Ms(u64),
}

/// Reads a `Retry-After` value: delay-seconds or an HTTP-date (RFC 9110 §10.2.3, §5.6.7).
///
/// A date is measured from `base_unix_ms`. What is neither is malformed, and no hint.
pub(super) fn retry_after(value: &str, base_unix_ms: u64) -> Reading {
    let value = trim(value);
    if value.is_empty() {
        return Reading::Absent;
    }
    // Rust's own number parser would also read "+5".
    if value.bytes().all(|byte| byte.is_ascii_digit()) {
        // Too many digits for a number is a very long wait, not the absence of one.
        return Reading::Ms(value.parse().unwrap_or(u64::MAX).saturating_mul(1_000));
    }
    match http_date(value) {
        Some(unix_ms) => Reading::Ms(unix_ms.saturating_sub(base_unix_ms)),
        None => Reading::Malformed,
    }
}

/// Reads a `Date` value, in milliseconds since 1970.
pub(super) fn date(value: &str) -> Reading {
    match trim(value) {
        "" => Reading::Absent,
        value => http_date(value).map_or(Reading::Malformed, Reading::Ms),
    }
}

/// Reads a `grpc-retry-pushback-ms` value. All but a plain number means "do not retry" (gRFC A6).
pub(super) fn pushback(value: &str) -> Wait {
    const MS_MAX: u64 = 2_147_483_647;
    let plain = value.bytes().all(|byte| byte.is_ascii_digit())
        && (value == "0" || !value.starts_with('0'));
    match value.parse() {
        Ok(ms @ 0..=MS_MAX) if plain => Wait::AtLeast(ms),
        _ => Wait::Forbidden,
    }
}

/// Of two forms: one that forbids wins, else the longer.
pub(super) fn combine(one: Wait, other: Wait) -> Wait {
    match (one, other) {
        (Wait::Forbidden, _) | (_, Wait::Forbidden) => Wait::Forbidden,
        (Wait::Unsaid, wait) | (wait, Wait::Unsaid) => wait,
        (Wait::AtLeast(a_ms), Wait::AtLeast(b_ms)) => Wait::AtLeast(a_ms.max(b_ms)),
    }
}

fn trim(value: &str) -> &str {
    value.trim_matches([' ', '\t'])
}

fn http_date(value: &str) -> Option<u64> {
    // The library would skip other white space around the date.
    if value.bytes().any(|byte| byte.is_ascii_control()) {
        return None;
    }
    let date = httpdate::parse_http_date(value).ok()?;
    let since_epoch = date.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    u64::try_from(since_epoch.as_millis()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-01-01T00:00:00Z
    const NEW_YEAR_MS: u64 = 1_767_225_600_000;

    #[track_caller]
    fn reads(value: &str, expected: Reading) {
        assert_eq!(retry_after(value, NEW_YEAR_MS), expected, "{value:?}");
    }

    #[test]
    fn seconds() {
        reads("0", Reading::Ms(0));
        reads("60", Reading::Ms(60_000));
        reads(" \t007\t ", Reading::Ms(7_000));
        reads("99999999999999999999999999", Reading::Ms(u64::MAX));
    }

    #[test]
    fn dates_in_three_forms() {
        reads("Thu, 01 Jan 2026 00:02:00 GMT", Reading::Ms(120_000));
        reads("Thursday, 01-Jan-26 00:02:00 GMT", Reading::Ms(120_000));
        reads("Thu Jan  1 00:02:00 2026", Reading::Ms(120_000));
        reads("Wed, 31 Dec 2025 23:59:30 GMT", Reading::Ms(0));
        // Two-digit years from 70 on are of the last century.
        reads("Thursday, 01-Jan-70 00:00:00 GMT", Reading::Ms(0));
        reads("Thursday, 31-Dec-69 00:00:00 GMT", Reading::Malformed);
        reads("Tuesday, 31-Dec-69 00:00:00 GMT", Reading::Ms(1_388_448_000_000));
    }

    #[test]
    fn absent() {
        reads("", Reading::Absent);
        reads(" \t ", Reading::Absent);
    }

    #[test]
    fn malformed() {
        for value in [
            "+5",
            "-5",
            "1.5",
            "1e3",
            "5s",
            "1, 2",
            "soon",
            "0x10",
            "５",
            "Thu Jan 1 00:02:00 2026",
            "Fri, 01 Jan 2026 00:02:00 GMT",
            "Thu, 01 Jan 2026 00:02:60 GMT",
            "Thu, 01 Jan 2026 24:00:00 GMT",
            "Thu, 01 Jan 2026 00:02:00 UTC",
            "Thu, 01 Jan 2026 00:02:00 +0000",
            "thu, 01 jan 2026 00:02:00 gmt",
            "Wed, 31 Dec 1969 23:59:59 GMT",
            "Mon, 30 Feb 2026 00:00:00 GMT",
            "Thu, 01 Jan 2026 00:02:00 GMT\n",
        ] {
            reads(value, Reading::Malformed);
        }
    }

    #[test]
    fn pushback_is_a_plain_number_or_a_no() {
        assert_eq!(pushback("0"), Wait::AtLeast(0));
        assert_eq!(pushback("250"), Wait::AtLeast(250));
        assert_eq!(pushback("2147483647"), Wait::AtLeast(2_147_483_647));
        for value in
            ["-1", "-5", "abc", "007", "00", "1.5", "2147483648", "", "+5", " 5", "5 ", "250,250"]
        {
            assert_eq!(pushback(value), Wait::Forbidden, "{value:?}");
        }
    }
}
