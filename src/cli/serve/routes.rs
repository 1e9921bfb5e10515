//! What is served on the ports for calls.
use tonic::service::Routes;
use tonic_reflection::pb::{v1, v1alpha};

use crate::budget::Memory;
use crate::server::Health;
use crate::service::Retryd;
use crate::wire;

/// Bytes of a question to reflection. It holds a name or two, and its stream may stay open: with
/// the library's 4 MiB, one connection could make the process hold half a gigabyte.
const REFLECTION_QUESTION_MAX: usize = 4 << 10;

/// The two services, health and both versions of reflection.
pub(super) fn routes(retryd: &Retryd<Memory>, health: &Health) -> anyhow::Result<Routes> {
    let reflection = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(wire::DESCRIPTORS)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
            // So that a generic client can read the details of an error.
            .register_encoded_file_descriptor_set(tonic_types::pb::FILE_DESCRIPTOR_SET)
    };
    // Each version lists the other one too.
    let v1 = reflection().register_encoded_file_descriptor_set(v1alpha::FILE_DESCRIPTOR_SET);
    let v1alpha = reflection().register_encoded_file_descriptor_set(v1::FILE_DESCRIPTOR_SET);
    Ok(Routes::new(retryd.retry_service())
        .add_service(retryd.budget_service())
        .add_service(health.service())
        .add_service(v1.build_v1()?.max_decoding_message_size(REFLECTION_QUESTION_MAX))
        .add_service(v1alpha.build_v1alpha()?.max_decoding_message_size(REFLECTION_QUESTION_MAX)))
}
