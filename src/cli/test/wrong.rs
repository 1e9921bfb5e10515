//! Why a message cannot be read.
use std::fmt;

use serde::de::{self, Expected, Unexpected};

use super::words::snake;
use crate::policy::{Place, nearest, quoted};

/// Why a message cannot be read, in the words of the file.
#[derive(Debug)]
pub(super) struct Wrong {
    pub(super) place: Option<Place>,
    pub(super) message: String,
}

impl Wrong {
    pub(super) fn at(self, place: Place) -> Wrong {
        Wrong { place: self.place.or(Some(place)), ..self }
    }

    pub(super) fn new(message: String) -> Wrong {
        Wrong { place: None, message }
    }
}

/// How errors about numbers begin. In proto-JSON a number may be text, and of two readings the
/// last is told.
const NO_NUMBER: [&str; 4] =
    ["data did not match any variant", "invalid digit", "cannot parse integer", "number too"];

impl de::Error for Wrong {
    fn custom<T: fmt::Display>(message: T) -> Wrong {
        let message = message.to_string();
        if NO_NUMBER.iter().any(|beginning| message.starts_with(beginning)) {
            return Wrong::new("a number in the range of this field is expected here".to_owned());
        }
        Wrong::new(message)
    }

    fn invalid_type(got: Unexpected<'_>, expected: &dyn Expected) -> Wrong {
        let expected = match expected.to_string() {
            message if message.starts_with("struct ") => "a mapping".to_owned(),
            name if name.starts_with("expected one of") => "a name".to_owned(),
            expected => expected,
        };
        Wrong::new(match got {
            Unexpected::Unit => "this key has no value".to_owned(),
            Unexpected::Unsigned(_) | Unexpected::Signed(_) | Unexpected::Float(_)
                if expected == "a string" =>
            {
                format!("wrong type: {got}, where {expected} is expected: put it in quotes")
            }
            _ => format!("wrong type: {got}, where {expected} is expected"),
        })
    }

    fn invalid_value(got: Unexpected<'_>, _: &dyn Expected) -> Wrong {
        Wrong::new(format!("{got} means nothing here"))
    }

    fn unknown_field(key: &str, known: &'static [&'static str]) -> Wrong {
        // Both spellings are known; the contract's is told.
        let known: Vec<&str> = known.iter().copied().filter(|key| snake(key) == **key).collect();
        Wrong::new(unknown("key", key, &known))
    }

    fn unknown_variant(name: &str, known: &'static [&'static str]) -> Wrong {
        let prefix = known.first().and_then(|first| first.strip_suffix("UNSPECIFIED"));
        let short =
            |name| prefix.map_or(name, |prefix| str::strip_prefix(name, prefix).unwrap_or(name));
        let names: Vec<&str> = known.iter().skip(1).copied().map(short).collect();
        Wrong::new(unknown("name", short(name), &names))
    }

    fn duplicate_field(key: &'static str) -> Wrong {
        // Both spellings of one field, or two fields of which a message has one.
        Wrong::new(format!("the key `{}` has been given here, or one that excludes it", snake(key)))
    }
}

fn unknown(kind: &str, word: &str, known: &[&str]) -> String {
    match nearest(word, known) {
        Some(near) => format!("unknown {kind} {}; did you mean `{near}`?", quoted(word)),
        None => format!("unknown {kind} {}; known here: {}", quoted(word), known.join(", ")),
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Wrong {}
