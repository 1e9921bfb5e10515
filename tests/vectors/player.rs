//! Plays the steps of a case, and tells everything that differs.
use std::collections::BTreeMap;

use retryd::clock::Clock;
use retryd::wire::pb::{self, usage_result::Outcome};
use serde::Serialize;
use tonic::Status;

use crate::compare::{Law, decision_laws, refusal_differs};
use crate::format::{self, Action, Object, Run, Step, Terms, Vectors};
use crate::message::{self, from_json};
use crate::subject::{self, Subject};
use crate::subset::subset_differs;

/// Plays a case from its first step to its last.
pub(crate) async fn play(
    subject: &Subject,
    vectors: &Vectors,
    run: &Run<'_>,
    clock: Clock,
) -> Vec<String> {
    let revision = vectors.policy().revision();
    let mut player = Player { subject, vectors, run, clock, revision, named: BTreeMap::new() };
    let mut differs = Vec::new();
    for (place, step) in run.steps.iter().enumerate() {
        for found in player.step(step).await {
            differs.push(format!("step {place}: {found}"));
        }
    }
    differs
}

struct Player<'a> {
    subject: &'a Subject,
    vectors: &'a Vectors,
    run: &'a Run<'a>,
    clock: Clock,
    /// Of the policy in force.
    revision: String,
    /// Leases and page tokens, by the names that steps gave them.
    named: BTreeMap<String, String>,
}

impl Player<'_> {
    async fn step(&mut self, step: &Step) -> Vec<String> {
        let mut differs = Vec::new();
        let mut granted = 0;
        for _ in 0..step.terms.repeat.unwrap_or(1) {
            match &step.action {
                Action::Advance(by) => self.clock.advance(format::span(by)),
                Action::Reload(policy) => {
                    self.subject.reload(subject::policies(&self.vectors.name, policy));
                    self.revision = policy.revision();
                }
                Action::Ask(calls)
                | Action::Report(calls)
                | Action::Reports(calls)
                | Action::Acquire(calls)
                | Action::Release(calls)
                | Action::Budget(calls)
                | Action::List(calls) => {
                    for call in calls.each() {
                        let found = self.call(&step.action, &step.terms, call, &mut granted).await;
                        let shown = serde_json::to_string(call).unwrap();
                        differs.extend(found.into_iter().map(|it| format!("{it} (call {shown})")));
                    }
                }
            }
        }
        if let Some(wanted) = step.terms.granted.filter(|wanted| *wanted != granted) {
            differs.push(format!("granted {granted}, expected {wanted}"));
        }
        differs
    }

    async fn call(
        &mut self,
        action: &Action,
        terms: &Terms,
        call: &Object,
        granted: &mut u32,
    ) -> Vec<String> {
        let (subject, names) = (self.subject, &self.run.names);
        match action {
            Action::Ask(_) => {
                let mut json = self.vectors.base.clone();
                json.extend(call.clone());
                let context = message::context(names.fill(&json));
                let explain = context.explain;
                let answer = subject.decide(context).await;
                *granted += u32::from(answer.as_ref().is_ok_and(is_retry));
                let shadow = is_named(terms, "shadow");
                judge(answer, terms, |it| decision_laws(it, explain, shadow, &self.revision))
            }
            Action::Report(_) => {
                let request = message::report(names.fill(call));
                judge(subject.report_usage(request).await.map(only), terms, |result| {
                    report_laws(std::slice::from_ref(result), terms)
                })
            }
            Action::Reports(_) => {
                let request = message::reports(call.clone(), names);
                let answer = subject.report_usage(request).await;
                judge(answer, terms, |answer| report_laws(&answer.results, terms))
            }
            Action::Acquire(_) => {
                let request: pb::AcquireRetriesRequest = from_json(names.fill(call));
                let wanted = request.wanted;
                let answer = subject.acquire_retries(request).await;
                self.name(terms, answer.as_ref().map(|answer| &answer.lease));
                judge(answer, terms, |answer| acquire_laws(answer, wanted, terms))
            }
            Action::Release(_) => {
                let json = self.with_named(names.fill(call), "lease");
                let request: pb::ReleaseRetriesRequest = from_json(json);
                let unused = request.unused;
                judge(subject.release_retries(request).await, terms, |answer| {
                    vec![("no more is released than was unused", answer.released <= unused)]
                })
            }
            Action::Budget(_) => {
                let request = from_json(names.fill(call));
                judge(subject.get_budget(request).await, terms, |_| Vec::new())
            }
            Action::List(_) => {
                let request = from_json(self.with_named(call.clone(), "pageToken"));
                let answer = subject.list_budgets(request).await;
                self.name(terms, answer.as_ref().map(|answer| &answer.next_page_token));
                judge(answer, terms, |_| Vec::new())
            }
            Action::Advance(_) | Action::Reload(_) => Vec::new(),
        }
    }

    /// Keeps what an answer brought under the step's name for it.
    fn name(&mut self, terms: &Terms, brought: Result<&String, &Status>) {
        if let (Some(label), Ok(brought)) = (&terms.label, brought) {
            self.named.insert(label.clone(), brought.clone());
        }
    }

    /// `json` with `{"as": "name"}` at `key` replaced by what was kept under that name.
    fn with_named(&self, mut json: Object, key: &str) -> Object {
        if let Some(label) = json.get(key).and_then(|value| value.get("as")) {
            let label = label.as_str().unwrap();
            let named = self.named.get(label).unwrap_or_else(|| panic!("no step named `{label}`"));
            json.insert(key.into(), named.as_str().into());
        }
        json
    }
}

/// Without an expectation any answer will do, but no error.
fn judge<A: Serialize>(
    answer: Result<A, Status>,
    terms: &Terms,
    laws: impl FnOnce(&A) -> Vec<Law>,
) -> Vec<String> {
    match (answer, &terms.error) {
        (Ok(answer), error) => {
            let json = serde_json::to_value(&answer).expect("an answer is proto-JSON");
            let expect = terms.expect.as_ref();
            let mut differs = expect.map_or_else(Vec::new, |expect| subset_differs(expect, &json));
            let broken = laws(&answer).into_iter().filter(|(_, holds)| !holds);
            differs.extend(broken.map(|(law, _)| format!("broken: {law}; got {json}")));
            differs.extend(error.as_ref().map(|_| format!("no error, but {json}")));
            differs
        }
        (Err(status), Some(error)) => refusal_differs(&status, error),
        (Err(status), None) => vec![format!("ended with {status}")],
    }
}

fn is_retry(decision: &pb::Decision) -> bool {
    decision.verdict() == pb::Verdict::Retry
}

fn is_named(terms: &Terms, key: &str) -> bool {
    terms.expect.as_ref().is_some_and(|expect| expect.get(key) == Some(&true.into()))
}

fn only(mut response: pb::ReportUsageResponse) -> pb::UsageResult {
    assert_eq!(response.results.len(), 1, "one entry, one result");
    response.results.remove(0)
}

fn report_laws(results: &[pb::UsageResult], terms: &Terms) -> Vec<Law> {
    let refused = |result: &pb::UsageResult| matches!(result.outcome, Some(Outcome::Refusal(_)));
    let is_refused = results.iter().any(refused);
    vec![("an entry is refused only where that is expected", terms.expect.is_some() || !is_refused)]
}

fn acquire_laws(answer: &pb::AcquireRetriesResponse, wanted: u32, terms: &Terms) -> Vec<Law> {
    let valid = answer.valid_for.as_ref().map(|valid| (valid.seconds, valid.nanos));
    vec![
        ("no more is granted than was wanted", answer.granted <= wanted),
        ("a lease comes with retries", (answer.granted == 0) == answer.lease.is_empty()),
        ("valid for 1 s to 10 s", valid.is_some_and(|it| ((1, 0)..=(10, 0)).contains(&it))),
        ("shadow where that is expected", answer.shadow == is_named(terms, "shadow")),
    ]
}
