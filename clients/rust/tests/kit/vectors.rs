//! Plays the portable cases of `tests/vectors` over a connection. What the files mean stands there.
use std::{collections::HashMap, fs, path::PathBuf, time::Duration};

use prost::Message;
use retryd_client::pb::{
    self, budget_service_client::BudgetServiceClient, retry_service_client::RetryServiceClient,
};
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tonic::{
    Status,
    transport::{Channel, Endpoint},
};
use tonic_types::StatusExt as _;

use crate::{
    json::{self, Object, message},
    subset::subset_differs,
    testbed::{Testbed, read, repository},
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Vectors {
    #[serde(rename = "about")]
    _about: String,
    policy: Vec<String>,
    #[serde(default)]
    base: Object,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    #[serde(rename = "source")]
    _source: Option<String>,
    #[serde(default)]
    needs: Vec<String>,
    #[serde(rename = "clock")]
    _clock: Option<String>,
    #[serde(rename = "draw")]
    _draw: Option<u32>,
    #[serde(default)]
    alone: bool,
    operation: Option<String>,
    #[serde(default)]
    steps: Vec<Step>,
    #[serde(default)]
    before: Vec<Step>,
    context: Option<Object>,
    #[serde(default)]
    contexts: Vec<Object>,
    expect: Option<Object>,
    error: Option<Refusal>,
}

/// Of the actions, exactly one.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    ask: Option<Calls>,
    report: Option<Calls>,
    reports: Option<Calls>,
    acquire: Option<Calls>,
    release: Option<Calls>,
    budget: Option<Calls>,
    list: Option<Calls>,
    #[serde(rename = "advance")]
    _advance: Option<String>,
    #[serde(rename = "reload")]
    _reload: Option<Vec<String>>,
    repeat: Option<u32>,
    granted: Option<u32>,
    #[serde(rename = "as")]
    label: Option<String>,
    expect: Option<Object>,
    error: Option<Refusal>,
}

#[derive(Clone, Deserialize)]
#[serde(untagged)]
enum Calls {
    One(Object),
    Several(Vec<Object>),
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Refusal {
    code: String,
    reason: String,
    violations: Vec<String>,
}

#[tokio::test]
async fn vectors() {
    let mut files: Vec<PathBuf> = fs::read_dir(repository().join("tests/vectors"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|it| it == "json"))
        .collect();
    files.sort();
    let (mut played, mut failed) = (0, Vec::new());
    for path in files {
        let file = path.file_stem().unwrap().to_string_lossy().into_owned();
        let vectors: Vectors = read(&path);
        let policy = vectors.policy.join("\n") + "\n";
        let shared = connect(&Testbed::get().start_retryd(policy.clone()).await);
        for (place, case) in vectors.cases.iter().enumerate() {
            if !case.needs.is_empty() {
                continue;
            }
            for (turn, steps) in case.plays().into_iter().enumerate() {
                let channel = match case.alone {
                    true => connect(&Testbed::get().start_retryd(policy.clone()).await),
                    false => shared.clone(),
                };
                let mut player = Player {
                    channel,
                    base: &vectors.base,
                    revision: revision(&policy),
                    tenant: format!("{file}-{place}-{turn}"),
                    operation: case.operation.clone().unwrap_or_else(|| "op".into()),
                    named: HashMap::new(),
                };
                let mut found = player.play(&steps).await;
                found.dedup();
                played += 1;
                failed.extend(found.into_iter().map(|it| format!("{file}: {}: {it}", case.name)));
            }
        }
    }
    println!("vectors: {played} sequences played");
    assert!(0 < played && failed.is_empty(), "{}", failed.join("\n"));
}

fn connect(address: &str) -> Channel {
    Endpoint::from_shared(format!("http://{address}")).unwrap().connect_lazy()
}

fn revision(policy: &str) -> String {
    Sha256::digest(policy.as_bytes()).iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}

impl Case {
    /// The steps as they are; or the history and one of the contexts, for each of them.
    fn plays(&self) -> Vec<Vec<Step>> {
        if !self.steps.is_empty() {
            return vec![self.steps.clone()];
        }
        let question = |context: &Object| Step {
            ask: Some(Calls::One(context.clone())),
            expect: self.expect.clone(),
            error: self.error.clone(),
            ..Step::default()
        };
        let contexts = self.context.iter().chain(&self.contexts);
        contexts.map(|context| [&self.before[..], &[question(context)]].concat()).collect()
    }
}

struct Player<'a> {
    channel: Channel,
    base: &'a Object,
    revision: String,
    tenant: String,
    operation: String,
    /// Leases and page tokens, by the names that steps gave them.
    named: HashMap<String, String>,
}

impl Player<'_> {
    async fn play(&mut self, steps: &[Step]) -> Vec<String> {
        let mut found = Vec::new();
        for (place, step) in steps.iter().enumerate() {
            let mut granted = 0;
            for _ in 0..step.repeat.unwrap_or(1) {
                for (action, call) in step.calls() {
                    let before = found.len();
                    found.extend(self.call(action, step, call, &mut granted).await);
                    for it in &mut found[before..] {
                        *it =
                            format!("step {place}: {action} {}: {it}", Value::Object(call.clone()));
                    }
                }
            }
            if let Some(wanted) = step.granted.filter(|wanted| *wanted != granted) {
                found.push(format!("step {place}: granted {granted}, expected {wanted}"));
            }
        }
        found
    }

    async fn call(
        &mut self,
        action: &str,
        step: &Step,
        call: &Object,
        granted: &mut u32,
    ) -> Vec<String> {
        let retries = RetryServiceClient::new(self.channel.clone());
        let budgets = BudgetServiceClient::new(self.channel.clone());
        let (mut retries, mut budgets) = (retries, budgets);
        match action {
            "ask" => {
                let mut json = self.base.clone();
                json.extend(call.clone());
                let context = context(self.filled(&json));
                let explain = context.explain;
                let answer = retries.decide(context).await.map(tonic::Response::into_inner);
                *granted += u32::from(answer.as_ref().is_ok_and(|it| it.verdict == 1));
                let mut found = judge("Decision", &answer, step);
                if let Ok(decision) = &answer {
                    found.extend(decision_laws(decision, explain, is_shadow(step), &self.revision));
                }
                found
            }
            "report" => {
                let entry = tenant_usage(self.filled(call));
                let request = pb::ReportUsageRequest { usage: vec![entry], ..Default::default() };
                let answer = budgets.report_usage(request).await.map(|it| it.into_inner().results);
                let answer = answer.map(|mut results| {
                    assert_eq!(results.len(), 1, "one entry, one result");
                    results.remove(0)
                });
                let mut found = judge("UsageResult", &answer, step);
                found.extend(report_laws(answer.as_ref().map_or(&[], std::slice::from_ref), step));
                found
            }
            "reports" => {
                let mut json = call.clone();
                let entries = json.remove("usage").unwrap();
                let entries = entries.as_array().unwrap().iter();
                let entries = entries.map(|it| tenant_usage(self.filled(it.as_object().unwrap())));
                let usage = entries.collect();
                let request: pb::ReportUsageRequest = message("ReportUsageRequest", json);
                let answer =
                    budgets.report_usage(pb::ReportUsageRequest { usage, ..request }).await;
                let answer = answer.map(tonic::Response::into_inner);
                let mut found = judge("ReportUsageResponse", &answer, step);
                found.extend(report_laws(answer.as_ref().map_or(&[], |it| &it.results), step));
                found
            }
            "acquire" => {
                let request: pb::AcquireRetriesRequest =
                    message("AcquireRetriesRequest", self.filled(call));
                let wanted = request.wanted;
                let answer =
                    budgets.acquire_retries(request).await.map(tonic::Response::into_inner);
                self.name(step, answer.as_ref().ok().map(|it| &it.lease));
                let mut found = judge("AcquireRetriesResponse", &answer, step);
                found
                    .extend(answer.iter().flat_map(|it| acquire_laws(it, wanted, is_shadow(step))));
                found
            }
            "release" => {
                let json = self.with_named(self.filled(call), "lease");
                let request: pb::ReleaseRetriesRequest = message("ReleaseRetriesRequest", json);
                let unused = request.unused;
                let answer =
                    budgets.release_retries(request).await.map(tonic::Response::into_inner);
                let mut found = judge("ReleaseRetriesResponse", &answer, step);
                let too_many = answer.is_ok_and(|answer| unused < answer.released);
                found.extend(too_many.then(|| "more was released than was unused".to_owned()));
                found
            }
            "budget" => {
                let request: pb::GetBudgetRequest = message("GetBudgetRequest", self.filled(call));
                let answer = budgets.get_budget(request).await.map(tonic::Response::into_inner);
                judge("GetBudgetResponse", &answer, step)
            }
            "list" => {
                let json = self.with_named(call.clone(), "pageToken");
                let request: pb::ListBudgetsRequest = message("ListBudgetsRequest", json);
                let answer = budgets.list_budgets(request).await.map(tonic::Response::into_inner);
                self.name(step, answer.as_ref().ok().map(|it| &it.next_page_token));
                judge("ListBudgetsResponse", &answer, step)
            }
            other => panic!("no portable action `{other}`"),
        }
    }

    /// A call with the names of the case, unless it gives others. null removes a key.
    fn filled(&self, call: &Object) -> Object {
        let mut json = Object::new();
        json.insert("tenant".into(), self.tenant.as_str().into());
        json.insert("operation".into(), self.operation.as_str().into());
        json.extend(call.clone());
        json.retain(|_, value| !value.is_null());
        json
    }

    fn name(&mut self, step: &Step, brought: Option<&String>) {
        if let (Some(label), Some(brought)) = (&step.label, brought) {
            self.named.insert(label.clone(), brought.clone());
        }
    }

    /// `{"as": "name"}` at `key` becomes what was kept under that name.
    fn with_named(&self, mut json: Object, key: &str) -> Object {
        if let Some(label) = json.get(key).and_then(|value| value.get("as")) {
            let named = self.named[label.as_str().unwrap()].as_str();
            json.insert(key.into(), named.into());
        }
        json
    }
}

impl Step {
    fn calls(&self) -> Vec<(&'static str, &Object)> {
        let actions = [
            ("ask", &self.ask),
            ("report", &self.report),
            ("reports", &self.reports),
            ("acquire", &self.acquire),
            ("release", &self.release),
            ("budget", &self.budget),
            ("list", &self.list),
        ];
        let given = actions.into_iter().filter_map(|(name, calls)| Some((name, calls.as_ref()?)));
        let all: Vec<_> = given
            .flat_map(|(name, calls)| match calls {
                Calls::One(call) => vec![(name, call)],
                Calls::Several(calls) => calls.iter().map(|call| (name, call)).collect(),
            })
            .collect();
        assert!(!all.is_empty(), "a portable step makes a call");
        all
    }
}

/// A Duration as an object of its two numbers is no proto-JSON: it is set on the message itself.
fn context(mut json: Object) -> pb::RetryContext {
    let remaining = take_duration(&mut json, &["remainingDeadline"]);
    let retry_after = take_duration(&mut json, &["hint", "retryAfter"]);
    let period = take_duration(&mut json, &["usage", "period"]);
    let mut context: pb::RetryContext = message("RetryContext", json);
    context.remaining_deadline = remaining.or(context.remaining_deadline);
    if let Some(retry_after) = retry_after {
        context.hint.as_mut().unwrap().retry_after = Some(retry_after);
    }
    if let Some(period) = period {
        context.usage.as_mut().unwrap().period = Some(period);
    }
    context
}

fn tenant_usage(mut json: Object) -> pb::TenantUsage {
    let period = take_duration(&mut json, &["usage", "period"]);
    let mut entry: pb::TenantUsage = message("TenantUsage", json);
    if let Some(period) = period {
        entry.usage.as_mut().unwrap().period = Some(period);
    }
    entry
}

fn take_duration(json: &mut Object, path: &[&str]) -> Option<prost_types::Duration> {
    let (last, parents) = path.split_last()?;
    let mut parent = json;
    for key in parents {
        parent = parent.get_mut(*key)?.as_object_mut()?;
    }
    if !parent.get(*last)?.is_object() {
        return None;
    }
    let parts = parent.remove(*last)?;
    let part = |key: &str| match &parts[key] {
        Value::Null => 0,
        Value::String(text) => text.parse().unwrap(),
        number => number.as_i64().unwrap(),
    };
    let nanos = i32::try_from(part("nanos")).unwrap();
    Some(prost_types::Duration { seconds: part("seconds"), nanos })
}

/// Without an expectation any answer will do, but no error.
fn judge<A: Message>(name: &str, answer: &Result<A, Status>, step: &Step) -> Vec<String> {
    match (answer, &step.error) {
        (Ok(answer), None) => {
            let json = json::json(name, answer);
            step.expect.as_ref().map_or_else(Vec::new, |expect| subset_differs(expect, &json))
        }
        (Ok(answer), Some(_)) => vec![format!("no error, but {}", json::json(name, answer))],
        (Err(status), Some(refusal)) => refusal_differs(status, refusal),
        (Err(status), None) => vec![format!("ended with {status}")],
    }
}

fn refusal_differs(status: &Status, refusal: &Refusal) -> Vec<String> {
    let details = status.get_error_details();
    let code = format!("{:?}", status.code()).to_uppercase();
    let (domain, reason) =
        details.error_info().map_or(("", ""), |info| (info.domain.as_str(), info.reason.as_str()));
    let found = details.bad_request().map_or(&[][..], |bad| &bad.field_violations);
    let mut paths: Vec<_> = found.iter().map(|violation| violation.field.as_str()).collect();
    paths.sort_unstable();
    let mut wanted: Vec<_> = refusal.violations.iter().map(String::as_str).collect();
    wanted.sort_unstable();
    let texts = found.iter().map(|violation| violation.description.as_str());
    let is_clean = !texts.chain([status.message()]).any(|text| text.contains(char::is_control));
    broken([
        ("the code", code == refusal.code.replace('_', "")),
        ("the domain", domain == "retryd"),
        ("the reason", reason == refusal.reason),
        ("the violations", paths == wanted),
        ("no control character", is_clean),
    ])
    .map(|law| format!("{law}, of {status:?} with {details:?}"))
    .collect()
}

fn decision_laws(
    decision: &pb::Decision,
    explain: bool,
    shadow: bool,
    revision: &str,
) -> Vec<String> {
    let retries = decision.verdict() == pb::Verdict::Retry;
    let retryable = decision.reason() == pb::Reason::Retryable;
    let waits = decision.delay.is_some_and(|delay| {
        let millis = Duration::try_from(delay).unwrap_or_default();
        !millis.is_zero() && millis.subsec_nanos().is_multiple_of(1_000_000)
    });
    let objections = decision.steps.iter().filter(|step| step.objected).count();
    let last = decision.steps.last();
    let unspecified = pb::DelaySource::Unspecified;
    broken([
        ("the verdict is one of the two", decision.verdict() != pb::Verdict::Unspecified),
        ("the reason is told", decision.reason() != pb::Reason::Unspecified),
        ("RETRY and RETRYABLE come together", retries == retryable),
        ("RETRY has a delay of whole milliseconds, at least one", !retries || waits),
        ("only RETRY has a delay", retries == decision.delay.is_some()),
        ("only RETRY has a source of it", retries == (decision.delay_source() != unspecified)),
        ("the class is told", decision.failure_class() != pb::FailureClass::Unspecified),
        ("the policy is told", !decision.policy.is_empty()),
        ("the revision is the file's", decision.policy_revision == revision),
        ("shadow where that is expected", decision.shadow == shadow),
        ("detail comes with explain", explain != decision.detail.is_empty()),
        ("steps come with explain", explain != decision.steps.is_empty()),
        ("the last step is the reason", last.is_none_or(|step| step.rule == decision.reason)),
        (
            "only the last step of a refusal objected",
            last.is_none_or(|step| step.objected != retries && objections == usize::from(!retries)),
        ),
    ])
    .map(|law| format!("broken: {law}, of {decision:?}"))
    .collect()
}

fn report_laws(results: &[pb::UsageResult], step: &Step) -> Option<String> {
    let refused = |result: &pb::UsageResult| {
        matches!(result.outcome, Some(pb::usage_result::Outcome::Refusal(_)))
    };
    let unexpected = step.expect.is_none() && results.iter().any(refused);
    unexpected.then(|| "an entry was refused".to_owned())
}

fn acquire_laws(answer: &pb::AcquireRetriesResponse, wanted: u32, shadow: bool) -> Vec<String> {
    let valid = answer.valid_for.map(|valid| (valid.seconds, valid.nanos));
    broken([
        ("no more is granted than was wanted", answer.granted <= wanted),
        ("a lease comes with retries", (answer.granted == 0) == answer.lease.is_empty()),
        ("valid for 1 s to 10 s", valid.is_some_and(|it| ((1, 0)..=(10, 0)).contains(&it))),
        ("shadow where that is expected", answer.shadow == shadow),
    ])
    .map(|law| format!("broken: {law}, of {answer:?}"))
    .collect()
}

fn broken<const N: usize>(laws: [(&'static str, bool); N]) -> impl Iterator<Item = &'static str> {
    laws.into_iter().filter(|(_, holds)| !holds).map(|(law, _)| law)
}

fn is_shadow(step: &Step) -> bool {
    step.expect.as_ref().is_some_and(|expect| expect.get("shadow") == Some(&true.into()))
}
