//! A reload while others decide: each decision by one revision, and not one retry too many.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed"
)]
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use retryd::admin::metrics::Metrics;
use retryd::budget::Memory;
use retryd::clock::{Clock, Dice, Now};
use retryd::decider::Decider;
use retryd::policy::Policies;
use retryd::service::Retryd;
use retryd::wire::pb;
use tokio_util::sync::CancellationToken;

const START: Now = Now { monotonic_ms: 0, unix_ms: 0 };

/// The delay and the budget's size tell which revision decided.
fn policies(base: &str, count: u32) -> Policies {
    let text = format!(
        "{{version: 1, budgets: [{{name: b, scope: tenant, ratio: {{min_retry_rate: \
         {{count: {count}, interval: 1h}}}}}}], policies: [{{name: p, max_attempts: 9, \
         budgets: [b], backoff: {{base: {base}, jitter: none}}}}]}}"
    );
    Policies::parse("reloading.yaml", text.as_bytes()).unwrap()
}

struct Service {
    decider: Arc<Decider<Memory>>,
    retryd: Retryd<Memory>,
}

fn service(policies: Policies) -> Service {
    let (store, metrics) = (Memory::new(policies.budgets()), Arc::new(Metrics::new()));
    let clock = Clock::standing_at(START);
    let decider = Decider::new(policies, store, clock, Dice::loaded(0), Arc::clone(&metrics));
    let decider = Arc::new(decider);
    let retryd = Retryd::new(Arc::clone(&decider), metrics, CancellationToken::new());
    Service { decider, retryd }
}

fn context(tenant: &str) -> pb::RetryContext {
    pb::RetryContext {
        tenant: tenant.to_owned(),
        operation: "op".to_owned(),
        attempts_made: 1,
        body_replayable: true,
        failure: Some(pb::Failure { category: 3, status: None }),
        ..Default::default()
    }
}

impl Service {
    fn available(&self, tenant: &str) -> u32 {
        let asked = pb::GetBudgetRequest { tenant: tenant.to_owned(), operation: "op".to_owned() };
        self.retryd.get_budget(&asked).unwrap().budgets[0].retries_available
    }
}

#[test]
fn a_decision_is_made_by_exactly_one_revision() {
    let revisions = [policies("100ms", 1_000_000), policies("200ms", 500_000)];
    let of = |policies: &Policies, delay_ms| (policies.revision().to_owned(), delay_ms);
    let known = BTreeMap::from([of(&revisions[0], 100), of(&revisions[1], 200)]);
    let service = service(revisions[0].clone());
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for caller in 0..4 {
            let (service, known, done) = (&service, &known, &done);
            scope.spawn(move || {
                let mut seen = BTreeMap::<String, u32>::new();
                for turn in 0.. {
                    if done.load(Ordering::Relaxed) {
                        break;
                    }
                    // So that no budget ends, however long the reloads take.
                    let asked = context(&format!("tenant-{caller}-{}", turn / 10_000));
                    let decision = service.retryd.decide(&asked).unwrap();
                    let delay = decision.delay.unwrap();
                    let delay_ms = delay.seconds * 1_000 + i64::from(delay.nanos) / 1_000_000;
                    assert_eq!(known[&decision.policy_revision], delay_ms);
                    *seen.entry(decision.policy_revision).or_default() += 1;
                }
                assert_eq!(seen.len(), 2, "{seen:?}");
            });
        }
        for turn in 0..400 {
            service.decider.reload(revisions[(turn + 1) % 2].clone());
            thread::yield_now();
        }
        done.store(true, Ordering::Relaxed);
    });
}

/// To half its size and back, over and over: rounding loses something, and nothing is won.
#[test]
fn a_reload_in_the_middle_of_a_storm_never_grants_one_too_many() {
    let sizes = [policies("100ms", 1_000), policies("100ms", 500)];
    let service = service(sizes[0].clone());
    let granted = AtomicU32::new(0);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..1_000 {
                    let decision = service.retryd.decide(&context("t")).unwrap();
                    let is_granted = decision.verdict() == pb::Verdict::Retry;
                    granted.fetch_add(u32::from(is_granted), Ordering::Relaxed);
                }
            });
        }
        for turn in 0..200 {
            service.decider.reload(sizes[(turn + 1) % 2].clone());
        }
    });
    // What was granted while the budget was small counts double.
    let granted = granted.into_inner();
    assert!((500..=1_000).contains(&granted), "{granted}");
    // Half a retry that nobody could get is a whole one after the last reload, to twice the size.
    let left = service.available("t");
    assert!(left <= 1, "{left}");
}

/// Two revisions that name the same budgets in another order would wait for each other, if they
/// locked in the order of the file.
#[test]
fn budgets_may_change_their_places_in_the_file_while_others_decide() {
    let of = |names: [&str; 2]| {
        let [first, second] = names;
        let text = format!(
            "{{version: 1, budgets: [{{name: {first}, scope: global}}, {{name: {second}, scope: \
             global}}], policies: [{{name: p, budgets: [{first}, {second}]}}]}}"
        );
        Policies::parse("places.yaml", text.as_bytes()).unwrap()
    };
    let (finished, waited) = mpsc::channel();
    thread::spawn(move || {
        let revisions = [of(["a", "b"]), of(["b", "a"])];
        let service = service(revisions[0].clone());
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while !done.load(Ordering::Relaxed) {
                        service.retryd.decide(&context("t")).unwrap();
                    }
                });
            }
            for turn in 0..2_000 {
                service.decider.reload(revisions[(turn + 1) % 2].clone());
            }
            done.store(true, Ordering::Relaxed);
        });
        finished.send(()).unwrap();
    });
    assert_eq!(waited.recv_timeout(Duration::from_secs(60)), Ok(()));
}

#[test]
fn a_balance_that_nobody_asks_for_follows_every_reload() {
    let service = service(policies("100ms", 1_000));
    let half = |service: &Service, tenant| {
        (0..500)
            .for_each(|_| assert_eq!(service.retryd.decide(&context(tenant)).unwrap().reason, 1));
    };
    half(&service, "asked");
    half(&service, "left alone");
    for (count, available) in [(500, 250), (2_000, 1_000), (1_000, 500)] {
        service.decider.reload(policies("100ms", count));
        assert_eq!(service.available("asked"), available);
    }
    assert_eq!(service.available("left alone"), 500);
}

#[test]
fn balances_are_listed_page_by_page_while_others_are_made() {
    let service = service(policies("100ms", 3));
    for tenant in 0..10_000 {
        let context = context(&format!("tenant-{tenant:05}"));
        for _ in 0..tenant % 4 {
            service.retryd.decide(&context).unwrap();
        }
    }
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for tenant in 0.. {
                if done.load(Ordering::Relaxed) {
                    break;
                }
                service.retryd.decide(&context(&format!("z-{tenant}"))).unwrap();
            }
        });
        let (mut rows, mut page_token) = (Vec::new(), String::new());
        loop {
            let asked = pb::ListBudgetsRequest { page_size: 1_000, page_token };
            let page = service.retryd.list_budgets(&asked).unwrap();
            rows.extend(page.budgets);
            page_token = page.next_page_token;
            if page_token.is_empty() {
                break;
            }
        }
        done.store(true, Ordering::Relaxed);
        let place = |row: &pb::TenantBudget| {
            let state = row.budget.clone().unwrap();
            (state.retries_available, state.budget, row.tenant.clone())
        };
        assert!(rows.is_sorted_by_key(place));
        let mine: Vec<_> = rows.iter().filter(|row| row.tenant.starts_with("tenant-")).collect();
        // A fourth of them was never asked for, so it has no balance.
        assert_eq!(mine.len(), 7_500);
        assert_eq!(mine[0].tenant, "tenant-00003");
        assert_eq!(mine.iter().filter(|row| place(row).0 == 0).count(), 2_500);
    });
}
