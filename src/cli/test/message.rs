//! Mappings in a test file to messages of the contract, read as proto-JSON. What is wrong is told
//! with its place.
use serde::{
    Deserializer,
    de::{
        DeserializeOwned, DeserializeSeed, IntoDeserializer, MapAccess, Visitor,
        value::{MapAccessDeserializer, SeqDeserializer},
    },
    forward_to_deserialize_any,
};

use super::words::{snake, spelled};
use super::wrong::Wrong;
use crate::cli::node::{Entry, Node, Value};
use crate::policy::{Place, Problem};

/// The fields of one message, gathered from one mapping or several.
#[derive(Clone, Debug, Default)]
pub(super) struct Fields<'a>(Vec<&'a Entry>);

impl<'a> Fields<'a> {
    pub(super) fn of(node: &'a Node) -> Result<Fields<'a>, Problem> {
        match &node.value {
            Value::Map(entries) => Ok(Fields(entries.iter().collect())),
            _ => Err(problem(node.place, "wrong type: a mapping is expected here".to_owned())),
        }
    }

    /// These fields in place of those of `base`. Null takes one away.
    pub(super) fn over(&self, base: &Fields<'a>) -> Fields<'a> {
        let is_kept = |entry: &&&Entry| !self.0.iter().any(|over| is_same(over, &entry.key));
        Fields(base.0.iter().filter(is_kept).chain(&self.0).copied().collect())
    }

    /// Whose budgets pay.
    pub(super) fn names(&self) -> Fields<'a> {
        let is_name = |entry: &&&Entry| is_same(entry, "tenant") || is_same(entry, "operation");
        Fields(self.0.iter().filter(is_name).copied().collect())
    }

    pub(super) fn read<T: DeserializeOwned>(&self, whole: Place) -> Result<T, Problem> {
        let given = self.0.iter().filter(|entry| !matches!(entry.node.value, Value::Null));
        let pairs = Pairs::of(given.copied());
        T::deserialize(MapAccessDeserializer::new(pairs)).map_err(|wrong: Wrong| Problem {
            place: Some(wrong.place.unwrap_or(whole)),
            message: wrong.message,
        })
    }

    /// Where the field at `path` stands, such as `failure.http_status`, or the nearest around it.
    pub(super) fn place(&self, path: &str) -> Option<Place> {
        let mut place = None;
        let mut entries = self.0.clone();
        for name in path.split('.') {
            let entry = entries.iter().find(|entry| is_same(entry, name))?;
            place = Some(entry.node.place);
            entries = match &entry.node.value {
                Value::Map(entries) => entries.iter().collect(),
                _ => return place,
            };
        }
        place
    }
}

fn is_same(entry: &Entry, key: &str) -> bool {
    snake(&entry.key) == snake(key)
}

pub(super) fn problem(place: Place, message: String) -> Problem {
    Problem { place: Some(place), message }
}

/// A mapping, for serde.
struct Pairs<'a, I> {
    entries: I,
    entry: Option<&'a Entry>,
}

impl<'a, I: Iterator<Item = &'a Entry>> Pairs<'a, I> {
    fn of(entries: I) -> Pairs<'a, I> {
        Pairs { entries, entry: None }
    }
}

impl<'de, 'a, I: Iterator<Item = &'a Entry>> MapAccess<'de> for Pairs<'a, I> {
    type Error = Wrong;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Wrong> {
        self.entry = self.entries.next();
        let Some(entry) = self.entry else { return Ok(None) };
        let key = seed.deserialize(entry.key.as_str().into_deserializer());
        key.map(Some).map_err(|wrong: Wrong| wrong.at(entry.key_place))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Wrong> {
        let Some(Entry { key, node, .. }) = self.entry else {
            return Err(Wrong::new("a value without a key".to_owned()));
        };
        // Some types look at what they have read afterwards: their errors stand here, too.
        seed.deserialize(At { key, node }).map_err(|wrong| wrong.at(node.place))
    }
}

/// A value and the key that it stands under, for serde.
#[derive(Clone, Copy)]
struct At<'a> {
    key: &'a str,
    node: &'a Node,
}

impl IntoDeserializer<'_, Wrong> for At<'_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for At<'_> {
    type Error = Wrong;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        let read = match &self.node.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Unsigned(value) => visitor.visit_u64(*value),
            Value::Signed(value) => visitor.visit_i64(*value),
            Value::Float(value) => visitor.visit_f64(*value),
            Value::Text(text) => match spelled(self.key, text) {
                Ok(text) => visitor.visit_string(text),
                Err(message) => Err(Wrong { place: None, message }),
            },
            Value::List(nodes) => {
                let items = nodes.iter().map(|node| At { key: self.key, node });
                visitor.visit_seq(SeqDeserializer::new(items))
            }
            Value::Map(entries) => visitor.visit_map(Pairs::of(entries.iter())),
        };
        read.map_err(|wrong| wrong.at(self.node.place))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match self.node.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        unit unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier
        ignored_any
    }
}
