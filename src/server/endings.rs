//! How a call ends when it is the server, and not a service, that ends it.
use http::{HeaderMap, HeaderName, HeaderValue};
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use crate::admin::metrics::Refused;
use crate::wire::refusal::{DOMAIN, Refusal};

static STATUS: HeaderName = HeaderName::from_static("grpc-status");

pub(crate) fn deadline_exceeded() -> Status {
    Status::deadline_exceeded("the deadline of the call has passed")
}

pub(super) fn request_incomplete() -> Status {
    Status::deadline_exceeded("the request was not complete in time")
}

pub(super) fn panicked() -> Status {
    Status::internal("the call failed inside retryd")
}

/// The call was refused before anybody looked at it, so nothing of it was charged, counted or earned.
pub(super) fn overloaded() -> Status {
    Refusal::Overloaded.into()
}

pub(super) fn stopping() -> Status {
    Refusal::Stopping.saying("retryd closes this connection: reconnect")
}

/// tonic ends a message over its limit with OUT_OF_RANGE. The contract says RESOURCE_EXHAUSTED.
/// retryd's own services never answer OUT_OF_RANGE.
pub(super) fn is_too_large(headers: &HeaderMap) -> bool {
    headers.get(&STATUS).is_some_and(|code| code.as_bytes() == b"11")
}

/// Bytes that are no message never reach a service, so nobody else can count them.
pub(super) fn is_not_protobuf(headers: &HeaderMap) -> bool {
    let invalid = headers.get(&STATUS).is_some_and(|code| code.as_bytes() == b"3");
    let status = if invalid { Status::from_header_map(headers) } else { None };
    status
        .and_then(|status| status.get_details_error_info())
        .is_some_and(|info| info.domain == DOMAIN && info.reason == Refused::NotProtobuf.name())
}

pub(super) fn too_large(headers: &HeaderMap) -> Status {
    let text = Status::from_header_map(headers);
    let text = text.as_ref().map_or("", Status::message);
    // tonic's words say how large it was, and how large it may be.
    Refusal::MessageTooLarge.saying(text.strip_prefix("Error, ").unwrap_or(text))
}

/// How a call ended, by its trailers, or by the head of an answer that is nothing else.
pub(super) fn code(headers: &HeaderMap) -> Option<Code> {
    headers.get(&STATUS).map(|code| Code::from_bytes(code.as_bytes()))
}

/// The trailers of a call that went well.
pub(super) fn ok() -> HeaderMap {
    let mut trailers = HeaderMap::with_capacity(1);
    trailers.insert(STATUS.clone(), HeaderValue::from_static("0"));
    trailers
}

/// The trailers of a status.
pub(crate) fn trailers(status: &Status) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    // Fails only for texts that no header can carry. These can.
    status.add_header(&mut trailers).ok();
    trailers
}
