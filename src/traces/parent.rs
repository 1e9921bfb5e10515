//! The caller's own span, from the headers of W3C Trace Context.
//!
//! Source: <https://www.w3.org/TR/trace-context/>.
use std::borrow::Cow;

use http::{HeaderMap, HeaderName};
use opentelemetry::{
    Context,
    propagation::{Extractor, TextMapPropagator as _},
};
use opentelemetry_sdk::propagation::TraceContextPropagator;

// Looked up in each call, so they are not read as names each time.
static PARENT: HeaderName = HeaderName::from_static("traceparent");
static STATE: HeaderName = HeaderName::from_static("tracestate");

/// Whether the caller's trace says that it is not sampled. It allocates nothing: this is asked of
/// every call, and most traces are not sampled.
pub(super) fn is_unsampled(headers: &HeaderMap) -> bool {
    headers.get(&PARENT).is_some_and(|parent| says_unsampled(parent.as_bytes()))
}

/// `00-`, 32 digits that are not all 0, `-`, 16 such digits, `-`, and flags without the last bit. What
/// looks otherwise is left to the library.
fn says_unsampled(parent: &[u8]) -> bool {
    let [b'0', b'0', b'-', ids @ .., b'-', high, low] = parent else { return false };
    let Some((trace, [b'-', span @ ..])) = ids.split_at_checked(32) else { return false };
    span.len() == 16
        && [trace, span].iter().all(|id| id.iter().all(is_digit) && id.iter().any(|it| *it != b'0'))
        && is_digit(high)
        && matches!(low, b'0' | b'2' | b'4' | b'6' | b'8' | b'a' | b'c' | b'e')
}

/// Upper case is no digit here.
fn is_digit(byte: &u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

/// A context with the caller's span, if there is a good one in the headers.
pub(super) fn of(headers: &HeaderMap) -> Context {
    TraceContextPropagator::new().extract_with_context(&Context::new(), &Headers::of(headers))
}

struct Headers<'a> {
    parent: Option<&'a str>,
    state: Option<Cow<'a, str>>,
}

impl<'a> Headers<'a> {
    fn of(headers: &'a HeaderMap) -> Headers<'a> {
        let parent = headers.get(&PARENT).and_then(|value| value.to_str().ok());
        // It may come in parts, which belong together.
        let mut parts = headers.get_all(&STATE).iter().filter_map(|value| value.to_str().ok());
        let first = parts.next().map(Cow::Borrowed);
        let state = first
            .map(|first| parts.fold(first, |state, part| Cow::Owned(format!("{state},{part}"))));
        Headers { parent, state }
    }
}

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        match key {
            "traceparent" => self.parent,
            "tracestate" => self.state.as_deref(),
            _ => None,
        }
    }

    fn keys(&self) -> Vec<&str> {
        vec!["traceparent", "tracestate"]
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry::trace::TraceContextExt as _;

    use super::*;

    fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const SPAN: &str = "00f067aa0ba902b7";

    #[test]
    fn the_short_way_says_what_the_library_says() {
        let zeros = "0".repeat(32);
        let cases = [
            (format!("00-{TRACE}-{SPAN}-00"), true),
            (format!("00-{TRACE}-{SPAN}-02"), true),
            (format!("00-{TRACE}-{SPAN}-fe"), true),
            (format!("00-{TRACE}-{SPAN}-01"), false),
            (format!("00-{TRACE}-{SPAN}-03"), false),
            (format!("00-{zeros}-{SPAN}-00"), false),
            (format!("00-{TRACE}-{}-00", &zeros[..16]), false),
            (format!("00-{}-{SPAN}-00", TRACE.to_uppercase()), false),
            (format!("00-{TRACE}-{SPAN}"), false),
            (format!("00-{TRACE}-{SPAN}-0"), false),
            (format!("00-{TRACE}-{SPAN}-00-x"), false),
            (format!("00-{TRACE}{SPAN}--00"), false),
            ("00---00".to_owned(), false),
            (String::new(), false),
        ];
        for (parent, expected) in &cases {
            let headers = headers(&[("traceparent", parent)]);
            assert_eq!(is_unsampled(&headers), *expected, "{parent}");
            let context = of(&headers);
            let span = context.span().span_context().clone();
            // The short way knows only what is usual. What it knows, the library says too.
            if *expected {
                assert!(span.is_valid() && !span.is_sampled(), "{parent}");
            }
        }
        assert!(!is_unsampled(&HeaderMap::new()));
    }

    #[test]
    fn a_state_in_parts_is_one_state() {
        let parent = format!("00-{TRACE}-{SPAN}-01");
        let lines = [("traceparent", &*parent), ("tracestate", "a=1"), ("tracestate", "b=2,c=3")];
        let context = of(&headers(&lines));
        let span = context.span().span_context().clone();
        assert!(span.is_remote() && span.is_sampled());
        assert_eq!(span.trace_id().to_string(), TRACE);
        assert_eq!(span.span_id().to_string(), SPAN);
        assert_eq!(span.trace_state().header(), "a=1,b=2,c=3");
    }
}
