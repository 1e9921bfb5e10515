//! A call whose caller does not sample its trace costs next to nothing more where traces are on.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
use allocation_counter::measure;
use http::HeaderMap;
use retryd::{
    admin::{calls::Method, metrics::Metrics},
    clock::Clock,
    traces::{Settings, Traces},
};

fn headers(flags: &str) -> HeaderMap {
    let parent = format!("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-{flags}");
    HeaderMap::from_iter([("traceparent".parse().unwrap(), parent.parse().unwrap())])
}

#[tokio::test]
async fn an_unsampled_parent_costs_no_allocation() {
    // Nobody is asked there: no span ends.
    let endpoint = |name: &str| {
        (name == "OTEL_EXPORTER_OTLP_ENDPOINT").then(|| "http://127.0.0.1:1".to_owned())
    };
    let settings = Settings::read(endpoint).unwrap().unwrap();
    let counts = Metrics::new().spans.clone();
    let traces = Traces::begin(settings, counts, Clock::system()).unwrap();
    let decide = Method::of("/retryd.v1.RetryService/Decide");

    let (sampled, unsampled) = (headers("01"), headers("00"));
    let traced = measure(|| std::mem::forget(traces.span(decide, &sampled).unwrap()));
    assert!(0 < traced.count_total, "a span must cost something, or nothing is measured");
    let untraced = measure(|| assert!(traces.span(decide, &unsampled).is_none()));
    assert_eq!(untraced.count_total, 0);
}
