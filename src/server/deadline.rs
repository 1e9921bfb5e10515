//! The caller's own deadline for a call, from the header `grpc-timeout`.
//!
//! Source: <https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md>.
use std::time::Duration;

use http::{HeaderMap, HeaderName};

use crate::clock::{Moment, Now};

// Read in each call, so it is not read as a name each time.
static HEADER: HeaderName = HeaderName::from_static("grpc-timeout");
/// Digits that the gRPC specification allows.
const DIGITS_MAX: usize = 8;

/// When the caller stops waiting. Stands in the extensions of each request that brought a
/// `grpc-timeout`, so that a question which comes too late is dropped before it is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    monotonic_ms: u64,
}

impl Deadline {
    /// The deadline of a request that arrived `now`.
    pub fn after(timeout: Duration, now: Now) -> Deadline {
        Deadline::counted(timeout, now.monotonic_ms)
    }

    pub(super) fn since(arrived: Moment, timeout: Duration) -> Deadline {
        Deadline::counted(timeout, arrived.monotonic_ms())
    }

    fn counted(timeout: Duration, from_ms: u64) -> Deadline {
        // Readings of the clock are whole milliseconds, rounded down: rounding up here means that a
        // deadline never seems to have passed before it has.
        let timeout_ms = timeout.as_nanos().div_ceil(1_000_000);
        let timeout_ms = u64::try_from(timeout_ms).unwrap_or(u64::MAX);
        Deadline { monotonic_ms: from_ms.saturating_add(timeout_ms) }
    }

    /// Whether the caller no longer waits.
    pub fn passed(&self, now: Now) -> bool {
        self.monotonic_ms < now.monotonic_ms
    }

    /// The time that is left.
    pub fn remaining(&self, now: Now) -> Duration {
        Duration::from_millis(self.monotonic_ms.saturating_sub(now.monotonic_ms))
    }
}

/// The value of `grpc-timeout`. One that breaks the specification counts as none.
pub(super) fn timeout(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(&HEADER)?.to_str().ok()?;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if DIGITS_MAX < digits.len() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let count: u64 = digits.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_secs(count * 3600)),
        "M" => Some(Duration::from_secs(count * 60)),
        "S" => Some(Duration::from_secs(count)),
        "m" => Some(Duration::from_millis(count)),
        "u" => Some(Duration::from_micros(count)),
        "n" => Some(Duration::from_nanos(count)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grpc_timeouts() {
        let cases = [
            ("1H", Some(Duration::from_secs(3600))),
            ("2M", Some(Duration::from_secs(120))),
            ("99999999S", Some(Duration::from_secs(99_999_999))),
            ("20m", Some(Duration::from_millis(20))),
            ("0m", Some(Duration::ZERO)),
            ("7u", Some(Duration::from_micros(7))),
            ("7n", Some(Duration::from_nanos(7))),
            ("", None),
            ("m", None),
            ("20", None),
            ("20x", None),
            ("+2m", None),
            ("100000000m", None),
        ];
        for (text, expected) in cases {
            let headers = HeaderMap::from_iter([(HEADER.clone(), text.parse().unwrap())]);
            assert_eq!(timeout(&headers), expected, "{text}");
        }
        assert_eq!(timeout(&HeaderMap::new()), None);
    }

    #[test]
    fn a_deadline_never_passes_early() {
        let at = |monotonic_ms| Now { monotonic_ms, unix_ms: 0 };
        // The request may have arrived at 10.9 ms: then 1.5 ms end at 12.4 ms.
        let deadline = Deadline::after(Duration::from_micros(1500), at(10));
        assert!(!deadline.passed(at(12)));
        assert!(deadline.passed(at(13)));
        assert_eq!(deadline.remaining(at(11)), Duration::from_millis(1));
        assert_eq!(deadline.remaining(at(13)), Duration::ZERO);
    }
}
