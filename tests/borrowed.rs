//! A decision written from borrowed names is the decision that the generated type writes.
#![allow(clippy::unwrap_used, reason = "tests")]
use std::sync::Arc;

use bytes::BytesMut;
use prost::Message as _;
use retryd::admin::metrics::Metrics;
use retryd::budget::Memory;
use retryd::clock::{Clock, Dice};
use retryd::decider::Decider;
use retryd::policy::Policies;
use retryd::wire::borrowed::{Borrowed, Streamed};
use retryd::wire::codec::ToWire;
use retryd::wire::context::{self, Oddities};
use retryd::wire::{decision, pb};

const FILE: &str = r#"
version: 1
budgets:
  - {name: few, scope: tenant, ratio: {percent: 0, min_retry_rate: {count: 1, interval: 1h}}}
policies:
  - {name: watched, match: {tenant: "watched-*"}, mode: shadow, budgets: [few]}
  - {name: unbudgeted, match: {tenant: "free-*"}}
  - {name: last, budgets: [few]}
"#;

#[test]
fn borrowed_and_owned_write_the_same_decision() {
    let policies = Policies::parse("file", FILE.as_bytes()).unwrap();
    let store = Memory::new(policies.budgets());
    let metrics = Arc::new(Metrics::new());
    let decider = Decider::new(policies, store, Clock::system(), Dice::fair(), metrics);

    let mut reasons = Vec::new();
    for tenant in ["watched-1", "free-1", "t"] {
        for http_status in [503, 503, 400] {
            for explain in [false, true] {
                let question = question(tenant, http_status, explain);
                let question = context::parse(&question, 0, &mut Oddities::default()).unwrap();
                decider.decide(&decider.in_force(), &question, decider.now(), |answer| {
                    let owned = decision::write(answer, explain);
                    let borrowed = bytes(&Borrowed::of(answer, explain));
                    assert_eq!(pb::Decision::decode(&*borrowed).unwrap(), owned);

                    reasons.push((owned.reason(), owned.shadow, owned.budget.is_some()));
                    let outcome = Some(pb::streamed_decision::Outcome::Decision(owned));
                    let streamed = bytes(&Streamed(Borrowed::of(answer, explain)));
                    let streamed = pb::StreamedDecision::decode(&*streamed).unwrap();
                    assert_eq!(streamed, pb::StreamedDecision { outcome });
                });
            }
        }
    }
    for (reason, is_shadow, is_budgeted) in [
        (pb::Reason::Retryable, true, true),
        (pb::Reason::Retryable, false, false),
        (pb::Reason::Retryable, false, true),
        (pb::Reason::BudgetExhausted, false, true),
        (pb::Reason::PermanentFailure, false, false),
    ] {
        assert!(reasons.contains(&(reason, is_shadow, is_budgeted)), "{reasons:?}");
    }
}

fn question(tenant: &str, http_status: u32, explain: bool) -> pb::RetryContext {
    let status = Some(pb::failure::Status::HttpStatus(http_status));
    pb::RetryContext {
        tenant: tenant.to_owned(),
        operation: "op".to_owned(),
        attempts_made: 1,
        body_replayable: true,
        idempotency: Some(pb::Idempotency { declared: true, ..Default::default() }),
        failure: Some(pb::Failure { category: 0, status }),
        explain,
        ..Default::default()
    }
}

/// Exactly as many as were announced.
fn bytes(message: &impl ToWire) -> BytesMut {
    let mut bytes = BytesMut::new();
    message.encode(&mut bytes);
    assert_eq!(bytes.len(), message.encoded_len());
    bytes
}
