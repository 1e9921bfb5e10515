//! What a decision costs in process: `cargo bench`. Only ratios between the rows mean something.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a bench that cannot go on has failed"
)]
use std::hint::black_box;
use std::sync::Arc;

use divan::Bencher;
use prost::Message as _;
use retryd::admin::metrics::Metrics;
use retryd::budget::{
    Account as _, Ask, Budget, BudgetId, Holder, Limits, Memory, OnStoreLoss, Payers, Purpose,
    Scope, Store as _, Usage, bucket, ratio, throttle,
};
use retryd::clock::{Clock, Dice};
use retryd::decider::Decider;
use retryd::engine::{
    self, Class, Coverage, Facts, Failure, GrpcCode, Hint, Idempotency, Judged, Rules,
};
use retryd::policy::Policies;
use retryd::service::Retryd;
use retryd::wire::context::{self, Oddities};
use retryd::wire::pb;
use tokio_util::sync::CancellationToken;

fn main() {
    divan::main();
}

const RATIO: ratio::Limits = ratio::Limits {
    percent: 20,
    interval_ms: 10_000,
    floor: ratio::Floor { count: 1_000_000, interval_ms: 1_000 },
};
const THROTTLE: throttle::Limits =
    throttle::Limits { tokens_max: 10, token_ratio_thousandths: 100 };
const BUCKET: bucket::Limits = bucket::Limits { capacity: 500, costs: bucket::Costs::AWS_2026 };
const ONE: Usage = Usage { requests: 1, first_try_successes: 1, ..Usage::NOTHING };

fn facts(rules: &Rules) -> Facts<'_> {
    Facts {
        rules,
        attempts_made: 1,
        budget: Coverage::Unbudgeted,
        body_replayable: true,
        first_byte_delivered: false,
        runtime_draining: false,
        remaining_ms: Some(2_000),
        failure: Judged::by(rules, Failure::Grpc(GrpcCode::Unavailable)),
        evidence: None,
        idempotency: Idempotency { declared: true, ..Idempotency::default() },
        hint: Hint::default(),
        draw: 7,
    }
}

mod engine_alone {
    use super::*;

    #[divan::bench]
    fn all_fifteen_rules(bencher: Bencher<'_, '_>) {
        let rules = Rules::default();
        let facts = facts(&rules);
        bencher.bench_local(|| engine::decide(black_box(&facts)).is_ok());
    }

    #[divan::bench]
    fn judging_the_failure(bencher: Bencher<'_, '_>) {
        let rules = Rules::default();
        let failure = Failure::Grpc(GrpcCode::Unavailable);
        bencher.bench_local(|| Judged::by(black_box(&rules), black_box(failure)));
    }
}

mod balance {
    use super::*;

    #[divan::bench]
    fn ratio_deposit_and_withdraw(bencher: Bencher<'_, '_>) {
        let (mut balance, mut now_ms) = (ratio::Balance::fresh(&RATIO, 0), 0);
        bencher.bench_local(|| {
            now_ms += 1;
            balance = balance.deposit(&RATIO, &ONE, now_ms);
            balance = balance.withdraw(&RATIO, 1, now_ms).map_or(balance, |(next, _)| next);
        });
    }

    #[divan::bench]
    fn throttle_deposit_and_count(bencher: Bencher<'_, '_>) {
        let mut balance = throttle::Balance::fresh(&THROTTLE);
        bencher.bench_local(|| {
            balance = balance.deposit(&THROTTLE, &ONE).count_failure();
            balance.grants(&THROTTLE)
        });
    }

    #[divan::bench]
    fn token_bucket_deposit_and_withdraw(bencher: Bencher<'_, '_>) {
        let mut balance = bucket::Balance::fresh(&BUCKET);
        bencher.bench_local(|| {
            balance = balance.deposit(&BUCKET, &ONE);
            balance =
                balance.withdraw(&BUCKET, Class::Transient, 1).map_or(balance, |(next, _)| next);
        });
    }
}

mod store {
    use super::*;

    fn budget(limits: Limits) -> Budget {
        let on_store_loss = OnStoreLoss::default();
        Budget { name: "b".into(), scope: Scope::Tenant, limits, on_store_loss }
    }

    /// Opens, looks and charges, among `tenants` balances that exist.
    #[divan::bench(args = [1, 1_000, 100_000])]
    fn ratio_per_tenant(bencher: Bencher<'_, '_>, tenants: usize) {
        let budgets = [budget(Limits::Ratio(RATIO))];
        let (memory, payers) = (Memory::new(&budgets), Payers::new(&[BudgetId(0)], &budgets));
        let payers = payers.unwrap();
        let names: Vec<String> = (0..tenants).map(|place| format!("tenant-{place}")).collect();
        let pay = |tenant: &str, now_ms| {
            let ask = Ask {
                holder: Holder { payers: &payers, tenant, operation: "op", twins: false },
                usage: &Usage::NOTHING,
                counts: true,
                purpose: Purpose::Attempt(Class::Transient),
                dry_run: false,
                now_ms,
            };
            let mut account = memory.open(&ask, None);
            matches!(account.coverage(), Coverage::Covered(_)) && account.charge(None).is_ok()
        };
        names.iter().for_each(|tenant| assert!(pay(tenant, 0)));
        let (mut turn, mut now_ms) = (0, 0);
        bencher.bench_local(|| {
            now_ms += 1;
            // A stride that is no neighbour: each ask finds a cold balance where there are many.
            turn = (turn + 7_919) % tenants;
            pay(&names[turn], now_ms)
        });
    }
}

mod full_path {
    use super::*;

    fn decider() -> Decider<Memory> {
        // The embedded policy, with a floor that a bench cannot drain.
        let text = "{version: 1, budgets: [{name: b, scope: tenant, ratio: {min_retry_rate: \
                    {count: 1000000, interval: 1s}}}], policies: [{name: p, budgets: [b]}]}";
        let policies = Policies::parse("bench.yaml", text.as_bytes()).unwrap();
        let (store, metrics) = (Memory::new(policies.budgets()), Arc::new(Metrics::new()));
        Decider::new(policies, store, Clock::system(), Dice::fair(), metrics)
    }

    fn retryd() -> Retryd<Memory> {
        let metrics = Arc::new(Metrics::new());
        Retryd::new(Arc::new(decider()), metrics, CancellationToken::new())
    }

    fn asked() -> pb::RetryContext {
        pb::RetryContext {
            tenant: "shop-1".to_owned(),
            operation: "payments.v1.Payments/Charge".to_owned(),
            attempts_made: 1,
            body_replayable: true,
            idempotency: Some(pb::Idempotency { declared: true, ..Default::default() }),
            failure: Some(pb::Failure {
                status: Some(pb::failure::Status::GrpcCode(14)),
                ..Default::default()
            }),
            ..Default::default()
        }
    }

    #[divan::bench]
    fn parse(bencher: Bencher<'_, '_>) {
        let context = asked();
        bencher.bench_local(|| {
            context::parse(black_box(&context), 0, &mut Oddities::default()).is_ok()
        });
    }

    /// The policy is found, the balance looked at and charged, the rules asked.
    #[divan::bench]
    fn question_to_answer(bencher: Bencher<'_, '_>) {
        let (decider, context) = (decider(), asked());
        let question = context::parse(&context, 0, &mut Oddities::default()).unwrap();
        let now = decider.now();
        bencher.bench_local(|| {
            let in_force = decider.in_force();
            decider.decide(&in_force, black_box(&question), now, |it| it.outcome.reason())
        });
    }

    #[divan::bench]
    fn message_to_message(bencher: Bencher<'_, '_>) {
        let (retryd, context) = (retryd(), asked());
        bencher.bench_local(|| retryd.decide(black_box(&context)).unwrap());
    }

    #[divan::bench]
    fn bytes_to_bytes(bencher: Bencher<'_, '_>) {
        let (retryd, bytes) = (retryd(), asked().encode_to_vec());
        bencher.bench_local(|| {
            let context = pb::RetryContext::decode(black_box(&bytes[..])).unwrap();
            retryd.decide(&context).unwrap().encode_to_vec()
        });
    }

    #[divan::bench]
    fn bytes_to_bytes_explained(bencher: Bencher<'_, '_>) {
        let (retryd, bytes) =
            (retryd(), pb::RetryContext { explain: true, ..asked() }.encode_to_vec());
        bencher.bench_local(|| {
            let context = pb::RetryContext::decode(black_box(&bytes[..])).unwrap();
            retryd.decide(&context).unwrap().encode_to_vec()
        });
    }
}
