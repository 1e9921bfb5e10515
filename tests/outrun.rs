//! A store that looks and takes in two steps, and a caller that was too slow.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed"
)]
use std::sync::Arc;

use retryd::admin::metrics::Metrics;
use retryd::budget::{
    Account, Ask, Budget, Grant, Holder, Listed, Occupancy, Receipt, State, Store, Usage,
};
use retryd::clock::{Clock, Dice};
use retryd::decider::Decider;
use retryd::engine::{Coverage, Purse};
use retryd::policy::Policies;
use retryd::service::Retryd;
use retryd::wire::pb;
use tokio_util::sync::CancellationToken;

/// Covers whoever looks, and has nothing left for whoever charges.
struct Outrun;

const LAST: Purse<'_> = Purse { budget: "b", available: 1 };
const GONE: Purse<'_> = Purse { budget: "b", available: 0 };

impl Store for Outrun {
    type Account<'a> = Outrun;

    fn open<'a>(&'a self, _: &Ask<'a>, _: Option<&Grant>) -> Outrun {
        Outrun
    }

    fn deposit<'a>(&'a self, _: Holder<'a>, _: &'a Usage, _: u64) -> Option<State<'a>> {
        None
    }

    fn acquire<'a>(&'a self, _: Holder<'a>, _: u32, _: u64) -> (Grant, Option<State<'a>>) {
        (Grant::default(), None)
    }

    fn give_back(&self, _: Holder<'_>, _: &mut Grant, _: u32, _: u64) -> u32 {
        0
    }

    fn look<'a>(&'a self, _: Holder<'a>, _: u64) -> Vec<State<'a>> {
        Vec::new()
    }

    fn list(&self, _: Option<&Listed>, _: usize, _: u64, _: &dyn Fn(&str) -> bool) -> Vec<Listed> {
        Vec::new()
    }

    fn succeeded_by(&self, _: &[Budget], _: u64) -> Outrun {
        Outrun
    }

    fn settle(&self) {}

    fn occupancy(&self) -> Occupancy {
        Occupancy::default()
    }
}

impl Account<'_> for Outrun {
    fn coverage(&mut self) -> Coverage<'static> {
        Coverage::Covered(LAST)
    }

    fn charge(&mut self, _: Option<&mut Grant>) -> Result<Receipt, Coverage<'static>> {
        Err(Coverage::Exhausted(GONE))
    }

    fn scarcest(&self) -> Option<State<'static>> {
        None
    }

    fn is_degraded(&self) -> bool {
        true
    }
}

#[test]
fn the_answer_is_budget_exhausted_and_the_rule_is_named_again_at_the_end() {
    let metrics = Arc::new(Metrics::new());
    let policies = Policies::embedded();
    let decider =
        Decider::new(policies, Outrun, Clock::system(), Dice::fair(), Arc::clone(&metrics));
    let retryd = Retryd::new(Arc::new(decider), metrics, CancellationToken::new());
    let decision = retryd
        .decide(&pb::RetryContext {
            tenant: "t".to_owned(),
            operation: "op".to_owned(),
            attempts_made: 1,
            body_replayable: true,
            failure: Some(pb::Failure { category: 3, status: None }),
            explain: true,
            ..Default::default()
        })
        .unwrap();
    assert_eq!(decision.verdict(), pb::Verdict::DoNotRetry);
    assert_eq!(decision.reason(), pb::Reason::BudgetExhausted);
    assert_eq!(decision.delay, None);
    assert_eq!(decision.delay_source(), pb::DelaySource::Unspecified);
    assert!(decision.degraded);

    let rules: Vec<pb::Reason> = decision.steps.iter().map(pb::Step::rule).collect();
    assert_eq!(rules.len(), 15);
    assert_eq!(rules[1], pb::Reason::BudgetExhausted);
    assert_eq!(rules[13], pb::Reason::BackoffBeyondDeadline);
    assert_eq!(rules[14], pb::Reason::BudgetExhausted);
    let objected: Vec<bool> = decision.steps.iter().map(|step| step.objected).collect();
    assert_eq!(objected, [vec![false; 14], vec![true]].concat());
}
