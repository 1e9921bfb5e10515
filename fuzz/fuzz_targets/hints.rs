//! Any three lines as `Retry-After`, `grpc-retry-pushback-ms` and `Date`, against slow readings of
//! the same rules.
#![no_main]
use libfuzzer_sys::fuzz_target;
use retryd::engine::Wait;
use retryd::wire::context::{self, Oddities};
use retryd::wire::pb;

/// 2026-01-01T00:00:00Z, as in most vectors.
const NOW_UNIX_MS: u64 = 1_767_225_600_000;

fuzz_target!(|text: &str| {
    let mut lines = text.splitn(3, '\n');
    let hint = pb::ServerHint {
        retry_after: None,
        retry_after_header: lines.next().map(str::to_owned),
        grpc_retry_pushback_ms: lines.next().map(str::to_owned),
        date_header: lines.next().unwrap_or_default().to_owned(),
    };
    let mut oddities = Oddities::default();
    let read = read(&hint, &mut oddities);
    let base = slow_value(&hint.date_header).and_then(slow_date);
    let header = hint.retry_after_header.as_deref().and_then(slow_value);
    // The two obsolete forms of a date have no slow reading here. Both begin with more than a
    // weekday of three letters and a comma.
    let may_be_obsolete =
        |value: &str| value.contains(':') && value.as_bytes().get(3) != Some(&b',');
    if slow_value(&hint.date_header).is_some_and(may_be_obsolete) {
        return;
    }
    let expected_header = match header {
        None => Wait::Unsaid,
        Some(value) => match slow_seconds(value) {
            Some(ms) => Wait::AtLeast(ms),
            None if may_be_obsolete(value) => return,
            None => slow_date(value).map_or(Wait::Unsaid, |unix_ms| {
                Wait::AtLeast(unix_ms.saturating_sub(base.unwrap_or(NOW_UNIX_MS)))
            }),
        },
    };
    let pushback = hint.grpc_retry_pushback_ms.as_deref().map_or(Wait::Unsaid, slow_pushback);
    assert_eq!(read.wait, longest(expected_header, pushback));
    let is_malformed = header.is_some() && expected_header == Wait::Unsaid;
    assert_eq!(read.malformed, is_malformed);
    let bad_date = slow_value(&hint.date_header).is_some() && base.is_none();
    assert_eq!(oddities.malformed_hints, u64::from(is_malformed) + u64::from(bad_date));
});

fn read(hint: &pb::ServerHint, oddities: &mut Oddities) -> retryd::engine::Hint {
    let status = Some(pb::failure::Status::HttpStatus(503));
    let context = pb::RetryContext {
        tenant: "tenant".to_owned(),
        operation: "operation".to_owned(),
        attempts_made: 1,
        failure: Some(pb::Failure { status, ..Default::default() }),
        hint: Some(hint.clone()),
        ..Default::default()
    };
    context::parse(&context, NOW_UNIX_MS, oddities).expect("nothing but text was fuzzed").hint
}

fn longest(one: Wait, other: Wait) -> Wait {
    match (one, other) {
        (_, Wait::Forbidden) => Wait::Forbidden,
        (Wait::AtLeast(one), Wait::AtLeast(other)) => Wait::AtLeast(one.max(other)),
        (Wait::Unsaid, wait) | (wait, _) => wait,
    }
}

/// The value without spaces and tabs around it, if anything is left.
fn slow_value(text: &str) -> Option<&str> {
    let text = text.trim_start_matches([' ', '\t']).trim_end_matches([' ', '\t']);
    (!text.is_empty()).then_some(text)
}

/// Milliseconds of delay-seconds, digit by digit.
fn slow_seconds(value: &str) -> Option<u64> {
    let mut seconds = 0_u64;
    for digit in value.chars() {
        if !digit.is_ascii_digit() {
            return None;
        }
        let digit = digit.to_digit(10)?;
        seconds = seconds.saturating_mul(10).saturating_add(digit.into());
    }
    Some(seconds.saturating_mul(1_000))
}

/// As the numbers are written, so they are read, and no other way.
fn slow_pushback(value: &str) -> Wait {
    match value.parse::<i32>() {
        Ok(ms) if 0 <= ms && ms.to_string() == value => Wait::AtLeast(ms.unsigned_abs().into()),
        _ => Wait::Forbidden,
    }
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`, by counting days.
fn slow_date(value: &str) -> Option<u64> {
    const MONTHS: [(&str, u64); 12] = [
        ("Jan", 31),
        ("Feb", 28),
        ("Mar", 31),
        ("Apr", 30),
        ("May", 31),
        ("Jun", 30),
        ("Jul", 31),
        ("Aug", 31),
        ("Sep", 30),
        ("Oct", 31),
        ("Nov", 30),
        ("Dec", 31),
    ];
    const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let number = |text: &str| slow_seconds(text).map(|ms| ms / 1_000);

    let bytes = value.as_bytes();
    if bytes.len() != 29 || !value.is_ascii() {
        return None;
    }
    let (day, year) = (number(&value[5..7])?, number(&value[12..16])?);
    let (hour, minute) = (number(&value[17..19])?, number(&value[20..22])?);
    let second = number(&value[23..25])?;
    let month = MONTHS.iter().position(|(name, _)| *name == &value[8..11])?;
    let length = |month: usize| MONTHS[month].1 + u64::from(month == 1 && is_leap(year));
    if year < 1970 || day < 1 || length(month) < day || 23 < hour || 59 < minute || 59 < second {
        return None;
    }
    let of_years: u64 = (1970..year).map(|year| 365 + u64::from(is_leap(year))).sum();
    let days = of_years + (0..month).map(length).sum::<u64>() + day - 1;
    let weekday = WEEKDAYS[usize::try_from(days % 7).ok()?];
    let name = MONTHS[month].0;
    let written =
        format!("{weekday}, {day:02} {name} {year:04} {hour:02}:{minute:02}:{second:02} GMT");
    (written == value).then_some((((days * 24 + hour) * 60 + minute) * 60 + second) * 1_000)
}
