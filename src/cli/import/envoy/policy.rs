//! One `RetryPolicy` of Envoy, as rules.
use super::super::at::{At, Fields};
use super::super::http;
use super::super::reader::Reader;
use super::{no_retries, nothing};
use crate::engine::{Backoff, Categories, Category, GrpcCode, Jitter, Rules};

const HOUR_MS: u64 = 3_600_000;
const DAY_MS: u64 = 24 * HOUR_MS;
/// Envoy's own default, which is also retryd's: 300 s.
const HINT_MS: u64 = 300_000;
const BASE_MS: u64 = 25;
/// The longest wait, in first waits.
const MAX_IN_BASES: u64 = 10;
const RETRIES_MAX: u64 = 999;

const CONNECT: [Category; 2] = [Category::Connect, Category::TlsHandshake];
const RESET: [Category; 5] = [
    Category::Connect,
    Category::TlsHandshake,
    Category::StreamRefused,
    Category::ConnectionReset,
    Category::AttemptTimeout,
];

pub(super) fn rules(reader: &mut Reader, at: At<'_>) -> Rules {
    let mut fields = reader.fields(at);
    let mut rules = nothing();
    let retries =
        fields.proto("num_retries").map_or(Some(1), |at| reader.whole(&at, 0, RETRIES_MAX));
    rules.attempts_max = u32::try_from(retries.unwrap_or(0)).unwrap_or(0).saturating_add(1);
    rules.backoff = backoff(reader, &mut fields);
    if let Some(at) = fields.proto("rate_limited_retry_back_off") {
        rules.hint_ms_max = hint_ms_max(reader, at);
    }
    let words = fields.proto("retry_on");
    let codes = fields.proto("retriable_status_codes");
    let mut codes_are_meant = false;
    if let Some(at) = &words {
        for word in reader.text(at).unwrap_or_default().split(',').map(str::trim) {
            codes_are_meant |= word == "retriable-status-codes";
            retry_on(reader, at, word, &mut rules);
        }
    }
    if let Some(at) = codes {
        match codes_are_meant {
            true => {
                for at in reader.items(&at) {
                    let status = reader.whole(&at, 100, 599);
                    http::list(reader, &at, &mut rules, status.into_iter());
                }
            }
            false => reader.leave(
                &at,
                "without `retriable-status-codes` in `retry_on`, Envoy does not look at it",
            ),
        }
    }
    if let Some(at) = fields.proto("retriable_request_headers") {
        reader.leave(&at, "a policy cannot look at a request: what it holds for is not repeated");
        rules = no_retries();
    }
    reader.leave_rest(fields, |key| match key {
        "per_try_timeout" | "perTryTimeout" | "per_try_idle_timeout" | "perTryIdleTimeout" => {
            "a policy has no timeouts: an attempt ends when its caller says so"
        }
        "retriable_headers" | "retriableHeaders" => {
            "a policy cannot look at the headers of a response"
        }
        "retry_priority"
        | "retryPriority"
        | "retry_host_predicate"
        | "retryHostPredicate"
        | "host_selection_retry_max_attempts"
        | "hostSelectionRetryMaxAttempts"
        | "retry_options_predicates"
        | "retryOptionsPredicates" => "which host gets the next attempt is no matter of a policy",
        _ => "retryd does not know this key",
    });
    rules
}

/// Full jitter over waits that double, as Envoy has it.
fn backoff(reader: &mut Reader, fields: &mut Fields<'_>) -> Backoff {
    let (mut base_ms, mut max_ms) = (BASE_MS, None);
    if let Some(at) = fields.proto("retry_back_off") {
        let mut fields = reader.fields(at);
        match fields.proto("base_interval") {
            Some(at) => base_ms = reader.positive_ms(&at, HOUR_MS).unwrap_or(BASE_MS),
            None => reader.refuse(fields.at(), "needs `base_interval`"),
        }
        if let Some(at) = fields.proto("max_interval") {
            max_ms = reader.positive_ms(&at, DAY_MS);
            if max_ms.is_some_and(|max_ms| max_ms < base_ms) {
                reader.refuse(&at, "must not be below `base_interval`");
            }
        }
        reader.leave_rest(fields, |_| "retryd does not know this key");
    }
    Backoff {
        base_ms,
        max_ms: max_ms.unwrap_or(base_ms.saturating_mul(MAX_IN_BASES)),
        multiplier_thousandths: 2_000,
        jitter: Jitter::Full,
    }
}

fn hint_ms_max(reader: &mut Reader, at: At<'_>) -> u64 {
    let mut fields = reader.fields(at);
    let max_ms = fields.proto("max_interval").and_then(|at| reader.positive_ms(&at, DAY_MS));
    if let Some(at) = fields.proto("reset_headers") {
        for at in reader.items(&at) {
            let mut header = reader.fields(at.clone());
            let name = header.proto("name").and_then(|at| at.text());
            let format = header.proto("format").and_then(|at| at.text());
            let is_retry_after = name.is_some_and(|name| name.eq_ignore_ascii_case("retry-after"))
                && format.is_none_or(|format| format == "SECONDS");
            if !is_retry_after {
                reader.leave(&at, "of the headers that say when, retryd reads `Retry-After` in seconds or as a date");
            }
        }
    }
    reader.leave_rest(fields, |_| "retryd does not know this key");
    max_ms.unwrap_or(HINT_MS)
}

fn retry_on(reader: &mut Reader, at: &At<'_>, word: &str, rules: &mut Rules) {
    let none: &[Category] = &[];
    let (statuses, failures): (Vec<u64>, &[Category]) = match word {
        "5xx" => ((500..=599).collect(), &RESET),
        "gateway-error" => (vec![502, 503, 504], &RESET),
        "reset" => (Vec::new(), &RESET),
        "connect-failure" => (Vec::new(), &CONNECT),
        "refused-stream" => (Vec::new(), &[Category::StreamRefused]),
        "retriable-4xx" => (vec![409], none),
        "deadline-exceeded" => return grpc(rules, GrpcCode::DeadlineExceeded),
        "internal" => return grpc(rules, GrpcCode::Internal),
        "unavailable" => return grpc(rules, GrpcCode::Unavailable),
        "resource-exhausted" => {
            reader
                .leave(at, "`resource-exhausted`: retryd repeats it only if the server said when");
            return grpc(rules, GrpcCode::ResourceExhausted);
        }
        "cancelled" => {
            return reader.leave(at, "`cancelled`: retryd never repeats it: no repeat heals it");
        }
        "retriable-status-codes" | "" => (Vec::new(), none),
        "retriable-headers" => {
            return reader.leave(
                at,
                "`retriable-headers`: a policy cannot look at the headers of a response",
            );
        }
        "reset-before-request" | "http3-post-connect-failure" | "envoy-ratelimited" => {
            let why = format!("`{word}`: retryd has no name for that failure");
            return reader.leave(at, why);
        }
        other => {
            let why = format!("{}: retryd does not know this word", crate::policy::quoted(other));
            return reader.leave(at, why);
        }
    };
    http::list(reader, at, rules, statuses.into_iter());
    for category in failures {
        let listed = &mut rules.retry_on.categories;
        *listed = Categories::with(*listed, *category);
    }
}

fn grpc(rules: &mut Rules, code: GrpcCode) {
    let listed = &mut rules.retry_on.statuses.grpc;
    *listed = listed.with(code);
}
