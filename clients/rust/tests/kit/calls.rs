//! `clients/scenarios/calls.json`, through each adapter.
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use crate::{
    json::Object,
    play::{Ending, Seen, Terms, play},
    subset::subset_differs,
    testbed::{read, repository},
};

#[derive(Deserialize)]
struct Calls {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    over: Vec<String>,
    #[serde(default = "asked")]
    retryd: String,
    #[serde(default = "faulty")]
    target: String,
    #[serde(default)]
    call: Terms,
    script: Value,
    expect: Expect,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expect {
    outcome: Value,
    attempts: usize,
    arrivals: Option<usize>,
    #[serde(default)]
    waits_ms: Vec<f64>,
    within_ms: Option<u64>,
    #[serde(default)]
    headers: Object,
    questions: Option<usize>,
    reasons: Option<Vec<String>>,
    #[serde(default)]
    contexts: Vec<Object>,
    usage: Option<Value>,
    released_of_call: Option<u64>,
    released_of_lease: Option<u64>,
}

fn asked() -> String {
    "asked".into()
}

fn faulty() -> String {
    "faulty".into()
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_over_grpc() {
    calls_over("grpc").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_over_http() {
    calls_over("http").await;
}

async fn calls_over(adapter: &str) {
    let calls: Calls = read(&repository().join("clients/scenarios/calls.json"));
    let (mut played, mut failed) = (0, Vec::new());
    for (place, case) in calls.cases.iter().enumerate() {
        if !case.over.iter().any(|over| over == adapter) {
            continue;
        }
        let name = format!("rust-calls-{adapter}-{place}");
        let decisions = case.expect.reasons.as_ref().map_or(0, Vec::len);
        let made =
            play(&name, adapter, &case.retryd, &case.target, &case.call, &case.script, decisions);
        let seen = made.await;
        played += 1;
        failed.extend(
            case.expect.differs(&seen).into_iter().map(|it| format!("{}: {it}", case.name)),
        );
    }
    println!("calls over {adapter}: {played} cases played");
    assert!(0 < played && failed.is_empty(), "{}", failed.join("\n"));
}

impl Expect {
    fn differs(&self, seen: &Seen) -> Vec<String> {
        let Seen { ending, attempts, took, play } = seen;
        let mut found = Vec::new();
        let mut check = |holds: bool, text: String| {
            if !holds {
                found.push(text);
            }
        };
        check(
            self.is_outcome(*ending),
            format!("ended with {ending:?}, expected {}", self.outcome),
        );
        check(
            self.attempts == *attempts,
            format!("{attempts} attempts, expected {}", self.attempts),
        );
        if let Some(arrivals) = self.arrivals {
            check(arrivals == play.arrivals.len(), format!("{} arrivals", play.arrivals.len()));
        }
        let waits = play.arrivals.windows(2).map(|pair| pair[1].at_ms - pair[0].at_ms);
        let waits: Vec<f64> = waits.collect();
        if !self.waits_ms.is_empty() {
            let long = self.waits_ms.iter().zip(&waits).all(|(wanted, wait)| wanted <= wait);
            let holds = self.waits_ms.len() == waits.len() && long;
            check(holds, format!("waits {waits:?}, expected {:?}", self.waits_ms));
        }
        if let Some(within) = self.within_ms {
            check(*took < Duration::from_millis(within), format!("took {took:?}"));
        }
        for (name, value) in &self.headers {
            let all = play
                .arrivals
                .iter()
                .all(|it| Some(&it.headers[name.as_str()][..]) == value.as_str());
            check(
                all && !play.arrivals.is_empty(),
                format!("not every arrival has {name}: {value}"),
            );
        }
        let questions = self.questions.or(self.reasons.as_ref().map(Vec::len));
        if let Some(questions) = questions {
            check(questions == play.questions.len(), format!("{} questions", play.questions.len()));
        }
        if let Some(wanted) = &self.reasons {
            let reasons = play.questions.iter().map(|it| it.decision["reason"].as_str());
            let reasons: Vec<_> = reasons.map(Option::unwrap_or_default).collect();
            check(*wanted == reasons, format!("reasons {reasons:?}"));
        }
        let enough = self.contexts.len() <= play.questions.len();
        check(enough, format!("{} contexts", play.questions.len()));
        if let Some(usage) = &self.usage {
            check(*usage == play.usage, format!("usage {}, expected {usage}", play.usage));
        }
        for (grant, wanted) in
            [("decided", self.released_of_call), ("lease", self.released_of_lease)]
        {
            let of_grant = play.releases.iter().filter(|it| it["request"].get(grant).is_some());
            let sum: u64 = of_grant.filter_map(|it| it["response"]["released"].as_u64()).sum();
            check(wanted.is_none_or(|wanted| wanted == sum), format!("{sum} of {grant} released"));
        }
        for (wanted, question) in self.contexts.iter().zip(&play.questions) {
            found.extend(subset_differs(wanted, &question.context));
        }
        found
    }

    fn is_outcome(&self, ending: Ending) -> bool {
        match self.outcome.as_str() {
            Some("ok") => ending == Ending::Ok,
            // Of the library's own making.
            Some("failed") => matches!(ending, Ending::Error | Ending::Grpc(_)),
            Some(other) => panic!("no outcome `{other}`"),
            None => match ending {
                Ending::Grpc(code) => self.outcome["grpc"] == code,
                Ending::Http(status) => self.outcome["http"] == status,
                Ending::Ok | Ending::Error => false,
            },
        }
    }
}
