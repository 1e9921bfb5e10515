//! Shadow policies and the real ones: no answer changes, whatever becomes of the shadow.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]
use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use retryd::admin::metrics::{Format, Metrics};
use retryd::budget::{Ask, Budget, Grant, Holder, Listed, Memory, Occupancy, State, Store, Usage};
use retryd::clock::{Clock, Dice, Now};
use retryd::decider::Decider;
use retryd::policy::Policies;
use retryd::service::Retryd;
use retryd::shadow::Shadow;
use retryd::wire::pb;
use tokio_util::sync::CancellationToken;

/// Balances in memory, until so many accounts were opened: then it panics.
struct Frail {
    memory: Memory,
    left: AtomicU32,
}

impl Frail {
    fn opened(&self) {
        let left =
            self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
        assert!(left.is_ok(), "the store is broken");
    }
}

impl Store for Frail {
    type Account<'a> = <Memory as Store>::Account<'a>;

    fn open<'a>(&'a self, ask: &Ask<'a>, paid: Option<&Grant>) -> Self::Account<'a> {
        self.opened();
        self.memory.open(ask, paid)
    }

    fn deposit<'a>(
        &'a self,
        holder: Holder<'a>,
        usage: &'a Usage,
        now_ms: u64,
    ) -> Option<State<'a>> {
        self.opened();
        self.memory.deposit(holder, usage, now_ms)
    }

    fn acquire<'a>(
        &'a self,
        holder: Holder<'a>,
        wanted: u32,
        now_ms: u64,
    ) -> (Grant, Option<State<'a>>) {
        self.opened();
        self.memory.acquire(holder, wanted, now_ms)
    }

    fn give_back(&self, holder: Holder<'_>, grant: &mut Grant, retries: u32, now_ms: u64) -> u32 {
        self.memory.give_back(holder, grant, retries, now_ms)
    }

    fn look<'a>(&'a self, holder: Holder<'a>, now_ms: u64) -> Vec<State<'a>> {
        self.memory.look(holder, now_ms)
    }

    fn list(
        &self,
        after: Option<&Listed>,
        count: usize,
        now_ms: u64,
        shows: &dyn Fn(&str) -> bool,
    ) -> Vec<Listed> {
        self.memory.list(after, count, now_ms, shows)
    }

    fn succeeded_by(&self, budgets: &[Budget], now_ms: u64) -> Frail {
        let left = self.left.load(Ordering::Relaxed).into();
        Frail { memory: self.memory.succeeded_by(budgets, now_ms), left }
    }

    fn settle(&self) {
        self.memory.settle();
    }

    fn occupancy(&self) -> Occupancy {
        self.memory.occupancy()
    }
}

const ACTIVE: &str = "version: 1
budgets: [{name: b, scope: tenant, ratio: {min_retry_rate: {count: 3, interval: 1s}}}]
policies: [{name: all, budgets: [b]}]
";
const STRICT: &str = "version: 1
budgets: [{name: b, scope: tenant, ratio: {min_retry_rate: {count: 1, interval: 1s}}}]
policies: [{name: strict, budgets: [b], max_attempts: 2}]
";

struct Service {
    retryd: Retryd<Frail>,
    metrics: Arc<Metrics>,
    clock: Clock,
}

/// The shadow's store holds so many accounts; without a number, there is no shadow.
fn service(shadow_opens: Option<u32>) -> Service {
    let clock = Clock::standing_at(Now { monotonic_ms: 0, unix_ms: 0 });
    let decider = |text: &str, opens: u32, metrics: Arc<Metrics>| {
        let policies = Policies::parse("shadow.yaml", text.as_bytes()).unwrap();
        let store = Frail { memory: Memory::new(policies.budgets()), left: opens.into() };
        Arc::new(Decider::new(policies, store, clock.clone(), Dice::loaded(1 << 31), metrics))
    };
    let metrics = Arc::new(Metrics::new());
    let real = decider(ACTIVE, u32::MAX, Arc::clone(&metrics));
    let retryd = Retryd::new(real, Arc::clone(&metrics), CancellationToken::new());
    let shadow = shadow_opens.map(|opens| {
        let apart = Arc::new(metrics.of_shadow());
        Shadow::new(decider(STRICT, opens, apart), metrics.shadowed())
    });
    Service { retryd: retryd.shadowed(shadow), metrics, clock }
}

impl Service {
    fn metric(&self, line: &str) -> u64 {
        let text = self.metrics.render(Format::OpenMetrics).unwrap();
        let found = text.lines().find_map(|found| found.strip_prefix(line));
        found.unwrap_or_else(|| panic!("no {line} in {text}")).trim().parse().unwrap()
    }

    /// A history of questions, reports and leases, and everything that was answered.
    fn answers(&self) -> Vec<String> {
        let mut answers = Vec::new();
        for turn in 0..400_u32 {
            self.clock.advance(Duration::from_millis(u64::from(turn % 7) * 40));
            let tenant = format!("t{}", turn % 3);
            let answer = match turn % 11 {
                3 => {
                    let usage = Some(pb::Usage { requests: 5, ..Default::default() });
                    let operation = "op".to_owned();
                    let entry = pb::TenantUsage { tenant, operation, usage };
                    let report =
                        pb::ReportUsageRequest { usage: vec![entry], ..Default::default() };
                    format!("{:?}", self.retryd.report_usage(&report))
                }
                7 => {
                    let operation = "op".to_owned();
                    let wanted = pb::AcquireRetriesRequest { tenant, operation, wanted: 2 };
                    let acquired = self.retryd.acquire_retries(&wanted).unwrap();
                    // Its name is of the moment.
                    format!("{} {:?}", acquired.granted, acquired.budget)
                }
                _ => format!("{:?}", self.retryd.decide(&context(&tenant, turn))),
            };
            answers.push(answer);
        }
        answers
    }
}

fn context(tenant: &str, turn: u32) -> pb::RetryContext {
    pb::RetryContext {
        tenant: tenant.to_owned(),
        operation: "op".to_owned(),
        attempts_made: 1 + turn % 3,
        body_replayable: true,
        failure: Some(pb::Failure { category: 3, status: None }),
        call_id: if turn.is_multiple_of(2) { format!("c{}", turn % 5) } else { String::new() },
        dry_run: turn.is_multiple_of(5),
        explain: turn.is_multiple_of(4),
        ..Default::default()
    }
}

#[test]
fn no_answer_changes_and_no_real_budget_pays() {
    let (alone, shadowed) = (service(None), service(Some(u32::MAX)));
    assert_eq!(alone.answers(), shadowed.answers());
    let differs = shadowed.metric("retryd_shadow_decisions_total{outcome=\"differs\"}");
    let same = shadowed.metric("retryd_shadow_decisions_total{outcome=\"same\"}");
    assert!(20 < differs && 20 < same, "{differs} and {same}");
    for line in [
        "retryd_usage_reports_total",
        "retryd_decisions_total{verdict=\"RETRY\",reason=\"RETRYABLE\",policy=\"all\"}",
    ] {
        assert_eq!(alone.metric(line), shadowed.metric(line), "{line}");
    }
    assert!(
        !alone
            .metrics
            .render(Format::OpenMetrics)
            .unwrap()
            .contains("retryd_shadow_decisions_total")
    );
}

#[test]
fn a_shadow_that_panics_is_off_and_no_answer_changes() {
    let alone = service(None).answers();
    for opens in [0, 1, 7, 100] {
        let shadowed = service(Some(opens));
        assert_eq!(alone, shadowed.answers(), "{opens}");
        assert_eq!(shadowed.metric("retryd_shadow_panics_total"), 1);
        let differs = shadowed.metric("retryd_shadow_decisions_total{outcome=\"differs\"}");
        let same = shadowed.metric("retryd_shadow_decisions_total{outcome=\"same\"}");
        assert!(differs + same <= u64::from(opens), "it was asked after it had panicked");
    }
}

#[test]
fn reasons_bound_the_series() {
    let shadowed = service(Some(u32::MAX));
    shadowed.answers();
    let text = shadowed.metrics.render(Format::OpenMetrics).unwrap();
    let series = text.lines().filter(|line| line.starts_with("retryd_shadow_differences_total"));
    assert!((1..=15 * 15).contains(&series.count()));
    assert!(!text.contains("t0"), "a name of a tenant is in the metrics");
}
