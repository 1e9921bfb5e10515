//! What is not gRPC, and what it is told.
use http::{HeaderValue, Method, Request, StatusCode, header::CONTENT_TYPE};

/// The HTTP status for a request that is not gRPC, which tonic would take for gRPC. That it is 415
/// for another media type says gRPC over HTTP/2; 405 for another method says RFC 9110 §15.5.6.
pub(super) fn not_grpc<B>(request: &Request<B>) -> Option<StatusCode> {
    if request.method() != Method::POST {
        return Some(StatusCode::METHOD_NOT_ALLOWED);
    }
    let is_grpc = request.headers().get(CONTENT_TYPE).is_some_and(is_grpc);
    (!is_grpc).then_some(StatusCode::UNSUPPORTED_MEDIA_TYPE)
}

fn is_grpc(content_type: &HeaderValue) -> bool {
    let media_type = content_type.as_bytes().split(|byte| *byte == b';').next();
    let media_type = media_type.unwrap_or_default().trim_ascii();
    media_type.eq_ignore_ascii_case(b"application/grpc")
        || media_type.eq_ignore_ascii_case(b"application/grpc+proto")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_types() {
        let cases = [
            ("application/grpc", true),
            ("application/grpc+proto", true),
            ("application/grpc; charset=utf-8", true),
            ("Application/GRPC", true),
            ("application/grpc-web", false),
            ("application/grpc+json", false),
            ("application/json", false),
            ("", false),
        ];
        for (text, expected) in cases {
            assert_eq!(is_grpc(&HeaderValue::from_static(text)), expected, "{text}");
        }
    }
}
