//! Names of methods and statuses, and the buckets.
use prometheus_client::{encoding::text, registry::Registry};

use super::*;

#[test]
fn every_method_of_the_contract_is_told_apart() {
    let (mut service, mut methods) = ("", Vec::new());
    for line in include_str!("../../../proto/retryd/v1/retryd.proto").lines() {
        let mut words = line.split([' ', '(']).filter(|word| !word.is_empty());
        match (words.next(), words.next()) {
            (Some("service"), Some(name)) => service = name,
            (Some("rpc"), Some(name)) => methods.push(format!("retryd.v1.{service}/{name}")),
            _ => {}
        }
    }
    assert_eq!(methods, METHODS[..8], "in the order of the contract");
    for (place, method) in METHODS.iter().enumerate() {
        assert_eq!(Method::of(&format!("/{method}")).0, place);
    }
    for other in ["", "/", "retryd.v1.RetryService/Decide", "/retryd.v1.RetryService/", "/a/B"] {
        assert_eq!(Method::of(other).0, METHODS.len() - 1, "{other}");
    }
}

#[test]
fn statuses_stand_at_their_numbers() {
    use tonic::Code;
    for (place, name) in STATUSES.iter().enumerate() {
        let code = format!("{:?}", Code::from_i32(i32::try_from(place).unwrap()));
        assert_eq!(code.to_uppercase(), name.replace('_', ""), "{place}");
    }
}

#[test]
fn a_call_falls_into_the_bucket_whose_bound_it_reaches() {
    let calls = Calls::new();
    let method = Method::of("/retryd.v1.RetryService/Decide");
    for ns in [0, 1, 10_000, 10_001, 20_000_000, 100_000_000_000, 100_000_000_001] {
        calls.begun(method);
        calls.ended(method, 0, ns);
    }
    calls.begun(method);
    let mut registry = Registry::default();
    registry.register_collector(Box::new(calls));
    let mut text = String::new();
    text::encode(&mut text, &registry).unwrap();
    let is = |le: &str, count: u32| {
        let labels = "method=\"retryd.v1.RetryService/Decide\",status=\"OK\"";
        let line = format!("_seconds_bucket{{le=\"{le}\",{labels}}} {count}\n");
        assert!(text.contains(&line), "{line}{text}");
    };
    is("0.0", 1);
    is("0.00001", 3);
    is("0.00005", 4);
    is("0.016", 4);
    is("0.02", 5);
    is("100.0", 6);
    is("+Inf", 7);
    assert!(text.contains("_count{method=\"retryd.v1.RetryService/Decide\",status=\"OK\"} 7\n"));
    assert!(text.contains("in_flight{method=\"retryd.v1.RetryService/Decide\"} 1\n"), "{text}");
    assert!(!text.contains("CANCELLED"), "{text}");
}
