//! Values of a file with the paths to them, and mappings of which keys are taken.
use super::reader::Reader;
use crate::cli::node::{Entry, Node, Value};
use crate::policy::quoted;

/// A value and the path to it, such as `methodConfig[0].retryPolicy`.
#[derive(Clone, Debug)]
pub(super) struct At<'a> {
    pub(super) node: &'a Node,
    pub(super) path: String,
}

/// The keys of a mapping that nobody has taken yet.
#[derive(Debug)]
pub(super) struct Fields<'a> {
    pub(super) at: At<'a>,
    pub(super) left: Vec<&'a Entry>,
}

impl<'a> At<'a> {
    pub(super) fn root(node: &'a Node) -> At<'a> {
        At { node, path: String::new() }
    }

    pub(super) fn text(&self) -> Option<&'a str> {
        match &self.node.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn key(&self, entry: &'a Entry) -> At<'a> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-@/.".contains(c);
        let key = match entry.key.chars().all(plain) && entry.key.len() <= 60 {
            true => entry.key.clone(),
            // Nothing of the file reaches a terminal as it is.
            false => quoted(&entry.key),
        };
        let path = if self.path.is_empty() { key } else { format!("{}.{key}", self.path) };
        At { node: &entry.node, path }
    }
}

impl<'a> Fields<'a> {
    /// The value of `key`. To proto-JSON and Kubernetes, null is the same as absent.
    pub(super) fn take(&mut self, key: &str) -> Option<At<'a>> {
        let place = self.left.iter().position(|entry| entry.key == key)?;
        let at = self.at.key(self.left.remove(place));
        (!matches!(at.node.value, Value::Null)).then_some(at)
    }

    /// The value of `key`, which proto-JSON may write as `snake_case` or as `camelCase`.
    pub(super) fn proto(&mut self, key: &str) -> Option<At<'a>> {
        let plain = key.replace('_', "");
        let is_meant = |written: &str| {
            written == key || !written.contains('_') && written.eq_ignore_ascii_case(&plain)
        };
        let written = self.left.iter().find(|entry| is_meant(&entry.key))?;
        self.take(&written.key)
    }

    /// How many keys nobody took.
    pub(super) fn left(&self) -> usize {
        self.left.iter().filter(|entry| !matches!(entry.node.value, Value::Null)).count()
    }

    /// The value of `key`, which has to be there.
    pub(super) fn need(&mut self, reader: &mut Reader, key: &str) -> Option<At<'a>> {
        let taken = self.take(key);
        if taken.is_none() {
            reader.refuse(&self.at, format_args!("needs `{key}`"));
        }
        taken
    }

    /// The mapping itself.
    pub(super) fn at(&self) -> &At<'a> {
        &self.at
    }
}
