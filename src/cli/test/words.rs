//! Friendlier spellings of what proto-JSON writes: durations such as `100ms`, and the names of
//! enums without their prefix.
use std::{iter, time::Duration};

use pbjson_types::Timestamp;
use serde::{Deserialize as _, de::IntoDeserializer as _, de::value::Error};
use serde_json::Value;

use crate::clock::Now;
use crate::policy::{Gep2257, parse_ms, quoted};

/// Where clocks stand unless a file says otherwise: 2026-01-01T00:00:00Z.
pub(super) const UNIX_MS: u64 = 1_767_225_600_000;
/// The draw unless a file says otherwise: the longest wait.
pub(super) const DRAW: u32 = u32::MAX;

/// On the monotonic clock: after a gap that every balance has forgotten, and where a slot of every
/// ratio begins.
const MONOTONIC_MS: u64 = 36_000_000;

/// Fields whose text is a duration.
const DURATIONS: [&str; 4] = ["remaining_deadline", "retry_after", "period", "delay"];
/// Fields whose text is a name, and how the names begin.
const NAMES: [(&str, &str); 7] = [
    ("category", "FAILURE_CATEGORY_"),
    ("evidence", "EVIDENCE_"),
    ("verdict", "VERDICT_"),
    ("reason", "REASON_"),
    ("rule", "REASON_"),
    ("delay_source", "DELAY_SOURCE_"),
    ("failure_class", "FAILURE_CLASS_"),
];

/// `text` of the field `key` as proto-JSON writes it.
pub(super) fn spelled(key: &str, text: &str) -> Result<String, String> {
    let key = snake(key);
    if DURATIONS.contains(&key.as_str()) {
        return duration(text);
    }
    match prefix(&key) {
        Some(prefix) if !text.starts_with(prefix) => Ok(format!("{prefix}{text}")),
        _ => Ok(text.to_owned()),
    }
}

/// `value` of the field `key` as a test file writes it.
pub(super) fn shown(key: &str, value: &Value) -> String {
    match value {
        Value::String(text) => {
            let key = snake(key);
            let ms = DURATIONS.contains(&key.as_str()).then(|| whole_ms(text)).flatten();
            match (ms, prefix(&key)) {
                (Some(ms), _) => Gep2257(ms).to_string(),
                (None, Some(prefix)) => visible(text.strip_prefix(prefix).unwrap_or(text)),
                (None, None) => visible(text),
            }
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| shown(key, item)).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(fields) => {
            let field =
                |(key, value): (&String, &Value)| format!("{}: {}", snake(key), shown(key, value));
            let fields: Vec<String> = fields.iter().map(field).collect();
            format!("{{{}}}", fields.join(", "))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

/// The name of a field as the contract writes it.
pub(super) fn snake(key: &str) -> String {
    let mut snake = String::new();
    for letter in key.chars() {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

/// The name of a field as proto-JSON writes it.
pub(super) fn camel(key: &str) -> String {
    let mut words = key.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |camel, word| {
        let mut letters = word.chars();
        let upper = letters.next().map(|letter| letter.to_ascii_uppercase());
        camel + &upper.into_iter().chain(letters).collect::<String>()
    })
}

/// Where the clock stands: RFC 3339.
pub(super) fn clock(text: &str) -> Result<Now, String> {
    let stamp: Result<Timestamp, Error> = Timestamp::deserialize(text.into_deserializer());
    let unix_ms = stamp.ok().and_then(|stamp| {
        u64::try_from(stamp.seconds * 1_000 + i64::from(stamp.nanos / 1_000_000)).ok()
    });
    match unix_ms {
        Some(unix_ms) => Ok(standing_at(unix_ms)),
        None => Err(format!(
            "`clock` must be a time from 1970 on, such as `2026-01-01T00:00:00Z`, not {}",
            quoted(text)
        )),
    }
}

pub(super) fn standing_at(unix_ms: u64) -> Now {
    Now { monotonic_ms: MONOTONIC_MS, unix_ms }
}

/// A draw as a share of the largest: `0%` is the shortest wait, `100%` the longest.
pub(super) fn draw(text: &str) -> Option<u32> {
    let percent: u64 = text.strip_suffix('%')?.parse().ok().filter(|percent| *percent <= 100)?;
    // A draw of half is what halves a wait: 2^31.
    Some(u32::try_from((percent << u32::BITS) / 100).unwrap_or(u32::MAX))
}

/// `text` without anything that a terminal would obey.
pub(super) fn visible(text: &str) -> String {
    let letter = |letter: char| {
        let escaped = letter.is_control().then(|| letter.escape_default());
        let plain = (!letter.is_control()).then_some(letter);
        iter::empty().chain(plain).chain(escaped.into_iter().flatten())
    };
    text.chars().flat_map(letter).collect()
}

/// A time that passes.
pub(super) fn span(text: &str) -> Result<Duration, String> {
    let ms = whole_ms(&duration(text)?);
    ms.map(Duration::from_millis).ok_or_else(|| format!("{} is no time that passes", quoted(text)))
}

fn prefix(key: &str) -> Option<&'static str> {
    NAMES.iter().find_map(|(name, prefix)| (*name == key).then_some(*prefix))
}

/// A duration of the policy file's form, or of proto-JSON, in proto-JSON.
fn duration(text: &str) -> Result<String, String> {
    if let Some(ms) = parse_ms(text) {
        return Ok(format!("{}.{:03}s", ms / 1_000, ms % 1_000));
    }
    let number = text.strip_suffix('s').map(|number| number.strip_prefix('-').unwrap_or(number));
    let is_plain = |c: char| c.is_ascii_digit() || c == '.';
    match number {
        Some(number)
            if number.starts_with(|c: char| c.is_ascii_digit()) && number.chars().all(is_plain) =>
        {
            Ok(text.to_owned())
        }
        _ => Err(format!(
            "write a duration such as `100ms`, `1m30s` or `0.3s`, not {}",
            quoted(text)
        )),
    }
}

/// The milliseconds of a duration in proto-JSON, if they are whole and not negative.
fn whole_ms(text: &str) -> Option<u64> {
    let duration: Result<_, Error> = pbjson_types::Duration::deserialize(text.into_deserializer());
    let duration = duration.ok().filter(|duration| duration.nanos % 1_000_000 == 0)?;
    u64::try_from(duration.seconds * 1_000 + i64::from(duration.nanos / 1_000_000)).ok()
}
