//! The border: bytes and generated types outside, checked values inside.
//!
//! Together with `service` the only place that knows the generated types. A message is parsed once,
//! and every violation is reported; behind the border a value is right.
pub mod borrowed;
pub mod budget;
pub mod codec;
pub mod context;
pub mod decision;
mod duration;
pub mod grant;
mod hint;
pub mod list;
mod name;
pub mod refusal;
mod usage;

/// The generated types of `proto/retryd/v1/retryd.proto`.
#[allow(
    missing_docs,
    unreachable_pub,
    unused_qualifications,
    clippy::all,
    clippy::allow_attributes_without_reason,
    clippy::cast_possible_truncation,
    reason = "generated code"
)]
pub mod pb {
    tonic::include_proto!("retryd.v1");
    include!(concat!(env!("OUT_DIR"), "/retryd.v1.serde.rs"));
}

/// The encoded `FileDescriptorSet` of the contract, for reflection.
pub const DESCRIPTORS: &[u8] =
    include_bytes!(concat!(env!("OUT_DIR"), "/retryd.v1.descriptors.bin"));
