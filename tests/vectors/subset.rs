//! `expect` of a vector names a part of an answer. The Rust kit in `clients/rust` compares by this file, too.
use serde_json::{Map, Value};

/// Everything that `expect` names and `got` does not hold.
pub(crate) fn subset_differs(expect: &Map<String, Value>, got: &Value) -> Vec<String> {
    let mut differs = Vec::new();
    for (key, wanted) in expect {
        compare(key, wanted, got.get(key), &mut differs);
    }
    differs
}

fn compare(path: &str, wanted: &Value, got: Option<&Value>, differs: &mut Vec<String>) {
    match (wanted, got) {
        (Value::Object(wanted), Some(Value::Object(got))) => {
            for (key, wanted) in wanted {
                compare(&format!("{path}.{key}"), wanted, got.get(key), differs);
            }
        }
        (Value::Array(wanted), Some(Value::Array(got))) if wanted.len() == got.len() => {
            for (place, (wanted, got)) in wanted.iter().zip(got).enumerate() {
                compare(&format!("{path}[{place}]"), wanted, Some(got), differs);
            }
        }
        // Proto-JSON leaves out what has its default value.
        (wanted, None) if is_default(wanted) => {}
        (wanted, Some(got)) if wanted == got => {}
        (wanted, None) => differs.push(format!("{path}: absent, expected {wanted}")),
        (wanted, Some(got)) => differs.push(format!("{path}: {got}, expected {wanted}")),
    }
}

fn is_default(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(_) | Value::Object(_) => false,
    }
}
