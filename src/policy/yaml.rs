//! YAML: what is read of it, how much of it, and its errors in the words of the file.
use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{self, DeserializeOwned, Visitor},
};
use serde_saphyr::{
    DuplicateKeyPolicy, Error, Location, MergeKeyPolicy, MessageFormatter as _,
    NonFiniteFloatPolicy, Options, Spanned, UserMessageFormatter,
};

use super::{
    nearest::nearest,
    rejected::{Place, Problem, quoted},
};

/// Lists in mappings in lists: the policy file needs six.
const DEPTH_MAX: usize = 16;
/// The same in files of other tools: a retry policy of Envoy stands twenty deep.
const FOREIGN_DEPTH_MAX: usize = 64;
/// Documents in one file of another tool.
const FOREIGN_DOCUMENTS_MAX: usize = 1_000;
/// Values, lists and mappings of one file. 1000 policies with every key need 60 000, and 1000
/// budgets 20 000.
const NODES_MAX: usize = 100_000;
/// Anchors, and aliases to them.
const ALIASES_MAX: usize = 1_000;
/// Values that aliases may stand for, so that aliases of aliases do not blow up.
const ALIASED_NODES_MAX: usize = 100_000;

/// A value with its place.
pub(crate) type Scalar = Spanned<Value>;

/// A single value, as YAML sees it.
#[derive(Debug)]
pub(crate) enum Value {
    /// Text, or anything in quotes.
    Text(String),
    /// A number or a boolean. How it was written stands in the source.
    Literal,
}

/// Reads one document of the shape `T`, up to the first error.
pub(crate) fn read<T: DeserializeOwned>(source: &str) -> Result<T, Problem> {
    // The second document is refused, in words that say why.
    serde_saphyr::from_str_with_options(source, options(DEPTH_MAX, 2))
        .map_err(|error| problem(&error))
}

/// Reads every document of a file of another tool, up to the first error.
pub(crate) fn read_foreign<T: DeserializeOwned>(source: &str) -> Result<Vec<T>, Problem> {
    let options = options(FOREIGN_DEPTH_MAX, FOREIGN_DOCUMENTS_MAX);
    serde_saphyr::from_multiple_with_options(source, options).map_err(|error| problem(&error))
}

/// For a key that may be absent, but not null. Used with `#[serde(default)]`.
pub(crate) fn given<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}

/// Where a value stands. An alias stands where its anchor does: that is the text to change.
pub(crate) fn place<T>(value: &Spanned<T>) -> Place {
    place_at(value.defined)
}

fn place_at(location: Location) -> Place {
    let number = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    Place {
        line: number(location.line()),
        column: number(location.column()),
        width: number(location.span().len()),
    }
}

fn options(depth_max: usize, documents_max: usize) -> Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: depth_max,
            max_nodes: NODES_MAX,
            max_documents: documents_max,
            max_aliases: ALIASES_MAX,
            max_anchors: ALIASES_MAX,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: ALIASED_NODES_MAX,
            max_replay_stack_depth: DEPTH_MAX,
        },
        emit_comments: false,
        duplicate_keys: DuplicateKeyPolicy::Error,
        merge_keys: MergeKeyPolicy::Error,
        // `no` and `on` are words, as YAML 1.2 has it.
        strict_booleans: true,
        reject_unsupported_tags: true,
        reject_tagged_field_names: true,
        // A number like others: the range refuses it.
        non_finite_float_policy: NonFiniteFloatPolicy::PassThrough,
        with_snippet: false,
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl Visitor<'_> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a single value")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.to_owned()))
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<Value, E> {
        Ok(Value::Literal)
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<Value, E> {
        Ok(Value::Literal)
    }

    fn visit_i128<E: de::Error>(self, _: i128) -> Result<Value, E> {
        Ok(Value::Literal)
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<Value, E> {
        Ok(Value::Literal)
    }

    fn visit_u128<E: de::Error>(self, _: u128) -> Result<Value, E> {
        Ok(Value::Literal)
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<Value, E> {
        Ok(Value::Literal)
    }
}

fn problem(error: &Error) -> Problem {
    let known = error.location().filter(|location| *location != Location::UNKNOWN);
    Problem { place: known.map(place_at), message: message(error.without_snippet()) }
}

fn message(error: &Error) -> String {
    match error {
        Error::SerdeUnknownField { field, expected, .. } => match nearest(field, expected) {
            Some(near) => format!("unknown key {}; did you mean `{near}`?", quoted(field)),
            None => {
                format!("unknown key {}; known here: {}", quoted(field), expected.join(", "))
            }
        },
        Error::SerdeMissingField { field, .. } => format!("the key `{field}` is missing here"),
        Error::DuplicateMappingKey { key: Some(key), .. } => {
            format!("the key {} stands here a second time", quoted(key))
        }
        Error::DuplicateMappingKey { key: None, .. } => {
            "this key stands here a second time".to_owned()
        }
        Error::MergeKeyNotAllowed { .. } => {
            "merge keys are not read: write the keys out".to_owned()
        }
        Error::MultipleDocuments { .. } => "a file holds one document".to_owned(),
        Error::UnknownAnchor { .. } => "this alias names no anchor above it".to_owned(),
        Error::RecursiveReferencesRequireWeakTypes { .. } => {
            "an alias within its own anchor has no end".to_owned()
        }
        Error::Eof { .. } => "the file is empty".to_owned(),
        Error::SerdeInvalidType { unexpected, .. } if unexpected == "unit value" => NULL.to_owned(),
        Error::SerdeInvalidType { unexpected, expected, .. } => {
            format!("wrong type: {unexpected}, where {expected} is expected")
        }
        Error::Unexpected { expected: "mapping start", .. } => {
            "wrong type: a mapping is expected here".to_owned()
        }
        Error::Unexpected { expected: "sequence start", .. } => {
            "wrong type: a list is expected here".to_owned()
        }
        Error::Budget { breach, .. } => {
            format!("the file is larger or deeper than it needs to be: {breach:?}")
        }
        Error::AliasError { error, .. } => message(error),
        other => UserMessageFormatter.format_message(other).into_owned(),
    }
}

const NULL: &str = "this key has no value: leave the key out for its default";
