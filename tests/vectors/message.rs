//! How the JSON of a call becomes a message.
use retryd::wire::pb;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::format::Object;

/// The names that a call has if it gives none: a tenant of the case's own, and an operation.
pub(crate) struct Names {
    pub(crate) tenant: String,
    pub(crate) operation: String,
}

impl Names {
    /// A call with these names, unless it gives others. null removes a key.
    pub(crate) fn fill(&self, call: &Object) -> Object {
        let mut json = Object::new();
        json.insert("tenant".into(), self.tenant.as_str().into());
        json.insert("operation".into(), self.operation.as_str().into());
        json.extend(call.clone());
        json.retain(|_, value| !value.is_null());
        json
    }
}

/// Numbers of enums that nobody knows, and durations out of range, are no proto-JSON: they are set
/// on the message itself.
pub(crate) fn context(mut json: Object) -> pb::RetryContext {
    let remaining = take(&mut json, &["remainingDeadline"]).map(duration);
    let retry_after = take(&mut json, &["hint", "retryAfter"]).map(duration);
    let period = take(&mut json, &["usage", "period"]).map(duration);
    let category = take_number(&mut json, &["failure", "category"]);
    let evidence = take_number(&mut json, &["evidence"]);
    let mut context: pb::RetryContext = from_json(json);
    context.remaining_deadline = remaining;
    if retry_after.is_some() {
        context.hint.as_mut().unwrap().retry_after = retry_after;
    }
    if period.is_some() {
        context.usage.as_mut().unwrap().period = period;
    }
    if let Some(category) = category {
        context.failure.as_mut().unwrap().category = category;
    }
    if let Some(evidence) = evidence {
        context.evidence = evidence;
    }
    context
}

/// A report of one entry.
pub(crate) fn report(entry: Object) -> pb::ReportUsageRequest {
    pb::ReportUsageRequest { usage: vec![tenant_usage(entry)], report_id: String::new() }
}

/// A report as a whole, each entry with the names of the case.
pub(crate) fn reports(mut json: Object, names: &Names) -> pb::ReportUsageRequest {
    let entries = match take(&mut json, &["usage"]) {
        Some(Value::Array(entries)) => entries,
        other => panic!("`usage` of `reports` is a list, not {other:?}"),
    };
    let mut request: pb::ReportUsageRequest = from_json(json);
    let entries = entries.iter().map(|entry| names.fill(entry.as_object().unwrap()));
    request.usage = entries.map(tenant_usage).collect();
    request
}

fn tenant_usage(mut json: Object) -> pb::TenantUsage {
    let period = take(&mut json, &["usage", "period"]).map(duration);
    let mut entry: pb::TenantUsage = from_json(json);
    if period.is_some() {
        entry.usage.as_mut().unwrap().period = period;
    }
    entry
}

/// A message that is written as proto-JSON has it.
pub(crate) fn from_json<T: DeserializeOwned>(json: Object) -> T {
    let shown = serde_json::to_string(&json).unwrap();
    serde_json::from_value(Value::Object(json)).unwrap_or_else(|error| panic!("{shown}: {error}"))
}

/// Takes the value at `path` out of `json`.
fn take(json: &mut Object, path: &[&str]) -> Option<Value> {
    match path {
        [] => None,
        [key] => json.remove(*key),
        [key, rest @ ..] => take(json.get_mut(*key)?.as_object_mut()?, rest),
    }
}

/// Takes the value at `path` out of `json` if it is a number.
fn take_number(json: &mut Object, path: &[&str]) -> Option<i32> {
    let value = take(json, path)?;
    let Some(number) = value.as_i64() else {
        put_back(json, path, value);
        return None;
    };
    Some(i32::try_from(number).unwrap())
}

fn put_back(json: &mut Object, path: &[&str], value: Value) {
    match path {
        [] => {}
        [key] => drop(json.insert((*key).to_owned(), value)),
        [key, rest @ ..] => put_back(json[*key].as_object_mut().unwrap(), rest, value),
    }
}

/// A duration as proto-JSON writes it, or as an object of its two numbers.
pub(crate) fn duration(json: Value) -> pbjson_types::Duration {
    let Value::Object(parts) = &json else { return serde_json::from_value(json).unwrap() };
    let part = |key: &str| match parts.get(key) {
        None => 0,
        Some(Value::String(text)) => text.parse::<i64>().unwrap(),
        Some(number) => number.as_i64().unwrap(),
    };
    assert!(parts.keys().all(|key| key == "seconds" || key == "nanos"), "unknown key in {json}");
    pbjson_types::Duration {
        seconds: part("seconds"),
        nanos: i32::try_from(part("nanos")).unwrap(),
    }
}
