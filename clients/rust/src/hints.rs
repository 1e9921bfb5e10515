//! What a server said about when to come back.
use base64::{Engine as _, alphabet, engine};
use http::{HeaderMap, HeaderValue, header};
use prost::Message as _;
use tonic_types::pb as rpc;

use crate::pb::ServerHint;

/// gRPC encodes binary headers with and without padding.
const BASE64: engine::GeneralPurpose = engine::GeneralPurpose::new(
    &alphabet::STANDARD,
    engine::GeneralPurposeConfig::new()
        .with_decode_padding_mode(engine::DecodePaddingMode::Indifferent),
);

/// The longest Duration of protobuf. Beyond it the question would be malformed.
const SECONDS_MAX: i64 = 315_576_000_000;

/// Every form of a hint in `headers` and `trailers`, as it was received.
pub(crate) fn read(headers: &HeaderMap, trailers: Option<&HeaderMap>) -> Option<ServerHint> {
    let all = |name: &str| {
        let values = headers.get_all(name).into_iter();
        values.chain(trailers.into_iter().flat_map(|it| it.get_all(name))).collect::<Vec<_>>()
    };
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let pushbacks = all("grpc-retry-pushback-ms");
    let hint = ServerHint {
        retry_after: all("grpc-status-details-bin").first().and_then(|it| retry_info(it)),
        retry_after_header: all("retry-after").first().map(|it| text(it)),
        grpc_retry_pushback_ms: (!pushbacks.is_empty())
            .then(|| pushbacks.iter().map(|it| text(it)).collect::<Vec<_>>().join(",")),
        date_header: headers.get(header::DATE).map(text).unwrap_or_default(),
    };
    let says_when = hint.retry_after.is_some()
        || hint.retry_after_header.is_some()
        || hint.grpc_retry_pushback_ms.is_some();
    says_when.then_some(hint)
}

/// The delay of a google.rpc.RetryInfo among the details of a status.
fn retry_info(value: &HeaderValue) -> Option<prost_types::Duration> {
    let bytes = BASE64.decode(value.as_bytes()).ok()?;
    let status = rpc::Status::decode(bytes.as_slice()).ok()?;
    let is_info = |any: &&prost_types::Any| any.type_url.ends_with("/google.rpc.RetryInfo");
    let info = status.details.iter().find(is_info)?;
    let delay = rpc::RetryInfo::decode(info.value.as_slice()).ok()?.retry_delay?;
    let delay = prost_types::Duration {
        seconds: delay.seconds.clamp(0, SECONDS_MAX),
        nanos: if delay.seconds < 0 { 0 } else { delay.nanos.clamp(0, 999_999_999) },
    };
    Some(delay)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pairs = pairs.iter().map(|(name, value)| {
            (http::HeaderName::from_static(name), HeaderValue::from_static(value))
        });
        pairs.collect()
    }

    fn with_retry_info(seconds: i64, nanos: i32, config: &engine::GeneralPurpose) -> HeaderMap {
        let info = rpc::RetryInfo { retry_delay: Some(prost_types::Duration { seconds, nanos }) };
        let detail = prost_types::Any {
            type_url: "type.googleapis.com/google.rpc.RetryInfo".into(),
            value: info.encode_to_vec(),
        };
        let status = rpc::Status { code: 14, message: String::new(), details: vec![detail] };
        let value = config.encode(status.encode_to_vec());
        HeaderMap::from_iter([(
            http::HeaderName::from_static("grpc-status-details-bin"),
            value.parse().unwrap(),
        )])
    }

    #[test]
    fn no_hint_without_a_header_that_says_when() {
        assert_eq!(read(&headers(&[("date", "Wed, 21 Oct 2026 07:28:00 GMT")]), None), None);
    }

    #[test]
    fn several_pushbacks_are_joined_so_that_they_forbid() {
        let both = headers(&[("grpc-retry-pushback-ms", "1")]);
        let hint = read(&both, Some(&both)).unwrap();
        assert_eq!(hint.grpc_retry_pushback_ms.as_deref(), Some("1,1"));
    }

    #[test]
    fn retry_info_is_read_with_and_without_padding() {
        for config in [engine::general_purpose::STANDARD, engine::general_purpose::STANDARD_NO_PAD]
        {
            let hint = read(&HeaderMap::new(), Some(&with_retry_info(1, 5, &config))).unwrap();
            assert_eq!(hint.retry_after, Some(prost_types::Duration { seconds: 1, nanos: 5 }));
        }
    }

    #[test]
    fn a_delay_that_retryd_would_refuse_is_brought_into_range() {
        for ((seconds, nanos), wanted) in [
            ((-1, -5), (0, 0)),
            ((i64::MAX, 5), (SECONDS_MAX, 5)),
            ((1, -5), (1, 0)),
            ((1, i32::MAX), (1, 999_999_999)),
        ] {
            let trailers = with_retry_info(seconds, nanos, &BASE64);
            let delay = read(&trailers, None).unwrap().retry_after.unwrap();
            assert_eq!((delay.seconds, delay.nanos), wanted);
        }
    }

    #[test]
    fn broken_details_are_no_hint() {
        for broken in ["", "*", "AAAA"] {
            assert_eq!(read(&headers(&[("grpc-status-details-bin", broken)]), None), None);
        }
    }
}
