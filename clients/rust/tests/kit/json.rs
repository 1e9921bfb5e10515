//! Messages as proto-JSON, and how an answer is held against what is expected of it.
use std::sync::LazyLock;

use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor};
use serde_json::{Map, Value};

pub(crate) type Object = Map<String, Value>;

static CONTRACT: LazyLock<DescriptorPool> = LazyLock::new(|| {
    let descriptors = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
    DescriptorPool::decode(descriptors.as_slice()).unwrap()
});

fn descriptor(name: &str) -> MessageDescriptor {
    let found = CONTRACT.get_message_by_name(&format!("retryd.v1.{name}"));
    found.unwrap_or_else(|| panic!("the contract has no {name}"))
}

/// The message `name` of the contract.
pub(crate) fn message<M: Message + Default>(name: &str, json: Object) -> M {
    let shown = serde_json::to_string(&json).unwrap();
    let message = DynamicMessage::deserialize(descriptor(name), Value::Object(json))
        .unwrap_or_else(|error| panic!("{name} {shown}: {error}"));
    M::decode(message.encode_to_vec().as_slice()).unwrap()
}

pub(crate) fn json<M: Message>(name: &str, message: &M) -> Value {
    let bytes = message.encode_to_vec();
    let message = DynamicMessage::decode(descriptor(name), bytes.as_slice()).unwrap();
    serde_json::to_value(message).unwrap()
}

/// Everything that `expect` names and `got` does not hold.
pub(crate) fn differs(expect: &Object, got: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for (key, wanted) in expect {
        compare(key, wanted, got.get(key), &mut found);
    }
    found
}

fn compare(path: &str, wanted: &Value, got: Option<&Value>, found: &mut Vec<String>) {
    match (wanted, got) {
        (Value::Object(wanted), Some(Value::Object(got))) => {
            for (key, wanted) in wanted {
                compare(&format!("{path}.{key}"), wanted, got.get(key), found);
            }
        }
        (Value::Array(wanted), Some(Value::Array(got))) if wanted.len() == got.len() => {
            for (place, (wanted, got)) in wanted.iter().zip(got).enumerate() {
                compare(&format!("{path}[{place}]"), wanted, Some(got), found);
            }
        }
        // Proto-JSON leaves out what has its default value.
        (wanted, None) if is_default(wanted) => {}
        (wanted, Some(got)) if wanted == got => {}
        (wanted, got) => found.push(format!("{path}: {got:?}, expected {wanted}")),
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
