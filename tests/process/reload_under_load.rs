//! Reloads under load, half of them broken: no call fails, no decision is of two revisions, nothing leaks.
use std::{
    collections::BTreeMap,
    fs,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use retryd::policy::Policies;
use retryd::wire::pb::{self, streamed_decision::Outcome};
use tempfile::TempDir;
use tokio::{task::JoinSet, time::sleep};

use crate::support::{Process, SOON, context};

/// Callers one by one, and streams, all of them as fast as they are answered.
const CALLERS: usize = 6;
const STREAMS: usize = 2;

/// Policies for other tenants in each file.
const OTHERS: u32 = 100;

/// Bytes that the process may grow by. Five hundred revisions take more.
const GROWN_MAX: u64 = 24 << 20;

/// The name, the delay and the limit of attempts all tell which file it is.
fn good(number: u32) -> String {
    let (attempts, delay_ms) = told(number);
    // So many that a revision which is never freed is seen.
    let others: String = (0..OTHERS)
        .map(|other| format!("  - {{name: other-{other}, match: {{tenant: other-{other}}}}}\n"))
        .collect();
    format!(
        "version: 1
budgets: [{{name: b, scope: tenant, ratio: {{min_retry_rate: {{count: 1000000, interval: 1s}}}}}}]
policies:
{others}  - name: p-{number}
    max_attempts: {attempts}
    backoff: {{base: {delay_ms}ms, jitter: none}}
    budgets: [b]
"
    )
}

fn told(number: u32) -> (u32, u32) {
    (2 + number % 900, 1 + number)
}

/// Each names the number in what is refused of it.
fn broken(number: u32) -> String {
    match number % 3 {
        // Cut in the middle.
        0 => format!("version: 1\npolicies: [{{name: broken-{number}, budgets: [b"),
        1 => format!("version: 1\npolicies: [{{name: broken-{number}, max_attempts: 0}}]\n"),
        _ => format!("version: 1\npolicies: [{{name: p, budgets: [broken-{number}]}}]\n"),
    }
}

fn question() -> pb::RetryContext {
    pb::RetryContext { explain: true, ..context("t") }
}

/// The revisions that were ever in force, each with its number.
type Known = Arc<Mutex<BTreeMap<String, u32>>>;

/// What is told of a decision stands in one file.
fn is_of_one_revision(decision: &pb::Decision, known: &Known) -> Result<(), String> {
    let number = known.lock().unwrap().get(&decision.policy_revision).copied();
    let number = number.ok_or_else(|| format!("nobody wrote this: {decision:?}"))?;
    let (attempts, delay_ms) = told(number);
    let delay = decision.delay.as_ref();
    let delay = delay.map(|delay| delay.seconds * 1_000 + i64::from(delay.nanos) / 1_000_000);
    let limit = format!("attempts_made 1 of max {attempts}");
    let holds = decision.policy == format!("p-{number}")
        && delay == Some(i64::from(delay_ms))
        && decision.steps.iter().any(|step| step.saw == limit);
    if holds { Ok(()) } else { Err(format!("of two revisions: {decision:?}")) }
}

struct Load {
    tasks: JoinSet<Result<(), String>>,
    done: Arc<AtomicBool>,
    decided: Arc<AtomicU64>,
}

impl Load {
    async fn begin(process: &Process, known: &Known) -> Load {
        let (done, decided) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let mut tasks = JoinSet::new();
        for _ in 0..CALLERS {
            let mut client = process.client().await;
            let (done, decided, known) = (done.clone(), decided.clone(), known.clone());
            tasks.spawn(async move {
                while !done.load(Ordering::Relaxed) {
                    let answer = client.decide(question()).await;
                    let decision = answer.map_err(|status| status.to_string())?.into_inner();
                    is_of_one_revision(&decision, &known)?;
                    decided.fetch_add(1, Ordering::Relaxed);
                }
                Ok(())
            });
        }
        for _ in 0..STREAMS {
            let mut client = process.client().await;
            let (done, decided, known) = (done.clone(), decided.clone(), known.clone());
            tasks.spawn(async move {
                let ended = done.clone();
                let asked = tokio_stream::StreamExt::take_while(
                    tokio_stream::iter(std::iter::repeat_with(question)),
                    move |_| !ended.load(Ordering::Relaxed),
                );
                let answers = client.decide_stream(asked).await;
                let mut answers = answers.map_err(|status| status.to_string())?.into_inner();
                while let Some(answer) = answers.message().await.map_err(|it| it.to_string())? {
                    let Some(Outcome::Decision(decision)) = &answer.outcome else {
                        return Err(format!("{answer:?}"));
                    };
                    is_of_one_revision(decision, &known)?;
                    decided.fetch_add(1, Ordering::Relaxed);
                }
                Ok(())
            });
        }
        Load { tasks, done, decided }
    }

    async fn end(mut self) -> u64 {
        self.done.store(true, Ordering::Relaxed);
        while let Some(ended) = self.tasks.join_next().await {
            if let Err(wrong) = ended.unwrap() {
                panic!("{wrong}");
            }
        }
        self.decided.load(Ordering::Relaxed)
    }
}

/// So many reloads by SIGHUP, one each `pace` at the fastest, every other one broken.
async fn storm(reloads: u32, pace: Duration) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("policy.yaml");
    let known = Known::default();
    let put = |number, text: &str| {
        if let Ok(policies) = Policies::parse("p", text.as_bytes()) {
            known.lock().unwrap().insert(policies.revision().to_owned(), number);
        }
        let beside = folder.path().join("new");
        fs::write(&beside, text).unwrap();
        fs::rename(&beside, &path).unwrap();
    };
    put(0, &good(0));
    let process = Process::start(&["--policy", path.to_str().unwrap()]);
    let load = Load::begin(&process, &known).await;
    let mut before = None;
    let began = Instant::now();
    for number in 1..=reloads {
        let next = Instant::now() + pace;
        let text = if number % 2 == 0 { good(number) } else { broken(number) };
        let told = match Policies::parse("p", text.as_bytes()) {
            Ok(policies) => policies.revision().to_owned(),
            Err(_) => format!("broken-{number}"),
        };
        put(number, &text);
        process.signal("HUP");
        while process.lines_with(&told).is_empty() {
            assert!(next.elapsed() < SOON, "`{told}` is not in the log");
            sleep(Duration::from_millis(2)).await;
        }
        // The first few fill what is allocated once.
        if number == reloads.min(20) {
            before = Some((process.resident_bytes(), process.open_files()));
        }
        sleep(next.saturating_duration_since(Instant::now())).await;
    }
    let took = began.elapsed();
    let (resident, files) = before.unwrap();
    let (resident_after, files_after) = (process.resident_bytes(), process.open_files());
    let decided = load.end().await;
    println!(
        "{reloads} reloads in {took:.1?}, {decided} decisions, {resident} -> {resident_after} bytes, {files} -> {files_after} files"
    );
    assert!(decided > 0);
    let metric = |outcome| format!("retryd_policy_reloads_total{{outcome=\"{outcome}\"}}");
    for outcome in ["applied", "refused"] {
        let counted = process.metric(&metric(outcome)).await;
        assert!(u64::from(reloads / 2) <= counted, "{outcome}: {counted}");
    }
    assert!(resident_after < resident + GROWN_MAX, "{resident} {resident_after}");
    // The page of metrics may just be asked for.
    assert!(files_after <= files + 2, "{files} {files_after}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reloads_under_load() {
    storm(100, Duration::ZERO).await;
}

/// `cargo test --profile ci --test process -- --ignored --nocapture a_thousand_reloads`
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes a minute"]
async fn a_thousand_reloads_in_a_minute_under_load() {
    storm(1_000, Duration::from_millis(60)).await;
}
