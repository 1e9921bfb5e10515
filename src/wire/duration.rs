//! Protobuf durations to and from whole milliseconds.
use pbjson_types::Duration;

/// The range of a `google.protobuf.Duration`: about ten thousand years.
const SECONDS_MAX: i64 = 315_576_000_000;
const NANOS_MAX: i32 = 999_999_999;

const NANOS_PER_MS: i64 = 1_000_000;

/// A duration inside protobuf's range.
#[derive(Clone, Copy)]
pub(super) struct Span {
    seconds: i64,
    nanos: i64,
}

impl Span {
    pub(super) fn parse(duration: &Duration) -> Result<Span, &'static str> {
        let Duration { seconds, nanos } = *duration;
        if !(-SECONDS_MAX..=SECONDS_MAX).contains(&seconds)
            || !(-NANOS_MAX..=NANOS_MAX).contains(&nanos)
        {
            return Err("out of the range of a protobuf Duration");
        }
        if (seconds < 0 && 0 < nanos) || (0 < seconds && nanos < 0) {
            return Err("seconds and nanos differ in sign");
        }
        Ok(Span { seconds, nanos: i64::from(nanos) })
    }

    pub(super) fn is_positive(self) -> bool {
        0 < self.seconds || 0 < self.nanos
    }

    /// Whole milliseconds, rounded down; 0 if negative. For time that is left.
    pub(super) fn ms_floor(self) -> u64 {
        self.ms(self.nanos.div_euclid(NANOS_PER_MS))
    }

    /// Whole milliseconds, rounded up; 0 if negative. For time to wait.
    pub(super) fn ms_ceil(self) -> u64 {
        self.ms(-((-self.nanos).div_euclid(NANOS_PER_MS)))
    }

    fn ms(self, fraction_ms: i64) -> u64 {
        u64::try_from(self.seconds * 1_000 + fraction_ms).unwrap_or(0)
    }
}

/// The duration of `ms` milliseconds, at most protobuf's longest.
pub(super) fn from_ms(ms: u64) -> Duration {
    let seconds = i64::try_from(ms / 1_000).unwrap_or(SECONDS_MAX).min(SECONDS_MAX);
    let nanos = i32::try_from(ms % 1_000).unwrap_or(0) * 1_000_000;
    Duration { seconds, nanos }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn rounds(seconds: i64, nanos: i32, floor_ms: u64, ceil_ms: u64) {
        let span = Span::parse(&Duration { seconds, nanos }).unwrap();
        assert_eq!((span.ms_floor(), span.ms_ceil()), (floor_ms, ceil_ms));
    }

    #[test]
    fn time_left_rounds_down_and_waits_round_up() {
        rounds(0, 0, 0, 0);
        rounds(0, 1, 0, 1);
        rounds(0, 999_999, 0, 1);
        rounds(0, 1_000_000, 1, 1);
        rounds(2, 1_000_001, 2_001, 2_002);
    }

    #[test]
    fn negative_is_zero() {
        rounds(0, -1, 0, 0);
        rounds(0, -1_000_001, 0, 0);
        rounds(-56, 0, 0, 0);
        rounds(-SECONDS_MAX, -NANOS_MAX, 0, 0);
    }

    #[test]
    fn the_longest_does_not_overflow() {
        rounds(SECONDS_MAX, NANOS_MAX, 315_576_000_000_999, 315_576_000_001_000);
        assert_eq!(from_ms(u64::MAX).seconds, SECONDS_MAX);
    }

    #[track_caller]
    fn refused(seconds: i64, nanos: i32) {
        assert!(Span::parse(&Duration { seconds, nanos }).is_err());
    }

    #[test]
    fn out_of_range_and_mixed_signs_are_refused() {
        refused(SECONDS_MAX + 1, 0);
        refused(-SECONDS_MAX - 1, 0);
        refused(i64::MAX, i32::MAX);
        refused(0, NANOS_MAX + 1);
        refused(i64::MIN, i32::MIN);
        refused(1, -1);
        refused(-1, 1);
    }
}
