//! A fallback as a service config of gRPC (gRFC A6).
use serde::Serialize;

use super::fallback::{Fallback, Retries};
use super::name::Name;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ServiceConfig<'a> {
    method_config: Vec<MethodConfig<'a>>,
    retry_throttling: RetryThrottling,
}

/// Without a retry policy: not repeated, whatever a less specific name says.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MethodConfig<'a> {
    name: [Named<'a>; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_policy: Option<RetryPolicy>,
}

#[derive(Serialize)]
struct Named<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    service: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RetryPolicy {
    max_attempts: u32,
    initial_backoff: String,
    max_backoff: String,
    backoff_multiplier: f64,
    retryable_status_codes: Vec<&'static str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RetryThrottling {
    max_tokens: u32,
    token_ratio: f64,
}

pub(super) fn text(fallback: &Fallback) -> serde_json::Result<String> {
    let config = ServiceConfig {
        method_config: fallback.entries.iter().map(method_config).collect(),
        retry_throttling: RetryThrottling {
            max_tokens: fallback.throttle.tokens_max,
            token_ratio: decimal(fallback.throttle.token_ratio_thousandths),
        },
    };
    serde_json::to_string_pretty(&config).map(|text| text + "\n")
}

fn method_config((name, retries): &(Name, Option<Retries>)) -> MethodConfig<'_> {
    MethodConfig { name: [named(name)], retry_policy: retries.as_ref().map(retry_policy) }
}

fn named(name: &Name) -> Named<'_> {
    match name {
        Name::Method { service, method } => Named { service: Some(service), method: Some(method) },
        Name::Service(service) => Named { service: Some(service), method: None },
        Name::Everything => Named { service: None, method: None },
    }
}

fn retry_policy(retries: &Retries) -> RetryPolicy {
    RetryPolicy {
        max_attempts: retries.attempts_max,
        initial_backoff: seconds(retries.backoff.base_ms),
        max_backoff: seconds(retries.backoff.max_ms),
        backoff_multiplier: decimal(retries.backoff.multiplier_thousandths),
        retryable_status_codes: retries.codes.iter().map(|code| code.name()).collect(),
    }
}

/// A duration of proto-JSON.
fn seconds(ms: u64) -> String {
    let text = format!("{}.{:03}", ms / 1_000, ms % 1_000);
    format!("{}s", text.trim_end_matches('0').trim_end_matches('.'))
}

fn decimal(thousandths: u32) -> f64 {
    f64::from(thousandths) / 1_000.0
}
