//! A decision on a known balance allocates nothing.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
use allocation_counter::measure;
use retryd::budget::{
    Account, Ask, Budget, BudgetId, Holder, Limits, Memory, OnStoreLoss, Payers, Purpose, Scope,
    Store, Usage, bucket, ratio, throttle,
};
use retryd::engine::{self, Coverage, Facts, Failure, GrpcCode, Hint, Idempotency, Judged, Rules};

// As long as names can be: the joined key of both must still fit the stack.
const TENANT: &str = as_text(&[b't'; 128]);
const OPERATION: &str = as_text(&[b'o'; 256]);

const fn as_text(ascii: &[u8]) -> &str {
    match str::from_utf8(ascii) {
        Ok(text) => text,
        Err(_) => "",
    }
}

/// One budget of each model and scope.
fn budgets() -> Vec<Budget> {
    let floor = ratio::Floor { count: 1_000_000, interval_ms: 1_000 };
    let ratio = Limits::Ratio(ratio::Limits { percent: 20, interval_ms: 10_000, floor });
    let throttle =
        Limits::Throttle(throttle::Limits { tokens_max: 1_000, token_ratio_thousandths: 1_000 });
    let costs = bucket::Costs::AWS_2026;
    let bucket = Limits::TokenBucket(bucket::Limits { capacity: 1_000_000, costs });
    [
        ("r", Scope::Tenant, ratio),
        ("t", Scope::TenantOperation, throttle),
        ("b", Scope::Operation, bucket),
        ("g", Scope::Global, ratio),
    ]
    .map(|(name, scope, limits)| Budget {
        name: name.into(),
        scope,
        limits,
        on_store_loss: OnStoreLoss::default(),
    })
    .into()
}

/// Deposits, counts, looks, decides and charges. Returns whether a retry was granted and paid for.
fn decide(memory: &Memory, payers: &Payers, usage: &Usage) -> bool {
    let rules = Rules::default();
    let failure = Judged::by(&rules, Failure::Grpc(GrpcCode::Unavailable));
    let mut facts = Facts {
        rules: &rules,
        attempts_made: 1,
        budget: Coverage::Unbudgeted,
        body_replayable: true,
        first_byte_delivered: false,
        runtime_draining: false,
        remaining_ms: Some(2_000),
        failure,
        evidence: None,
        idempotency: Idempotency { declared: true, ..Idempotency::default() },
        hint: Hint::default(),
        draw: 7,
    };
    let ask = Ask {
        holder: Holder { payers, tenant: TENANT, operation: OPERATION, twins: false },
        usage,
        counts: facts.counts(),
        purpose: Purpose::Attempt(failure.class()),
        dry_run: false,
        now_ms: 5,
    };
    let mut account = memory.open(&ask, None);
    facts.budget = account.coverage();
    let granted = engine::decide(&facts).is_ok() && account.charge(None).is_ok();
    granted && account.scarcest().is_some()
}

#[test]
fn a_known_balance_costs_no_allocation() {
    let budgets = budgets();
    let memory = Memory::new(&budgets);
    let payers = Payers::new(&[0, 1, 2, 3].map(BudgetId), &budgets).unwrap();
    let usage = Usage { requests: 100, first_try_successes: 99, ..Usage::NOTHING };
    let first = measure(|| assert!(decide(&memory, &payers, &usage)));
    assert!(
        0 < first.count_total,
        "an unknown balance must cost something, or nothing is measured"
    );
    for usage in [&Usage::NOTHING, &usage] {
        let known = measure(|| assert!(decide(&memory, &payers, usage)));
        assert_eq!(known.count_total, 0, "{usage:?}");
    }
}
