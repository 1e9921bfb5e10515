//! Reads the file of another tool value by value, and keeps what is wrong, what is left out and what
//! to know. Whatever nobody took of a mapping is left out by name: nothing is lost in silence.
use std::fmt;

use super::at::{At, Fields};
use super::number::{self, nanos};
use crate::cli::node::Value;
use crate::policy::{Place, Problem};

const NANOS_PER_MS: u64 = 1_000_000;

#[derive(Debug, Default)]
pub(super) struct Reader {
    /// What is wrong with the file. With one of these there is no policy.
    pub(super) problems: Vec<Problem>,
    /// What no policy can say.
    pub(super) unsaid: Vec<Unsaid>,
    /// What differs wherever the one tool takes the place of the other.
    pub(super) notes: Vec<&'static str>,
}

/// Something that stands in the file, and not in the policy.
#[derive(Debug)]
pub(super) struct Unsaid {
    place: Place,
    path: String,
    why: String,
}

impl Reader {
    pub(super) fn refuse(&mut self, at: &At<'_>, message: impl fmt::Display) {
        let message = match at.path.as_str() {
            "" => message.to_string(),
            path => format!("`{path}` {message}"),
        };
        self.problems.push(Problem { place: Some(at.node.place), message });
    }

    pub(super) fn refuse_file(&mut self, message: &str) {
        self.problems.push(Problem { place: None, message: message.to_owned() });
    }

    /// Leaves `at` out, or something of it.
    pub(super) fn leave(&mut self, at: &At<'_>, why: impl Into<String>) {
        self.unsaid.push(Unsaid { place: at.node.place, path: at.path.clone(), why: why.into() });
    }

    pub(super) fn note(&mut self, note: &'static str) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// The keys of a mapping. Of something else there are none.
    pub(super) fn fields<'a>(&mut self, at: At<'a>) -> Fields<'a> {
        let left = match &at.node.value {
            Value::Map(entries) => entries.iter().collect(),
            Value::Null => Vec::new(),
            other => {
                self.refuse(&at, format_args!("must be a mapping, not {}", kind(other)));
                Vec::new()
            }
        };
        Fields { at, left }
    }

    pub(super) fn items<'a>(&mut self, at: &At<'a>) -> Vec<At<'a>> {
        let Value::List(nodes) = &at.node.value else {
            self.refuse(at, format_args!("must be a list, not {}", kind(&at.node.value)));
            return Vec::new();
        };
        let item = |(place, node)| At { node, path: format!("{}[{place}]", at.path) };
        nodes.iter().enumerate().map(item).collect()
    }

    pub(super) fn text<'a>(&mut self, at: &At<'a>) -> Option<&'a str> {
        let text = at.text();
        if text.is_none() {
            self.refuse(at, format_args!("must be text, not {}", kind(&at.node.value)));
        }
        text
    }

    /// A whole number from `min` to `max`. In proto-JSON it may stand in quotes.
    pub(super) fn whole(&mut self, at: &At<'_>, min: u64, max: u64) -> Option<u64> {
        let number = match &at.node.value {
            Value::Unsigned(number) => Some(*number),
            Value::Text(text) => text.parse().ok().filter(|_| number::is_digits(text)),
            // `10.0` is a whole number to JSON.
            Value::Float(number) => number::whole(*number),
            _ => None,
        };
        let number = number.filter(|number| (min..=max).contains(number));
        if number.is_none() {
            self.refuse(at, format_args!("must be a whole number from {min} to {max}"));
        }
        number
    }

    /// A decimal above 0 in thousandths, further decimals cut off, and whether some were.
    pub(super) fn thousandths(&mut self, at: &At<'_>) -> Option<(u64, bool)> {
        let thousandths = match &at.node.value {
            Value::Unsigned(number) => number.checked_mul(1_000).map(|value| (value, false)),
            Value::Float(number) => number::thousandths(*number),
            _ => None,
        };
        let thousandths = thousandths.filter(|(value, cut)| 0 < *value || *cut);
        if thousandths.is_none() {
            self.refuse(at, "must be a number above 0");
        }
        thousandths
    }

    /// A duration of proto-JSON above 0, in whole milliseconds and at most `max`.
    pub(super) fn positive_ms(&mut self, at: &At<'_>, max_ms: u64) -> Option<u64> {
        let Some(nanos) = at.text().and_then(nanos).filter(|nanos| 0 < *nanos) else {
            self.refuse(at, "must be a duration above 0 in seconds, such as `0.1s`");
            return None;
        };
        let ms = nanos.div_ceil(NANOS_PER_MS);
        if !nanos.is_multiple_of(NANOS_PER_MS) {
            self.leave(at, format!("a policy counts whole milliseconds: {ms}ms in its place"));
        }
        if max_ms < ms {
            self.leave(at, format!("a policy allows at most {}", crate::policy::Gep2257(max_ms)));
        }
        Some(ms.min(max_ms))
    }

    /// A duration of Gateway API.
    pub(super) fn gep2257_ms(&mut self, at: &At<'_>) -> Option<u64> {
        let ms = at.text().and_then(crate::policy::parse_ms);
        if ms.is_none() {
            self.refuse(at, "must be a duration of Gateway API, such as `100ms` or `1m30s`");
        }
        ms
    }

    /// The values of these keys, in `snake_case`, wherever they stand below `at`.
    pub(super) fn find<'a>(&self, at: At<'a>, keys: &[&str], found: &mut Vec<At<'a>>) {
        match &at.node.value {
            Value::Map(entries) => {
                for entry in entries {
                    let is_meant = |key: &&str| {
                        *key == entry.key || key.replace('_', "").eq_ignore_ascii_case(&entry.key)
                    };
                    match keys.iter().any(is_meant) {
                        true => found.push(at.key(entry)),
                        false => self.find(at.key(entry), keys, found),
                    }
                }
            }
            Value::List(nodes) => {
                for (place, node) in nodes.iter().enumerate() {
                    let path = format!("{}[{place}]", at.path);
                    self.find(At { node, path }, keys, found);
                }
            }
            _ => {}
        }
    }

    /// Leaves out what nobody took of a mapping, each key with a reason.
    pub(super) fn leave_rest(&mut self, fields: Fields<'_>, why: impl Fn(&str) -> &'static str) {
        for entry in &fields.left {
            let at = fields.at.key(entry);
            if !matches!(at.node.value, Value::Null) {
                self.unsaid.push(Unsaid {
                    place: entry.key_place,
                    path: at.path,
                    why: why(&entry.key).to_owned(),
                });
            }
        }
    }
}

impl Unsaid {
    pub(super) fn place(&self) -> Place {
        self.place
    }
}

impl fmt::Display for Unsaid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Unsaid { place: Place { line, column, .. }, path, why } = self;
        write!(f, "{line}:{column}: {path}: {why}")
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Unsigned(_) | Value::Signed(_) | Value::Float(_) => "a number",
        Value::Text(_) => "text",
        Value::List(_) => "a list",
        Value::Map(_) => "a mapping",
    }
}
