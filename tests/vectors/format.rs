//! The files: what they hold, and how a context becomes a message.
use std::{collections::BTreeSet, fs, path::Path, time::Duration};

use retryd::clock::{Clock, Now};
use retryd::wire::pb;
use serde::Deserialize;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::Run;

pub(crate) type Object = Map<String, Value>;

/// One file: a policy, and the cases that are decided by it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Vectors {
    #[serde(skip)]
    pub(crate) name: String,
    about: String,
    policy: Vec<String>,
    #[serde(default)]
    base: Object,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    pub(crate) name: String,
    #[serde(default, rename = "source")]
    _source: Option<String>,
    #[serde(default)]
    needs: BTreeSet<Need>,
    clock: Option<String>,
    pub(crate) draw: Option<u32>,
    #[serde(default)]
    pub(crate) before: Vec<Step>,
    context: Option<Object>,
    #[serde(default)]
    contexts: Vec<Object>,
    pub(crate) expect: Option<Object>,
    pub(crate) error: Option<Error>,
}

/// What only a run in process can set.
#[derive(Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "lowercase")]
enum Need {
    Clock,
    Draw,
}

/// One step of the history before the question.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Step {
    pub(crate) ask: Option<Object>,
    pub(crate) report: Option<Object>,
    advance: Option<String>,
    pub(crate) repeat: Option<u32>,
    pub(crate) granted: Option<u32>,
    pub(crate) expect: Option<Object>,
    pub(crate) error: Option<Error>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Error {
    pub(crate) code: String,
    pub(crate) reason: String,
    pub(crate) violations: Vec<String>,
}

/// Every file, checked.
pub(crate) fn load_all() -> Vec<Vectors> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no vector files");
    files.iter().map(|path| load(path)).collect()
}

fn load(path: &Path) -> Vectors {
    let shown = path.display();
    let mut vectors: Vectors = serde_json::from_str(&fs::read_to_string(path).unwrap())
        .unwrap_or_else(|error| panic!("{shown}: {error}"));
    vectors.name = path.file_stem().unwrap().to_string_lossy().into_owned();
    assert!(!vectors.about.is_empty(), "{shown}: `about` is empty");
    assert!(!vectors.cases.is_empty(), "{shown}: no cases");
    let mut names = BTreeSet::new();
    for case in &vectors.cases {
        assert!(names.insert(&case.name), "{shown}: two cases named `{}`", case.name);
        assert!(case.is_well_formed(), "{shown}: `{}` is malformed", case.name);
    }
    vectors
}

impl Case {
    pub(crate) fn is_portable(&self) -> bool {
        self.needs.is_empty()
    }

    fn is_well_formed(&self) -> bool {
        let advances = self.before.iter().any(|step| step.advance.is_some());
        self.context.is_some() == self.contexts.is_empty()
            && self.expect.is_some() != self.error.is_some()
            && self.needs.contains(&Need::Clock) == self.clock.is_some()
            && self.needs.contains(&Need::Draw) == self.draw.is_some()
            && (!advances || self.clock.is_some())
            && self.before.iter().all(Step::is_well_formed)
    }

    /// The clock of the case. It starts where a slot of every ratio starts.
    pub(crate) fn clock(&self) -> Clock {
        let Some(text) = &self.clock else { return Clock::system() };
        let stamp: pbjson_types::Timestamp =
            serde_json::from_value(text.as_str().into()).expect("`clock` is RFC 3339");
        let unix_ms = u64::try_from(stamp.seconds * 1000 + i64::from(stamp.nanos / 1_000_000));
        Clock::standing_at(Now { monotonic_ms: 36_000_000, unix_ms: unix_ms.unwrap() })
    }
}

impl Step {
    fn is_well_formed(&self) -> bool {
        let kinds = [self.ask.is_some(), self.report.is_some(), self.advance.is_some()];
        let only_asks = self.granted.is_some() || self.error.is_some();
        kinds.iter().filter(|kind| **kind).count() == 1
            && (!only_asks || self.ask.is_some())
            && !(self.expect.is_some() && (self.error.is_some() || self.advance.is_some()))
    }

    pub(crate) fn advance(&self) -> Option<Duration> {
        let advance = duration(self.advance.as_deref()?.into());
        Some(advance.try_into().expect("`advance` goes forward"))
    }
}

impl Vectors {
    /// Every context of every case that `wanted` picks, each with a tenant of its own.
    pub(crate) fn runs(
        &self,
        wanted: impl Fn(&Case) -> bool,
    ) -> impl Iterator<Item = (&Case, Run<'_>)> {
        let picked = self.cases.iter().enumerate().filter(move |(_, case)| wanted(case));
        picked.flat_map(move |(place, case)| {
            let contexts = case.context.iter().chain(&case.contexts).enumerate();
            contexts.map(move |(turn, context)| {
                (case, Run { context, tenant: format!("{}-{place}-{turn}", self.name) })
            })
        })
    }

    /// The policy file as it is written to disk.
    pub(crate) fn policy(&self) -> String {
        self.policy.join("\n") + "\n"
    }

    /// What every decision tells as `policy_revision`.
    pub(crate) fn revision(&self) -> String {
        let digest = Sha256::digest(self.policy().as_bytes());
        digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect()
    }

    /// `changes` over the base, key by key: null removes, all else replaces.
    pub(crate) fn context(&self, changes: &Object, tenant: &str) -> pb::RetryContext {
        let mut json = Object::new();
        json.insert("tenant".into(), tenant.into());
        json.insert("operation".into(), "op".into());
        for (key, value) in self.base.iter().chain(changes) {
            json.insert(key.clone(), value.clone());
        }
        json.retain(|_, value| !value.is_null());
        message(json)
    }
}

/// A report of one entry.
pub(crate) fn report(report: &Object, tenant: &str) -> pb::ReportUsageRequest {
    let mut json = Object::new();
    json.insert("tenant".into(), tenant.into());
    json.insert("operation".into(), "op".into());
    json.extend(report.clone());
    let period = take(&mut json, &["usage", "period"]).map(duration);
    let mut entry: pb::TenantUsage = from_json(json);
    if period.is_some() {
        entry.usage.as_mut().unwrap().period = period;
    }
    pb::ReportUsageRequest { usage: vec![entry], report_id: String::new() }
}

/// Numbers of enums that nobody knows, and durations out of range, are no proto-JSON: they are set
/// on the message itself.
fn message(mut json: Object) -> pb::RetryContext {
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

fn from_json<T: serde::de::DeserializeOwned>(json: Object) -> T {
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
fn duration(json: Value) -> pbjson_types::Duration {
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
