//! Any bytes as a RetryContext: refused with a reason and without a trace, or decided within the
//! laws of the contract.
#![no_main]
use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use prost::Message as _;
use retryd::admin::metrics::Metrics;
use retryd::budget::Memory;
use retryd::clock::{Clock, Dice, Now};
use retryd::decider::{Decider, Question};
use retryd::engine::Wait;
use retryd::policy::Policies;
use retryd::service::{CONTEXT_BYTES_MAX, Retryd};
use retryd::wire::context::{self, Oddities};
use retryd::wire::pb;
use retryd::wire::refusal::Refusal;
use tokio_util::sync::CancellationToken;

static POLICIES: LazyLock<Policies> = LazyLock::new(|| {
    let read = Policies::parse("policy.yaml", include_bytes!("../policy.yaml"));
    read.unwrap_or_else(|rejected| panic!("{rejected}"))
});

/// 2026-01-01T00:00:00Z, as in most vectors.
const NOW: Now = Now { monotonic_ms: 36_000_000, unix_ms: 1_767_225_600_000 };

/// More than any budget of the policy file pays for.
const ASKS: u32 = 12;

fuzz_target!(|bytes: &[u8]| {
    if CONTEXT_BYTES_MAX < bytes.len() {
        return;
    }
    let Ok(context) = pb::RetryContext::decode(bytes) else { return };
    match context::parse(&context, NOW.unix_ms, &mut Oddities::default()) {
        Err(refusal) => leaves_no_trace(&context, refusal),
        Ok(question) => {
            for draw in [0, u32::MAX] {
                is_decided(&context, &question, draw);
            }
        }
    }
});

fn leaves_no_trace(context: &pb::RetryContext, refusal: Refusal) {
    let retryd = retryd(0);
    let before = shown(&retryd, context);
    assert_eq!(retryd.decide(context), Err(refusal.clone()));
    assert_eq!(shown(&retryd, context), before);
    let told = pb::Refusal::from(refusal);
    assert_eq!(told.grpc_code, 3);
    assert!(!told.violations.is_empty());
    assert!(told.violations.iter().all(|v| !v.field.is_empty() && !v.description.is_empty()));
}

fn is_decided(context: &pb::RetryContext, question: &Question<'_>, draw: u32) {
    let retryd = retryd(draw);
    let before = shown(&retryd, context);
    let rehearsal = pb::RetryContext { dry_run: true, ..context.clone() };
    let decision = retryd.decide(&rehearsal).expect("what was parsed is decided");
    assert_eq!(shown(&retryd, context), before, "a dry run wrote something");
    assert_eq!(retryd.decide(context), Ok(decision.clone()), "a dry run said something else");
    keeps_the_laws(question, &decision);
    if context.dry_run {
        assert_eq!(shown(&retryd, context), before, "a dry run wrote something");
    } else if context.usage.is_none() && context.call_id.is_empty() {
        let more = (1..ASKS).map(|_| retryd.decide(context).expect("decided before"));
        let granted = more.chain([decision]).filter(is_retry).count();
        for budget in before.iter().filter(|budget| budget.budget != "throttle") {
            let available = usize::try_from(budget.retries_available).expect("a small budget");
            assert!(granted <= available, "{granted} granted of {budget:?}");
        }
    }
}

fn keeps_the_laws(question: &Question<'_>, decision: &pb::Decision) {
    let policy = POLICIES.find(question.tenant, question.operation);
    let rules = &policy.rules;
    assert_eq!(decision.policy, *policy.name);
    assert_eq!(decision.policy_revision, POLICIES.revision());
    assert_eq!(is_retry(decision), decision.reason() == pb::Reason::Retryable);
    assert_ne!(decision.verdict(), pb::Verdict::Unspecified);
    assert_ne!(decision.reason(), pb::Reason::Unspecified);
    assert_eq!(decision.delay.is_some(), is_retry(decision));
    if let Some(delay) = decision.delay {
        assert!(question.attempts_made < rules.attempts_max);
        assert!(question.body_replayable && !question.first_byte_delivered);
        assert!(!question.runtime_draining);
        let delay_ms = ms(delay);
        assert!(1 <= delay_ms);
        if let Some(remaining_ms) = question.remaining_ms {
            assert!(delay_ms + rules.min_attempt_budget_ms <= remaining_ms);
        }
        let hint_ms = match question.hint.wait {
            Wait::Forbidden => panic!("retried against the server's word"),
            Wait::AtLeast(hint_ms) => hint_ms,
            Wait::Unsaid => 0,
        };
        assert!(hint_ms <= delay_ms && hint_ms <= rules.hint_ms_max);
        assert!(delay_ms <= hint_ms + rules.backoff.max_ms.max(1));
    }
    assert_eq!(decision.steps.is_empty(), !question.explain);
    assert_eq!(decision.detail.is_empty(), !question.explain);
    if let Some((last, earlier)) = decision.steps.split_last() {
        assert_eq!(last.rule, decision.reason);
        assert_eq!(last.objected, !is_retry(decision));
        assert!(earlier.iter().all(|step| !step.objected));
    }
}

fn retryd(draw: u32) -> Retryd<Memory> {
    let metrics = Arc::<Metrics>::default();
    let store = Memory::new(POLICIES.budgets());
    let (clock, dice) = (Clock::standing_at(NOW), Dice::loaded(draw));
    let decider = Decider::new(POLICIES.clone(), store, clock, dice, Arc::clone(&metrics));
    Retryd::new(Arc::new(decider), metrics, CancellationToken::new())
}

/// What GetBudget shows to this caller, or to another one if the names are what is wrong.
fn shown(retryd: &Retryd<Memory>, context: &pb::RetryContext) -> Vec<pb::BudgetState> {
    let of = |tenant: &str, operation: &str| {
        let (tenant, operation) = (tenant.to_owned(), operation.to_owned());
        retryd.get_budget(&pb::GetBudgetRequest { tenant, operation })
    };
    let shown = of(&context.tenant, &context.operation).or_else(|_| of("tenant", "operation"));
    shown.expect("these names are right").budgets
}

fn is_retry(decision: &pb::Decision) -> bool {
    decision.verdict() == pb::Verdict::Retry
}

fn ms(duration: pbjson_types::Duration) -> u64 {
    let nanos = i128::from(duration.seconds) * 1_000_000_000 + i128::from(duration.nanos);
    assert_eq!(nanos % 1_000_000, 0, "a delay is whole milliseconds");
    u64::try_from(nanos / 1_000_000).expect("a delay is not negative")
}
