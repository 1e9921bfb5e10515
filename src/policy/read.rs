//! Reads single values, and keeps every problem that it meets.
use std::ops::RangeInclusive;

use super::{
    Pattern, decimal,
    duration::{self, Gep2257},
    nearest::nearest,
    rejected::{PROBLEMS_TOLD_MAX, Place, Problem, quoted},
    yaml::{Scalar, Value, place},
};

/// The longest name of a policy or a budget.
const NAME_BYTES_MAX: usize = 63;

/// Reads values of one file: a policy file, or another that is written alike. Where a value is
/// wrong, it notes the problem and answers with something that is right: checking goes on, so that
/// every error is told, and the notes decide.
pub(crate) struct Reader<'a> {
    source: &'a str,
    pub(crate) problems: Vec<Problem>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(source: &'a str) -> Reader<'a> {
        Reader { source, problems: Vec::new() }
    }

    pub(crate) fn refuse(&mut self, place: Place, message: String) {
        self.problems.push(Problem { place: Some(place), message });
    }

    /// A whole number in `range`; `absent` without the key.
    pub(crate) fn whole(
        &mut self,
        key: &str,
        value: Option<&Scalar>,
        range: RangeInclusive<u32>,
        absent: u32,
    ) -> u32 {
        let Some(value) = value else { return absent };
        let number = self.literal(value).and_then(decimal::whole);
        match number.and_then(|number| u32::try_from(number).ok()) {
            Some(number) if range.contains(&number) => number,
            _ => {
                let (min, max) = range.into_inner();
                let shown = self.shown(value);
                let message =
                    format!("`{key}` must be a whole number from {min} to {max}, not {shown}");
                self.refuse(place(value), message);
                absent
            }
        }
    }

    /// A duration in `range_ms`; `absent_ms` without the key.
    pub(crate) fn duration_ms(
        &mut self,
        key: &str,
        value: Option<&Scalar>,
        range_ms: RangeInclusive<u64>,
        absent_ms: u64,
    ) -> u64 {
        let Some(scalar) = value else { return absent_ms };
        let duration_ms = match &scalar.value {
            Value::Text(text) => duration::parse_ms(text),
            Value::Literal => None,
        };
        match duration_ms {
            Some(duration_ms) if range_ms.contains(&duration_ms) => duration_ms,
            _ => {
                let (min, max) = range_ms.into_inner();
                let message = format!(
                    "`{key}` must be a duration from {} to {}, such as `100ms` or `1m30s`, not {}",
                    Gep2257(min),
                    Gep2257(max),
                    self.shown(scalar)
                );
                self.refuse(place(scalar), message);
                absent_ms
            }
        }
    }

    /// A decimal in thousandths, if it is one. Whether it is in range, the caller says.
    pub(super) fn thousandths(&self, value: &Scalar) -> Option<decimal::Thousandths> {
        self.literal(value).and_then(decimal::thousandths)
    }

    /// One of a few words.
    pub(crate) fn word<T: Copy>(
        &mut self,
        key: &str,
        value: Option<&Scalar>,
        words: &[(&str, T)],
        absent: T,
    ) -> T {
        let Some(value) = value else { return absent };
        let found = match &value.value {
            Value::Text(text) => words.iter().find(|(word, _)| word == text),
            Value::Literal => None,
        };
        if let Some((_, meaning)) = found {
            return *meaning;
        }
        let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let message = format!("`{key}` must be {}, not {}", one_of(&known), self.shown(value));
        self.refuse(place(value), message);
        absent
    }

    /// The text of a value that YAML takes for text.
    pub(crate) fn text<'v>(&mut self, key: &str, value: &'v Scalar) -> Option<&'v str> {
        match &value.value {
            Value::Text(text) => Some(text),
            Value::Literal => {
                let shown = self.shown(value);
                let message = format!(
                    "`{key}` must be text; YAML takes {shown} for something else: quote it"
                );
                self.refuse(place(value), message);
                None
            }
        }
    }

    /// The name of a policy or a budget.
    pub(super) fn name<'v>(&mut self, value: &'v Scalar) -> &'v str {
        let Some(name) = self.text("name", value) else { return "" };
        let allowed = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
        if name.is_empty() || NAME_BYTES_MAX < name.len() || !name.bytes().all(allowed) {
            let shown = quoted(name);
            let message = format!(
                "a name is 1 to {NAME_BYTES_MAX} characters of a to z, 0 to 9 and `-`, not {shown}"
            );
            self.refuse(place(value), message);
        }
        name
    }

    /// A pattern, if it is one.
    pub(super) fn pattern(&mut self, key: &str, value: &Scalar) -> Option<Pattern> {
        let text = self.text(key, value)?;
        let pattern = Pattern::new(text);
        if pattern.is_none() {
            let message = format!("`{key}` is empty and would match no name; `*` matches all");
            self.refuse(place(value), message);
        }
        pattern
    }

    /// The end of an error about a name that is not known. Guessing takes time, so it ends with
    /// the errors that will be told.
    pub(super) fn guess(&self, name: &str, known: &[&str]) -> String {
        let near = (self.problems.len() < PROBLEMS_TOLD_MAX).then(|| nearest(name, known));
        near.flatten().map_or_else(String::new, |near| format!("; did you mean `{near}`?"))
    }

    /// A number or a boolean, as it is written in the file.
    pub(super) fn literal(&self, value: &Scalar) -> Option<&'a str> {
        match value.value {
            Value::Text(_) => None,
            Value::Literal => Some(self.written(value)),
        }
    }

    /// The value for an error.
    pub(super) fn shown(&self, value: &Scalar) -> String {
        match &value.value {
            Value::Text(text) => format!("the text {}", quoted(text)),
            Value::Literal => quoted(self.written(value)),
        }
    }

    fn written(&self, value: &Scalar) -> &'a str {
        let span = value.defined.span();
        let from = span.byte_offset().and_then(|from| usize::try_from(from).ok());
        let len = span.byte_len().and_then(|len| usize::try_from(len).ok());
        let range = from.zip(len).and_then(|(from, len)| Some(from..from.checked_add(len)?));
        range.and_then(|range| self.source.get(range)).unwrap_or_default()
    }
}

fn one_of(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [word] => (*word).to_owned(),
        [before @ .., last] => format!("{} or {last}", before.join(", ")),
    }
}
