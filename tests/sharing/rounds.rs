//! How often one balance is exchanged.
use std::sync::{Arc, Mutex};
use std::time::Duration;

use retryd::budget::shared::Ticker;
use retryd::budget::shared::exchange::Reply;
use retryd::budget::shared::pools::{Attendance, Errand, Failure, Fleet, Pools};
use retryd::budget::{
    Account as _, Ask, BALANCES_MAX, Budget, BudgetId, Holder, Limits, Memory, OnStoreLoss, Payers,
    Purpose, Scope, Sharing, Store as _, Usage, ratio,
};
use retryd::clock::{Clock, Dice};
use retryd::engine::Class;
use tokio_util::sync::CancellationToken;

/// Pools that are empty, and each time somebody asks while they answer.
struct Asked {
    store: Memory,
    payers: Payers,
    /// Exchanges of each round.
    rounds: Arc<Mutex<Vec<usize>>>,
}

impl Asked {
    fn ask(&self) {
        let holder = Holder { payers: &self.payers, tenant: "a", operation: "op", twins: false };
        let purpose = Purpose::Attempt(Class::Transient);
        let usage = &Usage::NOTHING;
        let ask = Ask { holder, usage, counts: true, purpose, dry_run: false, now_ms: 0 };
        let mut account = self.store.open(&ask, None);
        account.coverage();
        account.charge(None).ok();
    }
}

impl Pools for Asked {
    async fn attend(&mut self, _: Attendance) -> Result<Fleet, Failure> {
        self.rounds.lock().unwrap().push(0);
        Ok(Fleet { now_ms: 1_000_000, replicas: 1, emptied_ms: None })
    }

    async fn exchange(&mut self, errands: &[Errand]) -> Vec<Result<Reply, Failure>> {
        *self.rounds.lock().unwrap().last_mut().unwrap() += errands.len();
        self.ask();
        let nothing = Reply { now_ms: 1_000_000, active: 1, debt: 1, ..Reply::default() };
        errands.iter().map(|_| Ok(nothing.clone())).collect()
    }

    async fn leave(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_balance_is_exchanged_once_a_round_however_often_it_is_asked() {
    let floor = ratio::Floor { count: 10, interval_ms: 1_000 };
    let limits = Limits::Ratio(ratio::Limits { percent: 20, interval_ms: 10_000, floor });
    let (scope, on_store_loss) = (Scope::Tenant, OnStoreLoss::LocalShare);
    let budgets = [Budget { name: "b".into(), scope, limits, on_store_loss }];
    let sharing = Arc::new(Sharing::new(1));
    let rounds = Arc::<Mutex<Vec<usize>>>::default();
    let pools = Asked {
        store: Memory::shared(&budgets, BALANCES_MAX, Arc::clone(&sharing)),
        payers: Payers::new(&[BudgetId(0)], &budgets).unwrap(),
        rounds: Arc::clone(&rounds),
    };
    // It is charged by nobody, so it has to be made by a report.
    let usage = Usage { requests: 1, ..Usage::NOTHING };
    let holder = Holder { payers: &pools.payers, tenant: "a", operation: "op", twins: false };
    pools.store.deposit(holder, &usage, 0);
    let ticker = Ticker::new(pools, sharing, Clock::system(), Dice::loaded(0));
    let end = CancellationToken::new();
    let task = tokio::spawn(ticker.run(end.clone()));
    tokio::time::sleep(Duration::from_secs(2)).await;
    end.cancel();
    task.await.unwrap();
    let rounds = rounds.lock().unwrap();
    assert!(10 < rounds.len(), "{rounds:?}");
    // In the last one it gives everything back, too.
    let (_, before) = rounds.split_last().unwrap();
    assert!(before.iter().all(|exchanges| *exchanges <= 1), "{rounds:?}");
    assert!(8 < rounds.iter().sum::<usize>(), "it is asked all the time: {rounds:?}");
}
