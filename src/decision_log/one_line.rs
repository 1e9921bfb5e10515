//! JSON that stays on one line, whoever splits it.
use std::io::{self, Write};

use serde::Serialize;
use serde_json::{Serializer, ser::Formatter};

/// Writes `value` to the end of `out`.
pub(super) fn write(value: &impl Serialize, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
    value.serialize(&mut Serializer::with_formatter(out, OneLine))
}

/// Compact JSON. What JSON itself lets stand and some readers take for the end of a line, such as
/// U+0085 and U+2028, is escaped like a line feed, and so is every other control character.
struct OneLine;

impl Formatter for OneLine {
    fn write_string_fragment<W>(&mut self, out: &mut W, fragment: &str) -> io::Result<()>
    where
        W: ?Sized + Write,
    {
        let mut rest = fragment;
        while let Some(place) = rest.find(is_unsafe) {
            let (plain, from) = rest.split_at(place);
            out.write_all(plain.as_bytes())?;
            let mut characters = from.chars();
            if let Some(character) = characters.next() {
                write!(out, "\\u{:04x}", u32::from(character))?;
            }
            rest = characters.as_str();
        }
        out.write_all(rest.as_bytes())
    }
}

fn is_unsafe(character: char) -> bool {
    character.is_control() || matches!(character, '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_ends_a_line_is_left_and_nothing_is_lost() {
        let controls = ('\u{0}'..='\u{1f}').chain('\u{7f}'..='\u{9f}');
        let text: String = controls.chain("é\u{2028}x\u{2029}\"\\ \u{1f600}".chars()).collect();
        let mut out = Vec::new();
        write(&text, &mut out).unwrap();
        let written = String::from_utf8(out).unwrap();
        assert!(!written.chars().any(is_unsafe), "{written}");
        assert!(written.contains("\\u0085") && written.contains("é\\u2028x"), "{written}");
        assert_eq!(serde_json::from_str::<String>(&written).unwrap(), text);
    }
}
