//! A line of the decision log, decided anew by the policies that it was made by, is the decision that was
//! made: whatever was asked, and whatever the budgets had to say.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]
use std::{fs, path::PathBuf, sync::Arc, time::Duration};

use proptest::{collection::vec, option, prelude::*, sample::select};
use retryd::admin::{log_lines::LogLines, metrics::Metrics};
use retryd::budget::Memory;
use retryd::clock::{Clock, Dice, Now};
use retryd::decider::Decider;
use retryd::decision_log::{DecisionLog, Line, Replay, Target};
use retryd::policy::Policies;
use retryd::service::Retryd;
use retryd::wire::pb;
use tokio_util::sync::CancellationToken;

/// Every model, several budgets, each jitter, a shadow, and a policy without budgets.
const POLICIES: &str = "version: 1
budgets:
  - {name: few, scope: tenant, ratio: {percent: 20, interval: 10s, min_retry_rate: {count: 2, interval: 1s}}}
  - {name: bucket, scope: tenant_operation, token_bucket: {capacity: 40}}
  - {name: throttle, scope: global, throttle: {max_tokens: 8, token_ratio: 0.5}}
policies:
  - {name: free, match: {tenant: free}, max_attempts: 5, backoff: {jitter: none}}
  - {name: watched, match: {tenant: watched}, mode: shadow, budgets: [few]}
  - {name: several, match: {operation: several}, budgets: [bucket, few], backoff: {jitter: equal}, max_hint: 30s}
  - {name: rest, max_attempts: 4, budgets: [throttle, few], retry_on: {http: [500, 520], grpc: [UNAVAILABLE]}}
";

fn duration() -> impl Strategy<Value = pbjson_types::Duration> {
    let ms = prop_oneof![-2_000..3_000_i64, Just(0), Just(315_576_000_000_000), 0..400_000_i64];
    (ms, 0..1_000_000_i32).prop_map(|(ms, nanos)| {
        let sign = if ms < 0 { -1 } else { 1 };
        let millis = i32::try_from(ms.abs() % 1_000).unwrap();
        pbjson_types::Duration {
            seconds: ms / 1_000,
            nanos: sign * (millis * 1_000_000 + if ms.abs() < 1_000_000_000 { nanos } else { 0 }),
        }
    })
}

fn failure() -> impl Strategy<Value = pb::Failure> {
    let http = select(vec![200, 408, 429, 500, 503, 520, 599, 101]);
    let status = prop_oneof![
        http.prop_map(pb::failure::Status::HttpStatus),
        (1..=16_u32).prop_map(pb::failure::Status::GrpcCode),
    ];
    // Known ones, and numbers of tomorrow on both sides of 20.
    let category = prop_oneof![Just(0), Just(1), 0..=8_i32, 20..=27_i32, Just(15), Just(99)];
    (category, option::of(status)).prop_map(|(category, status)| pb::Failure { category, status })
}

fn hint() -> impl Strategy<Value = pb::ServerHint> {
    let header = select(vec![
        "",
        "0",
        "2",
        "400",
        "soon",
        "+5",
        "9999999999999999999999",
        "a\nb\u{2028}",
        "Thu, 01 Jan 2026 00:00:05 GMT",
        "Thu, 01 Jan 2026 01:00:00 GMT",
    ]);
    let pushback = select(vec!["0", "250", "-1", "x", "", "2147483647"]);
    let date = select(vec!["", "Thu, 01 Jan 2026 00:00:01 GMT", "never"]);
    let (header, pushback) = (option::of(header), option::weighted(0.2, pushback));
    (option::of(duration()), header, pushback, date).prop_map(
        |(retry_after, header, pushback, date)| pb::ServerHint {
            retry_after,
            retry_after_header: header.map(str::to_owned),
            grpc_retry_pushback_ms: pushback.map(str::to_owned),
            date_header: date.to_owned(),
        },
    )
}

fn usage() -> impl Strategy<Value = pb::Usage> {
    (0..40_u64, 0..10_u64, option::of(duration())).prop_map(|(requests, successes, period)| {
        let retried = successes / 2;
        pb::Usage {
            requests,
            first_try_successes: successes,
            retried_successes: retried,
            retried_timeout: retried / 2,
            period,
            ..Default::default()
        }
    })
}

/// Some of them are refused: those are no decisions.
fn context() -> impl Strategy<Value = pb::RetryContext> {
    let names = (
        select(vec!["free", "watched", "shop", "é\u{2029}\"\\"]),
        select(vec!["several", "op"]),
        select(vec!["", "", "c1", "c2"]),
    );
    let flags = (
        prop::bool::weighted(0.8),
        prop::bool::weighted(0.1),
        prop::bool::weighted(0.1),
        prop::bool::weighted(0.2),
        any::<bool>(),
    );
    let keys = option::of(any::<(bool, bool, bool)>());
    let parts =
        (option::of(duration()), failure(), option::of(hint()), option::weighted(0.3, usage()));
    let evidence = prop_oneof![Just(0), Just(0), 0..=4_i32, Just(77), Just(-3)];
    (names, 1..6_u32, flags, keys, parts, evidence).prop_map(
        |((tenant, operation, call_id), attempts_made, flags, keys, parts, evidence)| {
            let (body_replayable, first_byte_delivered, runtime_draining, dry_run, explain) = flags;
            let (remaining_deadline, failure, hint, usage) = parts;
            pb::RetryContext {
                tenant: tenant.to_owned(),
                operation: operation.to_owned(),
                attempts_made,
                remaining_deadline,
                body_replayable,
                first_byte_delivered,
                runtime_draining,
                idempotency: keys.map(|(declared, key_registered, key_sent)| pb::Idempotency {
                    declared,
                    key_registered,
                    key_sent,
                }),
                failure: Some(failure),
                evidence,
                hint,
                usage,
                call_id: call_id.to_owned(),
                explain,
                dry_run,
            }
        },
    )
}

/// Has a history decided, each question so long after the one before, and returns its log.
fn logged(history: &[(pb::RetryContext, u64)]) -> (Vec<pb::RetryContext>, Vec<Line>) {
    let folder = tempfile::tempdir().unwrap();
    let path: PathBuf = folder.path().join("log");
    let log =
        DecisionLog::open(Target::File(path.clone()), "100%".parse().unwrap(), LogLines::default())
            .unwrap();
    let policies = Policies::parse("replay.yaml", POLICIES.as_bytes()).unwrap();
    let (store, metrics) = (Memory::new(policies.budgets()), Arc::new(Metrics::new()));
    // 2026-01-01T00:00:00Z
    let clock = Clock::standing_at(Now { monotonic_ms: 5, unix_ms: 1_767_225_600_000 });
    let decider = Decider::new(policies, store, clock.clone(), Dice::fair(), Arc::clone(&metrics));
    let retryd = Retryd::new(Arc::new(decider), metrics, CancellationToken::new());
    let retryd = retryd.logged(Some(log.clone()));
    let mut decided = Vec::new();
    for (context, later_ms) in history {
        clock.advance(Duration::from_millis(*later_ms));
        if retryd.decide(context).is_ok() {
            decided.push(context.clone());
        }
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(log.end(Duration::from_secs(20)));
    let text = fs::read_to_string(path).unwrap();
    (decided, text.lines().map(|line| Line::read(line.as_bytes()).unwrap()).collect())
}

proptest! {
    #[test]
    fn under_the_same_policies_a_line_says_the_same(
        history in vec((context(), select(vec![0, 1, 10, 500, 3_000])), 1..60),
    ) {
        let (decided, lines) = logged(&history);
        let replay = Replay::new(Policies::parse("again", POLICIES.as_bytes()).unwrap());
        prop_assert_eq!(decided.len(), lines.len());
        for (context, line) in decided.iter().zip(&lines) {
            prop_assert_eq!(&line.context, context);
            let again = replay.again(line).unwrap();
            prop_assert_eq!(again.now, Some(again.then), "{:?}", line);
            prop_assert_eq!(again.policy, &line.decision.policy);
        }
    }
}

/// Otherwise the law above would hold of little.
#[test]
fn such_histories_meet_every_reason_and_every_word_of_budgets() {
    use proptest::{strategy::ValueTree as _, test_runner::TestRunner};
    let mut runner = TestRunner::deterministic();
    let history = vec((context(), select(vec![0, 1, 10, 500])), 20_000..20_001);
    let history = history.new_tree(&mut runner).unwrap().current();
    // In parts, so that nothing is dropped.
    let lines: Vec<Line> = history.chunks(2_000).flat_map(|part| logged(part).1).collect();
    let reasons: std::collections::BTreeSet<_> =
        lines.iter().map(|line| line.decision.reason().as_str_name()).collect();
    assert_eq!(reasons.len(), 15, "{reasons:?}");
    let words: std::collections::BTreeSet<_> =
        lines.iter().map(|line| format!("{:?}", line.budgets.said)).collect();
    assert_eq!(words.len(), 4, "{words:?}");
    let sources: std::collections::BTreeSet<_> =
        lines.iter().map(|line| line.decision.delay_source().as_str_name()).collect();
    assert_eq!(sources.len(), 3, "{sources:?}");
}
