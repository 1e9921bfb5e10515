//! What an answer must be, and where it differs.
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value as Json;

use super::message::{Fields, problem};
use super::words::{camel, shown, snake};
use crate::cli::node::{Node, Value};
use crate::policy::Problem;

/// A part of an answer: what is named must be equal, the rest is free.
#[derive(Debug)]
pub(super) struct Expected {
    named: Node,
    /// The same in proto-JSON, where every value has one spelling.
    wanted: Json,
}

/// One value that is not as expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Difference {
    pub(super) path: String,
    pub(super) expected: String,
    pub(super) got: String,
}

impl Expected {
    /// What `named` names of a `T`.
    pub(super) fn read<T: DeserializeOwned + Serialize>(named: Node) -> Result<Expected, Problem> {
        let message: T = Fields::of(&named)?.read(named.place)?;
        let wanted = serde_json::to_value(&message)
            .map_err(|error| problem(named.place, error.to_string()))?;
        Ok(Expected { named, wanted })
    }

    pub(super) fn is_empty(&self) -> bool {
        matches!(&self.named.value, Value::Map(entries) if entries.is_empty())
    }

    /// Everything in which `got` differs.
    pub(super) fn differences(&self, got: &impl Serialize) -> Vec<Difference> {
        let got = serde_json::to_value(got).unwrap_or_default();
        let mut differences = Vec::new();
        let root = Spot { path: "", key: "", named: &self.named };
        root.compare(&self.wanted, &got, &mut differences);
        differences
    }
}

/// A place in an answer.
struct Spot<'a> {
    path: &'a str,
    key: &'a str,
    named: &'a Node,
}

impl Spot<'_> {
    fn compare(&self, wanted: &Json, got: &Json, differences: &mut Vec<Difference>) {
        let path = self.path;
        match (&self.named.value, got) {
            (Value::Map(entries), Json::Object(_)) => {
                for entry in entries {
                    let (key, named) = (&entry.key, &entry.node);
                    let dot = if path.is_empty() { "" } else { "." };
                    let path = &format!("{path}{dot}{}", snake(key));
                    Spot { path, key, named }.compare(
                        field(wanted, key),
                        field(got, key),
                        differences,
                    );
                }
            }
            (Value::List(nodes), Json::Array(items)) if nodes.len() == items.len() => {
                for (place, (named, got)) in nodes.iter().zip(items).enumerate() {
                    let path = &format!("{path}[{place}]");
                    let wanted = wanted.get(place).unwrap_or(&Json::Null);
                    Spot { path, key: self.key, named }.compare(wanted, got, differences);
                }
            }
            _ if wanted == got => {}
            _ => differences.push(Difference {
                path: path.to_owned(),
                expected: self.shown(wanted),
                got: self.shown(got),
            }),
        }
    }

    /// Proto-JSON leaves out what has its default value.
    fn shown(&self, value: &Json) -> String {
        match (value, &self.named.value) {
            (Json::Null, Value::Bool(_)) => "false".to_owned(),
            (Json::Null, Value::Unsigned(_) | Value::Signed(_)) => "0".to_owned(),
            (Json::Null, _) => "none".to_owned(),
            (value, _) => shown(self.key, value),
        }
    }
}

fn field<'a>(message: &'a Json, key: &str) -> &'a Json {
    message.get(camel(key)).unwrap_or(&Json::Null)
}
