//! What is asked.
use prost::Message as _;
use retryd::wire::pb;

/// A question that is answered with RETRY for as long as it is asked: it pays one of its tenant's
/// retries, out of what its usage earns.
pub(crate) fn of_tenant(tenant: usize) -> pb::RetryContext {
    pb::RetryContext {
        tenant: format!("tenant-{tenant}"),
        operation: "payments.v1.Payments/Charge".to_owned(),
        attempts_made: 1,
        body_replayable: true,
        idempotency: Some(pb::Idempotency { declared: true, ..Default::default() }),
        usage: Some(pb::Usage { requests: 10, first_try_successes: 9, ..Default::default() }),
        failure: Some(pb::Failure {
            status: Some(pb::failure::Status::GrpcCode(14)),
            ..Default::default()
        }),
        ..Default::default()
    }
}

/// A question behind its five bytes of gRPC framing.
pub(crate) fn framed(question: &pb::RetryContext) -> Vec<u8> {
    let bytes = question.encode_to_vec();
    let length = u32::try_from(bytes.len()).unwrap().to_be_bytes();
    [&[0], &length[..], &bytes].concat()
}
