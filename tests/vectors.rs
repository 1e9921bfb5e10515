//! Plays every file of `tests/vectors` in process, and its portable cases over a real connection.
//! What the files mean stands in `tests/vectors/README.md`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at what it does not expect"
)]

#[path = "vectors/compare.rs"]
mod compare;
#[path = "vectors/format.rs"]
mod format;
#[path = "vectors/subject.rs"]
mod subject;

use compare::{decision_differs, refusal_differs, subset_differs};
use format::{Case, Object, Step, Vectors};
use retryd::clock::{Clock, Dice};
use retryd::wire::pb;
use subject::{Server, Subject};

#[tokio::test]
async fn in_process() {
    let mut score = Score::default();
    for vectors in format::load_all() {
        let policies = subject::policies(&vectors);
        for (case, run) in vectors.runs(|_| true) {
            let clock = case.clock();
            let dice = case.draw.map_or(Dice::fair(), Dice::loaded);
            let subject = Subject::in_process(policies.clone(), clock.clone(), dice);
            score.note(&vectors, case, play(&subject, &vectors, case, run, &clock).await);
        }
    }
    score.tell("in process");
}

#[tokio::test]
async fn over_a_connection() {
    let mut score = Score::default();
    for vectors in format::load_all() {
        let server = Server::start(&vectors).await;
        let subject = server.subject();
        for (case, run) in vectors.runs(Case::is_portable) {
            let clock = Clock::system();
            score.note(&vectors, case, play(&subject, &vectors, case, run, &clock).await);
        }
    }
    score.tell("over a connection");
}

/// One context of one case, and the tenant that is its own.
struct Run<'a> {
    context: &'a Object,
    tenant: String,
}

/// Plays the history of `case`, then asks, and tells everything that differs.
async fn play(
    subject: &Subject,
    vectors: &Vectors,
    case: &Case,
    run: Run<'_>,
    clock: &Clock,
) -> Vec<String> {
    let mut differs = Vec::new();
    for (place, step) in case.before.iter().enumerate() {
        let found = play_step(subject, vectors, step, &run, clock).await;
        differs.extend(found.into_iter().map(|text| format!("before {place}: {text}")));
    }
    let context = vectors.context(run.context, &run.tenant);
    let answer = subject.decide(context.clone()).await;
    differs.extend(judge(vectors, &context, answer, &case.expect, &case.error));
    for text in &mut differs {
        text.push_str(&format!(" (context {})", serde_json::to_string(run.context).unwrap()));
    }
    differs
}

async fn play_step(
    subject: &Subject,
    vectors: &Vectors,
    step: &Step,
    run: &Run<'_>,
    clock: &Clock,
) -> Vec<String> {
    let mut differs = Vec::new();
    let mut granted = 0;
    for _ in 0..step.repeat.unwrap_or(1) {
        if let Some(ask) = &step.ask {
            let context = vectors.context(ask, &run.tenant);
            let answer = subject.decide(context.clone()).await;
            granted += u32::from(answer.as_ref().is_ok_and(is_retry));
            differs.extend(judge(vectors, &context, answer, &step.expect, &step.error));
        }
        if let Some(report) = &step.report {
            match subject.report(format::report(report, &run.tenant)).await {
                Ok(result) => differs.extend(report_differs(&result, &step.expect)),
                Err(status) => differs.push(format!("the report ended with {status}")),
            }
        }
        if let Some(advance) = step.advance() {
            clock.advance(advance);
        }
    }
    if let Some(wanted) = step.granted.filter(|wanted| *wanted != granted) {
        differs.push(format!("granted {granted}, expected {wanted}"));
    }
    differs
}

fn is_retry(decision: &pb::Decision) -> bool {
    decision.verdict() == pb::Verdict::Retry
}

/// Without an expectation any decision will do, but no error.
fn judge(
    vectors: &Vectors,
    context: &pb::RetryContext,
    answer: Result<pb::Decision, tonic::Status>,
    expect: &Option<Object>,
    error: &Option<format::Error>,
) -> Vec<String> {
    match (answer, error) {
        (Ok(decision), None) => {
            decision_differs(&decision, expect.as_ref(), context.explain, &vectors.revision())
        }
        (Err(status), Some(error)) => refusal_differs(&status, error),
        (Ok(decision), Some(_)) => vec![format!("no error, but {:?}", decision.reason())],
        (Err(status), None) => vec![format!("ended with {status}")],
    }
}

fn report_differs(result: &pb::UsageResult, expect: &Option<Object>) -> Vec<String> {
    let refused = matches!(result.outcome, Some(pb::usage_result::Outcome::Refusal(_)));
    match expect {
        Some(expect) => subset_differs(expect, &serde_json::to_value(result).unwrap()),
        None if refused => vec![format!("the report was refused: {result:?}")],
        None => Vec::new(),
    }
}

/// Counts, and tells every case that failed at once.
#[derive(Default)]
struct Score {
    played: usize,
    failed: Vec<String>,
}

impl Score {
    fn note(&mut self, vectors: &Vectors, case: &Case, mut differs: Vec<String>) {
        self.played += 1;
        // A step that is repeated differs in the same way each time.
        differs.dedup();
        if !differs.is_empty() {
            let lines = differs.join("\n    ");
            self.failed.push(format!("{}: {}\n    {lines}", vectors.name, case.name));
        }
    }

    fn tell(self, how: &str) {
        let Score { played, failed } = self;
        println!("{played} contexts played {how}");
        assert!(
            failed.is_empty(),
            "{} of {played} differ {how}:\n{}",
            failed.len(),
            failed.join("\n")
        );
    }
}
