//! Callers that invent tenants: memory stays bounded, and those with a balance are still answered.
use retryd::wire::pb::{self, streamed_decision::Outcome};
use tokio::time::timeout;
use tonic::Streaming;

use crate::support::{Process, SOON, context, policy_file};

/// Each tenant has 200 retries for an hour, and all of them together 100,000.
const POLICY: &str = "version: 1
budgets:
  - {name: own, scope: tenant, ratio: {interval: 1h, min_retry_rate: {count: 200, interval: 1h}}}
  - {name: sum, scope: global, token_bucket: {capacity: 100000, costs: {transient: 1, throttling: 1, timeout: 1}}}
policies: [{name: all, budgets: [own, sum]}]
";

/// The questions of tenants that nobody knows, one each.
struct Invented {
    next: u32,
    end: u32,
}

impl futures_core::Stream for Invented {
    type Item = pb::RetryContext;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<pb::RetryContext>> {
        let place = self.next;
        self.next += 1;
        let question = (place < self.end).then(|| context(&format!("invented-{place:07}")));
        std::task::Poll::Ready(question)
    }
}

/// Asks once for each of so many new tenants, and tells how many were granted.
async fn flood(process: &Process, from: u32, tenants: u32) -> u32 {
    let questions = Invented { next: from, end: from + tenants };
    let answers = process.client().await.decide_stream(questions).await.unwrap();
    let mut answers: Streaming<_> = answers.into_inner();
    let (mut granted, mut answered) = (0, 0);
    while let Some(answer) = timeout(SOON, answers.message()).await.unwrap().unwrap() {
        let Some(Outcome::Decision(decision)) = answer.outcome else { panic!("{answer:?}") };
        granted += u32::from(decision.verdict() == pb::Verdict::Retry);
        answered += 1;
    }
    assert_eq!(answered, tenants);
    granted
}

async fn granted_of_a_hundred(process: &Process, tenant: &str) -> u32 {
    let mut client = process.client().await;
    let mut granted = 0;
    for _ in 0..100 {
        let decision = client.decide(context(tenant)).await.unwrap().into_inner();
        granted += u32::from(decision.verdict() == pb::Verdict::Retry);
    }
    granted
}

#[tokio::test]
async fn b58_invented_tenants_share_one_balance_when_the_room_is_taken() {
    let policy = policy_file("tenants.yaml", POLICY);
    let process = Process::start(&["--policy", &policy, "--max-balances", "1000"]);
    assert_eq!(granted_of_a_hundred(&process, "known").await, 100);
    let before = process.resident_bytes();
    // 998 find room beside the known tenant and the sum; the others share 200 retries.
    assert_eq!(flood(&process, 0, 10_000).await, 998 + 200);
    process.metric_is("retryd_balances", 1_000).await;
    process.metric_is("retryd_overflow_uses_total", 10_000 - 998).await;
    let grown = process.resident_bytes().saturating_sub(before);
    assert!(grown < 16 << 20, "{grown} bytes");
    assert_eq!(granted_of_a_hundred(&process, "known").await, 100, "it keeps its own");
    assert_eq!(granted_of_a_hundred(&process, "unknown").await, 0);
}

/// What one balance may take of the process's memory, everything counted.
const BALANCE_BYTES_MAX: f64 = 150.0;

/// Prints what a balance takes: `cargo test --profile ci --test process -- --ignored --nocapture
/// two_million`. The tables double when they are seven eighths full, so it is more or less by as
/// much as that is.
#[tokio::test]
#[ignore = "takes minutes in a debug build"]
async fn two_million_invented_tenants_stay_within_the_cap() {
    // Of one balance for each tenant, and nothing else.
    let policy = POLICY.replace("budgets: [own, sum]", "budgets: [own]");
    let process = Process::start(&["--policy", &policy_file("tenants-many.yaml", &policy)]);
    assert_eq!(granted_of_a_hundred(&process, "known").await, 100);
    let empty = process.resident_bytes();
    let grown = || process.resident_bytes().saturating_sub(empty);
    let (mut asked, mut each) = (0, 0.0);
    for balances in [10_000, 450_000, 900_000, 1_000_000] {
        // One of them is known.
        flood(&process, asked, balances - 1 - asked).await;
        asked = balances - 1;
        each = grown() as f64 / f64::from(balances);
        println!("{balances} balances: {each:.1} B each");
    }
    assert!(each <= BALANCE_BYTES_MAX, "{each:.1} bytes");
    let at_the_cap = grown();
    flood(&process, asked, 2_000_000 - asked).await;
    let beyond = grown();
    println!("2000000 tenants: {beyond} B, {at_the_cap} B at the cap");
    process.metric_is("retryd_balances", 1_000_000).await;
    assert!(beyond < at_the_cap + (16 << 20), "{beyond} {at_the_cap}");
    assert_eq!(granted_of_a_hundred(&process, "known").await, 100, "it keeps its own");
}
