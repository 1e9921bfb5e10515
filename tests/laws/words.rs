//! What an explanation says to people, and the names of failures.
use std::{collections::HashSet, fs, path::Path};

use retryd::engine::{
    Categories, Category, Coverage, Evidence, Failure, Gauge, GrpcCode, GrpcCodes, Hint,
    HttpStatuses, Idempotency, Jitter, Look, Purse, Rule, Wait,
};

use super::grid::http;

#[track_caller]
fn says(look: Look<'_>, words: &str) {
    assert_eq!(look.to_string(), words, "{look:?}");
}

fn hint(wait: Wait) -> Hint {
    Hint { wait, malformed: false }
}

#[test]
fn a_blocker_says_what_it_read() {
    let purse = Purse { budget: "per-tenant", available: 4 };
    for (rule, gauge, words) in [
        (Rule::AttemptsExhausted, Gauge::UsedUp { used: 2, limit: 3 }, "attempts_made 2 of max 3"),
        (Rule::BudgetExhausted, Gauge::Budget(Coverage::Unbudgeted), "no budgets"),
        (
            Rule::BudgetExhausted,
            Gauge::Budget(Coverage::Covered(purse)),
            "budget per-tenant has 4 retries available",
        ),
        (
            Rule::BudgetExhausted,
            Gauge::Budget(Coverage::Remembered(purse)),
            "paid when asked before; budget per-tenant has 4 retries available",
        ),
        (
            Rule::BudgetExhausted,
            Gauge::Budget(Coverage::Exhausted(purse)),
            "budget per-tenant would not grant one more retry",
        ),
        (Rule::BodyNotReplayable, Gauge::Flag(true), "body_replayable false"),
        (Rule::BodyNotReplayable, Gauge::Flag(false), "body_replayable true"),
        (Rule::FirstByteDelivered, Gauge::Flag(true), "first_byte_delivered true"),
        (Rule::RuntimeDraining, Gauge::Flag(false), "runtime_draining false"),
        (
            Rule::DeadlineTooNear,
            Gauge::Left { have_ms: None, need_ms: 50 },
            "no deadline, min_attempt_budget 50 ms",
        ),
        (
            Rule::DeadlineTooNear,
            Gauge::Left { have_ms: Some(40), need_ms: 50 },
            "remaining 40 ms, min_attempt_budget 50 ms",
        ),
    ] {
        says(Look::Gauge(rule, gauge), words);
    }
}

#[test]
fn a_failure_is_called_what_the_contract_calls_it() {
    let permanence = |failure, permanent| Look::Permanence { failure, permanent };
    says(permanence(http(503), false), "HTTP 503, not permanent");
    let cancelled = Failure::Grpc(GrpcCode::Cancelled);
    says(permanence(cancelled, true), "gRPC CANCELLED, permanent");
    let reset = Failure::Category(Category::ConnectionReset);
    says(permanence(reset, false), "CONNECTION_RESET, not permanent");

    let listed = |listed, wait| Look::Listed { failure: http(503), listed, hint: hint(wait) };
    says(listed(true, Wait::AtLeast(7)), "HTTP 503, in retry_on, hint 7 ms");
    says(listed(false, Wait::Unsaid), "HTTP 503, not in retry_on, no hint");
}

#[test]
fn what_is_known_about_a_second_run_is_told_in_full() {
    let idempotency = Idempotency { declared: false, key_registered: true, key_sent: false };
    for (evidence, name) in [
        (Evidence::NotSent, "NOT_SENT"),
        (Evidence::Refused, "REFUSED"),
        (Evidence::MaybeProcessed, "MAYBE_PROCESSED"),
        (Evidence::Processed, "PROCESSED"),
    ] {
        let facts = "declared false, key_registered true, key_sent false";
        says(Look::Repeat(evidence, idempotency), &format!("evidence {name}, {facts}"));
    }
}

#[test]
fn a_hint_says_what_was_ignored_and_what_it_is_held_against() {
    says(Look::Hint(hint(Wait::Forbidden)), "pushback forbids");
    let malformed = Hint { wait: Wait::Unsaid, malformed: true };
    says(Look::Hint(malformed), "no hint (a malformed Retry-After was ignored)");
    let limit = Look::HintLimit { hint: hint(Wait::AtLeast(9)), limit_ms: 8 };
    says(limit, "hint 9 ms, max_hint 8 ms");
}

#[test]
fn only_a_hint_that_is_longer_than_the_backoff_is_spread() {
    let spread = " spread by the backoff";
    for (jitter, hint_ms, words) in [
        (Jitter::Full, 99, ""),
        (Jitter::Full, 100, ""),
        (Jitter::Full, 101, spread),
        (Jitter::Equal, 101, spread),
        (Jitter::None, 101, ""),
    ] {
        let fit = |fits_ms_max| Look::Fit {
            backoff_ms: 100,
            jitter,
            hint: hint(Wait::AtLeast(hint_ms)),
            fits_ms_max,
        };
        let begin = format!("backoff 100 ms, hint {hint_ms} ms{words}");
        says(fit(None), &format!("{begin}, no deadline"));
        says(fit(Some(150)), &format!("{begin}, at most 150 ms fit"));
    }
}

#[test]
fn every_rule_has_a_sentence_of_its_own() {
    let sentences = Rule::ALL.map(Rule::sentence);
    assert!(sentences.iter().all(|sentence| sentence.ends_with('.') && sentence.contains(' ')));
    assert_eq!(HashSet::from(sentences).len(), Rule::ALL.len());
    assert_eq!(Rule::Retryable.sentence(), "No rule objected.");
}

#[test]
fn names_of_failures_are_those_of_the_contract() {
    let contract = Path::new(env!("CARGO_MANIFEST_DIR")).join("proto/retryd/v1/retryd.proto");
    let contract = fs::read_to_string(contract).unwrap();
    for category in Category::ALL {
        let value = format!(" FAILURE_CATEGORY_{} = {};", category.name(), category as u8);
        assert!(contract.contains(&value), "{value}");
    }
    let unknown = Category::UnknownPermanent.name();
    assert_eq!(unknown, "a permanent category that retryd does not know");

    // Of the gRPC status code documentation, from 1 on.
    let names = "CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS \
                 PERMISSION_DENIED RESOURCE_EXHAUSTED FAILED_PRECONDITION ABORTED OUT_OF_RANGE \
                 UNIMPLEMENTED INTERNAL UNAVAILABLE DATA_LOSS UNAUTHENTICATED";
    assert_eq!(GrpcCode::ALL.map(GrpcCode::name).join(" "), names);
}

#[test]
fn what_is_listed_twice_is_listed() {
    let Failure::Http(status) = http(503) else { panic!("a status") };
    assert!(HttpStatuses::of(&[503, 503]).contains(status));
    let code = GrpcCode::Unavailable;
    assert!(GrpcCodes::of(&[code, code]).contains(code));
    let category = Category::Connect;
    assert!(Categories::of(&[category, category]).contains(category));
}
