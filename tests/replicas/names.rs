//! Names that callers choose: none reaches another's budget, and invented ones stay bounded.
use std::time::Duration;

use retryd::wire::pb::{self, streamed_decision::Outcome};
use tokio::time::{Instant, sleep, timeout};
use tonic::Code;

use crate::scene::{MACHINE, replicas};
use crate::servers::{Flavour, Server};
use crate::support::{Process, SOON, context, policy_file};

/// Nothing refills it meanwhile, and a first contact is not granted on credit.
const PAIRS: &str = "version: 1
budgets:
  - {name: pair, scope: tenant_operation, ratio: {percent: 0, min_retry_rate: {count: 4, interval: 1h}}}
policies: [{name: all, budgets: [pair]}]
";

/// Pairs of tenant and operation that somebody may take for one another.
const NAMES: [(&str, &str); 22] = [
    ("a", "b:c"),
    ("a:b", "c"),
    ("a", "b/c"),
    ("a/b", "c"),
    ("a", "b c"),
    ("a b", "c"),
    ("a%3Ab", "c"),
    ("a%253Ab", "c"),
    ("{x}", "op"),
    ("{x}y", "op"),
    ("x", "op"),
    ("x", "{op}"),
    ("*", "op"),
    ("?", "op"),
    ("a", "*"),
    ("A", "b:c"),
    ("\u{e9}", "op"),
    ("e\u{301}", "op"),
    ("\u{2028}", "op"),
    (" x", "op"),
    ("retryd:fleet", "op"),
    ("x\u{a0}", "op"),
];

fn question((tenant, operation): (&str, &str)) -> pb::RetryContext {
    pb::RetryContext { operation: operation.to_owned(), ..context(tenant) }
}

async fn decide(process: &Process, questions: Vec<pb::RetryContext>) -> Vec<u32> {
    let count = questions.len();
    let questions = tokio_stream::iter(questions);
    let mut answers = process.client().await.decide_stream(questions).await.unwrap().into_inner();
    let mut granted = Vec::new();
    while let Some(answer) = timeout(SOON, answers.message()).await.unwrap().unwrap() {
        let Some(Outcome::Decision(decision)) = answer.outcome else { panic!("{answer:?}") };
        granted.push(u32::from(decision.verdict() == pb::Verdict::Retry));
    }
    assert_eq!(granted.len(), count);
    granted
}

#[tokio::test(flavor = "multi_thread")]
async fn b54_no_two_names_share_a_budget() {
    let _beside_others = MACHINE.read().await;
    let server = Server::start(Flavour::Redis7);
    let url = server.url();
    let both = replicas(&policy_file("replicas-names.yaml", PAIRS), &[&url, &url]);
    let mut granted = [0; NAMES.len()];
    for _ in 0..25 {
        for process in &both {
            let questions = NAMES.into_iter().map(question).collect();
            let answers = decide(process, questions).await;
            granted.iter_mut().zip(answers).for_each(|(sum, granted)| *sum += granted);
        }
        sleep(Duration::from_millis(60)).await;
    }
    for (name, granted) in NAMES.into_iter().zip(granted) {
        // Each replica may be one ahead.
        assert!((4..=6).contains(&granted), "{name:?}: {granted}");
    }
    assert_eq!(server.keys().len(), NAMES.len() + 1, "{:?}", server.keys());
    let refused = both[0].client().await.decide(context("a\nb")).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
}

const TENANTS: &str = "version: 1
budgets:
  - {name: own, scope: tenant, ratio: {min_retry_rate: {count: 200, interval: 20s}}}
policies: [{name: all, budgets: [own]}]
";

/// Asks with pauses until so many are granted. That takes a while where an exchange was lost: what
/// it carried has to be refilled.
async fn is_granted(process: &Process, tenant: &str, wanted: u32) {
    let mut client = process.client().await;
    let mut granted = 0;
    let end = Instant::now() + SOON;
    while granted < wanted {
        assert!(Instant::now() < end, "`{tenant}` got {granted} of {wanted}");
        let decision = client.decide(context(tenant)).await.unwrap();
        if decision.get_ref().verdict() == pb::Verdict::Retry {
            granted += 1;
        } else {
            sleep(Duration::from_millis(20)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn b58_invented_tenants_cost_bounded_keys_and_memory() {
    let _beside_others = MACHINE.read().await;
    const BALANCES_MAX: usize = 1_000;
    let server = Server::start(Flavour::Valkey8);
    let policy = policy_file("replicas-tenants.yaml", TENANTS);
    let room = BALANCES_MAX.to_string();
    let process =
        Process::start(&["--policy", &policy, "--store", &server.url(), "--max-balances", &room]);
    is_granted(&process, "known", 50).await;
    let before = process.resident_bytes();
    let mut granted = 0;
    for round in 0..4 {
        let names = (0..10_000).map(|place| format!("invented-{place:07}"));
        let questions = names.map(|name| pb::RetryContext {
            usage: Some(pb::Usage { requests: 1, ..Default::default() }),
            ..context(&name)
        });
        granted += decide(&process, questions.collect()).await.iter().sum::<u32>();
        println!("round {round}: {granted} granted, {} keys", server.keys().len());
        // Besides the balances: one for those without room, and the fleet.
        assert!(server.keys().len() <= BALANCES_MAX + 2, "{}", server.keys().len());
    }
    let grown = process.resident_bytes().saturating_sub(before);
    println!("{grown} bytes");
    assert!(grown < 32 << 20, "{grown} bytes");
    is_granted(&process, "known", 50).await;
}
