//! Messages as proto-JSON.
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
