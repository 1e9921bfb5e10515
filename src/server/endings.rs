//! How a call ends when it is the server, and not a service, that ends it.
use http::HeaderMap;
use tonic::{
    Code, Status,
    metadata::{MetadataMap, MetadataValue},
};
use tonic_types::{ErrorDetails, StatusExt as _};

use crate::admin::metrics::Refused;

const DOMAIN: &str = "retryd";
/// A negative pushback (gRFC A6): no client may retry the retry service.
const PUSHBACK: (&str, &str) = ("grpc-retry-pushback-ms", "-1");
const STATUS: &str = "grpc-status";

pub(super) fn deadline_exceeded() -> Status {
    Status::deadline_exceeded("the deadline of the call has passed")
}

pub(super) fn request_incomplete() -> Status {
    Status::deadline_exceeded("the request was not complete in time")
}

pub(super) fn panicked() -> Status {
    Status::internal("the call failed inside retryd")
}

pub(super) fn stopping() -> Status {
    let mut metadata = MetadataMap::new();
    metadata.insert(PUSHBACK.0, MetadataValue::from_static(PUSHBACK.1));
    let details = ErrorDetails::with_error_info(Refused::Stopping.reason(), DOMAIN, []);
    Status::with_error_details_and_metadata(
        Code::Unavailable,
        "retryd closes this connection: reconnect",
        details,
        metadata,
    )
}

/// tonic ends a message over its limit with OUT_OF_RANGE. The contract says RESOURCE_EXHAUSTED.
/// retryd's own services never answer OUT_OF_RANGE.
pub(super) fn is_too_large(headers: &HeaderMap) -> bool {
    headers.get(STATUS).is_some_and(|code| code.as_bytes() == b"11")
}

/// Bytes that are no message never reach a service, so nobody else can count them.
pub(super) fn is_not_protobuf(headers: &HeaderMap) -> bool {
    let invalid = headers.get(STATUS).is_some_and(|code| code.as_bytes() == b"3");
    let status = if invalid { Status::from_header_map(headers) } else { None };
    status
        .and_then(|status| status.get_details_error_info())
        .is_some_and(|info| info.domain == DOMAIN && info.reason == Refused::NotProtobuf.reason())
}

pub(super) fn too_large(headers: &HeaderMap) -> Status {
    let text = Status::from_header_map(headers);
    let text = text.as_ref().map_or("", Status::message);
    let details = ErrorDetails::with_error_info(Refused::MessageTooLarge.reason(), DOMAIN, []);
    Status::with_error_details(
        Code::ResourceExhausted,
        text.strip_prefix("Error, ").unwrap_or(text),
        details,
    )
}

/// The trailers of a status.
pub(super) fn trailers(status: &Status) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    // Fails only for texts that no header can carry. These can.
    status.add_header(&mut trailers).ok();
    trailers
}
