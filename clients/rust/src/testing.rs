//! Scenarios and proto-JSON, for the unit tests.
use std::{fs, path::Path};

use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A file of `clients/scenarios`.
pub(crate) fn scenarios<T: DeserializeOwned>(name: &str) -> T {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios").join(name);
    let text = fs::read_to_string(&path).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// A message of the contract, by its proto-JSON.
pub(crate) fn from_json<M: Message + Default>(name: &str, json: Value) -> M {
    let descriptors = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
    let pool = DescriptorPool::decode(descriptors.as_slice()).unwrap();
    let descriptor = pool.get_message_by_name(&format!("retryd.v1.{name}")).unwrap();
    let message = DynamicMessage::deserialize(descriptor, json).unwrap();
    M::decode(message.encode_to_vec().as_slice()).unwrap()
}
