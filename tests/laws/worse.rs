//! Law: worsening any one fact never turns a no into a yes.
use retryd::engine::{
    Backoff, Coverage, Evidence, Facts, Failure, GrpcCode, Hint, Idempotency, Jitter, Judged,
    Purse, RetryOn, Rules, Statuses, Wait, decide,
};

use super::grid::{Grid, http};

#[test]
fn a_worse_fact_never_turns_a_no_into_a_yes() {
    Grid::coarse().each(|_, f| {
        if decide(f).is_ok() {
            return;
        }
        for (fact, worse) in worse(f) {
            assert!(decide(&worse).is_err(), "worse {fact}: {f:?} -> {worse:?}");
        }
    });
}

/// The facts with one of them worse, for every fact and every way in which it can be.
fn worse<'a>(f: &Facts<'a>) -> [(&'static str, Facts<'a>); 17] {
    let exhausted = Coverage::Exhausted(Purse { budget: "per-tenant", available: 0 });
    let Idempotency { declared, key_registered, key_sent } = f.idempotency;
    let idempotency = |declared, key_registered, key_sent| Facts {
        idempotency: Idempotency { declared, key_registered, key_sent },
        ..*f
    };
    let failure = |failure| Facts { failure: Judged::by(f.rules, failure), ..*f };
    let evidence = |evidence| Facts { evidence: Some(evidence), ..*f };
    [
        ("attempts_made", Facts { attempts_made: f.attempts_made + 1, ..*f }),
        ("budget", Facts { budget: exhausted, ..*f }),
        ("body_replayable", Facts { body_replayable: false, ..*f }),
        ("first_byte_delivered", Facts { first_byte_delivered: true, ..*f }),
        ("runtime_draining", Facts { runtime_draining: true, ..*f }),
        ("remaining: less", Facts { remaining_ms: Some(shorter_ms(f.remaining_ms)), ..*f }),
        ("remaining: none", Facts { remaining_ms: Some(0), ..*f }),
        ("failure: permanent", failure(Failure::Grpc(GrpcCode::DataLoss))),
        ("failure: not listed", failure(http(404))),
        ("evidence: maybe", evidence(Evidence::MaybeProcessed)),
        ("evidence: processed", evidence(Evidence::Processed)),
        ("declared", idempotency(false, key_registered, key_sent)),
        ("key_registered", idempotency(declared, false, key_sent)),
        ("key_sent", idempotency(declared, key_registered, false)),
        ("idempotency", idempotency(false, false, false)),
        ("hint: forbidden", Facts { hint: Hint { wait: Wait::Forbidden, ..f.hint }, ..*f }),
        ("draw", Facts { draw: u32::MAX, ..*f }),
    ]
}

/// A deadline that is nearer: any deadline is nearer than none.
fn shorter_ms(remaining_ms: Option<u64>) -> u64 {
    remaining_ms.map_or(86_400_000, |ms| ms.saturating_sub(1))
}

#[test]
fn a_stricter_policy_never_turns_a_no_into_a_yes() {
    Grid::coarse().each(|_, f| {
        if decide(f).is_ok() {
            return;
        }
        for rules in stricter(f.rules) {
            let failure = Judged::by(&rules, f.failure.failure());
            let strict = Facts { rules: &rules, failure, ..*f };
            assert!(decide(&strict).is_err(), "{f:?} -> {strict:?}");
        }
    });
}

/// The rules with one of them stricter, for every rule.
fn stricter(rules: &Rules) -> [Rules; 8] {
    let nothing = Statuses { http: Default::default(), grpc: Default::default() };
    let backoff = |backoff| Rules { backoff, ..*rules };
    let longer = rules.backoff;
    [
        Rules { attempts_max: rules.attempts_max - 1, ..*rules },
        Rules { min_attempt_budget_ms: rules.min_attempt_budget_ms + 1, ..*rules },
        Rules { hint_ms_max: rules.hint_ms_max - 1, ..*rules },
        Rules { retry_on: RetryOn { statuses: nothing, categories: Default::default() }, ..*rules },
        Rules { refusal_statuses: nothing, ..*rules },
        backoff(Backoff { base_ms: longer.base_ms + 1, ..longer }),
        backoff(Backoff { multiplier_thousandths: 2 * longer.multiplier_thousandths, ..longer }),
        backoff(Backoff { jitter: Jitter::None, ..longer }),
    ]
}
