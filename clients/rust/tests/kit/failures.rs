//! `clients/scenarios/failures.json`, held against `evidence.json`.
use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;

use crate::{
    play::{Terms, play},
    testbed::{read, repository},
};

#[derive(Deserialize)]
struct Failures {
    failures: Vec<Failure>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Failure {
    name: String,
    over: Vec<String>,
    #[serde(default = "faulty")]
    target: String,
    #[serde(default)]
    call: Terms,
    script: Value,
}

/// What a library makes of a failure; or why it cannot meet it.
#[derive(Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum Row {
    Absent {
        #[serde(rename = "absent")]
        _why: String,
    },
    Found {
        category: String,
        #[serde(default)]
        evidence: String,
        #[serde(default)]
        status: String,
        #[serde(rename = "how")]
        _how: String,
    },
}

fn faulty() -> String {
    "faulty".into()
}

#[tokio::test(flavor = "multi_thread")]
async fn evidence_of_tonic() {
    evidence_of("tonic", "grpc").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn evidence_of_hyper_util() {
    evidence_of("hyper-util", "http").await;
}

async fn evidence_of(library: &str, adapter: &str) {
    let all: Failures = read(&repository().join("clients/scenarios/failures.json"));
    let mut tables: HashMap<String, HashMap<String, Row>> =
        read(&repository().join("clients/rust/evidence.json"));
    let mut rows = tables.remove(library).unwrap();
    let (mut played, mut failed) = (0, Vec::new());
    for (place, failure) in all.failures.iter().enumerate() {
        if !failure.over.iter().any(|over| over == adapter) {
            continue;
        }
        let name = format!("rust-failures-{adapter}-{place}");
        let made =
            play(&name, adapter, "asked", &failure.target, &failure.call, &failure.script, 0);
        let questions = made.await.play.questions;
        let told = questions.first().map(|question| told(&question.context));
        let wanted = match rows.remove(&failure.name) {
            Some(Row::Absent { .. }) => None,
            Some(Row::Found { category, evidence, status, _how }) => {
                Some([category, evidence, status])
            }
            None => panic!("evidence.json says nothing of `{}` with {library}", failure.name),
        };
        played += 1;
        if told != wanted {
            failed.push(format!("{}: {told:?}, expected {wanted:?}", failure.name));
        }
    }
    println!("evidence of {library}: {played} rows");
    assert!(rows.is_empty(), "rows too many: {:?}", rows.keys());
    assert!(0 < played && failed.is_empty(), "{}", failed.join("\n"));
}

/// Category, evidence and status, as they stand in a row.
fn told(context: &Value) -> [String; 3] {
    let failure = &context["failure"];
    let text = |value: &Value, prefix: &str| {
        value.as_str().unwrap_or_default().trim_start_matches(prefix).to_owned()
    };
    let status = match (&failure["grpcCode"], &failure["httpStatus"]) {
        (Value::Number(code), _) => format!("grpc {code}"),
        (_, Value::Number(status)) => format!("http {status}"),
        _ => String::new(),
    };
    [
        text(&failure["category"], "FAILURE_CATEGORY_"),
        text(&context["evidence"], "EVIDENCE_"),
        status,
    ]
}
