//! The common fields of a context, as a form sends them, to the proto-JSON that says the same.
use serde_json::{Value, json};
use url::form_urlencoded;

use crate::engine::Category;

/// Fields by their names in the contract. What is absent is empty, or off.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Fields(Vec<(String, String)>);

/// One of several values of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) value: &'static str,
    pub(super) label: &'static str,
    pub(super) is_chosen: bool,
}

/// What the page begins with.
const EXAMPLE: &str = "tenant=shop-1&operation=payments.v1.Payments/Charge&attempts_made=1&remaining_seconds=2\
    &body_replayable=on&failure=HTTP&status=503&declared=on";

impl Fields {
    pub(super) fn parse(query: &str) -> Fields {
        Fields(form_urlencoded::parse(query.as_bytes()).into_owned().collect())
    }

    pub(super) fn example() -> Fields {
        Fields::parse(EXAMPLE)
    }

    pub(super) fn get(&self, name: &str) -> &str {
        let found = self.0.iter().find(|(key, _)| key == name);
        found.map_or("", |(_, value)| value.trim())
    }

    pub(super) fn is_on(&self, name: &str) -> bool {
        !self.get(name).is_empty()
    }

    /// What `failure` may be: a kind of status, or a category.
    pub(super) fn failures(&self) -> Vec<Choice> {
        let statuses = [("HTTP", "HTTP status"), ("GRPC", "gRPC status")];
        let categories = Category::ALL.map(|category| (category.name(), category.name()));
        self.choices("failure", statuses.into_iter().chain(categories))
    }

    /// What `evidence` may be.
    pub(super) fn evidences(&self) -> Vec<Choice> {
        let names = ["NOT_SENT", "REFUSED", "MAYBE_PROCESSED", "PROCESSED"];
        let underived = [("", "derived from the failure")];
        self.choices("evidence", underived.into_iter().chain(names.map(|name| (name, name))))
    }

    fn choices(
        &self,
        name: &str,
        choices: impl Iterator<Item = (&'static str, &'static str)>,
    ) -> Vec<Choice> {
        let chosen = self.get(name);
        let choice = |(value, label)| Choice { value, label, is_chosen: chosen == value };
        choices.map(choice).collect()
    }

    /// The context as text, with what is wrong in the fields left as it is: it is read like any
    /// other text, and told there.
    pub(super) fn to_json(&self) -> String {
        let mut lines = Vec::new();
        let mut say = |key: &str, value: Value| lines.push(format!("  {}: {value}", json!(key)));
        say("tenant", json!(self.get("tenant")));
        say("operation", json!(self.get("operation")));
        if self.is_on("attempts_made") {
            say("attemptsMade", number(self.get("attempts_made")));
        }
        if self.is_on("remaining_seconds") {
            say("remainingDeadline", json!(format!("{}s", self.get("remaining_seconds"))));
        }
        for (name, key) in [
            ("body_replayable", "bodyReplayable"),
            ("first_byte_delivered", "firstByteDelivered"),
            ("runtime_draining", "runtimeDraining"),
        ] {
            if self.is_on(name) {
                say(key, json!(true));
            }
        }
        let idempotency = self.nested(&[
            ("declared", "declared"),
            ("key_registered", "keyRegistered"),
            ("key_sent", "keySent"),
        ]);
        if !idempotency.is_empty() {
            say(
                "idempotency",
                idempotency.into_iter().map(|(key, _)| (key, json!(true))).collect(),
            );
        }
        say("failure", self.failure());
        if self.is_on("evidence") {
            say("evidence", json!(format!("EVIDENCE_{}", self.get("evidence"))));
        }
        let hint = self.nested(&[
            ("retry_after_header", "retryAfterHeader"),
            ("grpc_retry_pushback_ms", "grpcRetryPushbackMs"),
        ]);
        if !hint.is_empty() {
            say("hint", hint.into_iter().map(|(key, value)| (key, json!(value))).collect());
        }
        format!("{{\n{}\n}}\n", lines.join(",\n"))
    }

    /// Those of these fields that are filled in, by their names in proto-JSON.
    fn nested(&self, names: &[(&str, &'static str)]) -> Vec<(&'static str, &str)> {
        let filled_in = names.iter().filter(|(name, _)| self.is_on(name));
        filled_in.map(|(name, key)| (*key, self.get(name))).collect()
    }

    fn failure(&self) -> Value {
        match self.get("failure") {
            "HTTP" => json!({"httpStatus": number(self.get("status"))}),
            "GRPC" => json!({"grpcCode": number(self.get("status"))}),
            "" => json!({}),
            category => json!({"category": format!("FAILURE_CATEGORY_{category}")}),
        }
    }
}

/// What is no number stays as it was entered, for the reader to refuse.
fn number(text: &str) -> Value {
    text.parse::<u64>().map_or_else(|_| json!(text), |number| json!(number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::pb;

    fn read(query: &str) -> pb::RetryContext {
        serde_json::from_str(&Fields::parse(query).to_json()).unwrap()
    }

    #[test]
    fn every_field_arrives_in_the_context() {
        let context = read(
            "tenant=%3Cb%3E+%22x&operation=op&attempts_made=2&remaining_seconds=0.25&body_replayable=on\
             &first_byte_delivered=on&runtime_draining=on&declared=on&key_registered=on&key_sent=on\
             &failure=GRPC&status=14&evidence=REFUSED&retry_after_header=3&grpc_retry_pushback_ms=-1",
        );
        let expected = pb::RetryContext {
            tenant: "<b> \"x".to_owned(),
            operation: "op".to_owned(),
            attempts_made: 2,
            remaining_deadline: Some(pbjson_types::Duration { seconds: 0, nanos: 250_000_000 }),
            body_replayable: true,
            first_byte_delivered: true,
            runtime_draining: true,
            idempotency: Some(pb::Idempotency {
                declared: true,
                key_registered: true,
                key_sent: true,
            }),
            failure: Some(pb::Failure {
                category: 0,
                status: Some(pb::failure::Status::GrpcCode(14)),
            }),
            evidence: pb::Evidence::Refused.into(),
            hint: Some(pb::ServerHint {
                retry_after_header: Some("3".to_owned()),
                grpc_retry_pushback_ms: Some("-1".to_owned()),
                ..Default::default()
            }),
            ..Default::default()
        };
        assert_eq!(context, expected);
    }

    #[test]
    fn every_choice_is_one_of_the_contract() {
        let fields = Fields::default();
        for Choice { value, .. } in fields.failures() {
            let context = read(&format!("failure={value}&status=5"));
            assert_ne!(context.failure.unwrap(), pb::Failure::default(), "{value}");
        }
        let read = |Choice { value, .. }| read(&format!("evidence={value}")).evidence;
        let evidences: Vec<i32> = fields.evidences().into_iter().map(read).collect();
        assert_eq!(evidences, [0, 1, 2, 3, 4]);
    }

    #[test]
    fn what_is_no_number_is_left_for_the_reader_to_refuse() {
        let text = Fields::parse("attempts_made=two").to_json();
        assert!(text.contains(r#""attemptsMade": "two""#), "{text}");
        assert!(serde_json::from_str::<pb::RetryContext>(&text).is_err());
    }

    #[test]
    fn the_example_is_a_context() {
        let context =
            serde_json::from_str::<pb::RetryContext>(&Fields::example().to_json()).unwrap();
        assert_eq!(context.operation, "payments.v1.Payments/Charge");
    }
}
