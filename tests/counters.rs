//! What is counted, and that it is counted once.
#![allow(clippy::unwrap_used, reason = "a test may")]
use std::{sync::Arc, time::Duration};

use retryd::{
    admin::metrics::Metrics,
    budget::Memory,
    clock::{Clock, Dice, Now},
    decider::Decider,
    policy::Policies,
    server::Deadline,
    service::Retryd,
    wire::pb::{self, retry_service_server::RetryService},
};
use tokio_util::sync::CancellationToken;
use tonic::{Code, Request};

fn service() -> (Retryd<Memory>, Clock, Arc<Metrics>) {
    let policies = Policies::embedded();
    let clock = Clock::standing_at(Now { monotonic_ms: 1_000, unix_ms: 1_767_225_600_000 });
    let metrics = Arc::new(Metrics::new());
    let store = Memory::new(policies.budgets());
    let decider =
        Decider::new(policies, store, clock.clone(), Dice::loaded(0), Arc::clone(&metrics));
    let retryd = Retryd::new(Arc::new(decider), Arc::clone(&metrics), CancellationToken::new());
    (retryd, clock, metrics)
}

fn context(usage: Option<pb::Usage>) -> pb::RetryContext {
    pb::RetryContext {
        tenant: "t".to_owned(),
        operation: "op".to_owned(),
        attempts_made: 1,
        body_replayable: true,
        failure: Some(pb::Failure { category: pb::FailureCategory::Connect.into(), status: None }),
        usage,
        ..Default::default()
    }
}

#[test]
fn a_usage_is_counted_where_it_is_booked() {
    let (retryd, _, metrics) = service();
    let usage = Some(pb::Usage { requests: 5, ..Default::default() });
    let entry = |tenant: &str| pb::TenantUsage {
        tenant: tenant.to_owned(),
        operation: "op".to_owned(),
        usage,
    };

    retryd.decide(&context(None)).unwrap();
    retryd.decide(&pb::RetryContext { dry_run: true, ..context(usage) }).unwrap();
    assert_eq!(metrics.usage_reports.get(), 0);
    retryd.decide(&context(usage)).unwrap();
    assert_eq!(metrics.usage_reports.get(), 1);
    let report = pb::ReportUsageRequest {
        usage: vec![entry("a"), entry(""), entry("b")],
        ..Default::default()
    };
    retryd.report_usage(&report).unwrap();
    assert_eq!(metrics.usage_reports.get(), 3);
}

#[tokio::test]
async fn a_question_that_comes_after_its_deadline_is_counted_as_such() {
    let (retryd, clock, metrics) = service();
    let mut request = Request::new(context(None));
    request.extensions_mut().insert(Deadline::after(Duration::from_millis(20), clock.now()));
    clock.advance(Duration::from_millis(21));

    let status = RetryService::decide(&retryd, request).await.unwrap_err();
    assert_eq!(status.code(), Code::DeadlineExceeded);
    assert_eq!(metrics.deadlines_exceeded.get(), 1);
}
