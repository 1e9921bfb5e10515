//! One process of retryd: the real decider over the real balances, alone or in a fleet.
use std::ops::Range;
use std::sync::Arc;

use futures_util::FutureExt as _;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::pool;
use crate::admin::metrics::Metrics;
use crate::budget::shared::exchange::Reply;
use crate::budget::shared::pools::{Attendance, Errand, Failure, Fleet, Pools};
use crate::budget::shared::{Sharing, Ticker};
use crate::budget::{BALANCES_MAX, Memory};
use crate::clock::{Clock, Dice};
use crate::decider::Decider;
use crate::policy::Policies;

/// One process.
pub(super) struct Replica {
    pub(super) decider: Decider<Memory>,
    exchange: Option<Exchange>,
}

/// The exchange with the store, which takes no time here.
struct Exchange {
    ticker: Ticker<Reached>,
    /// How many more balances this round may exchange. `None`: the store did not answer.
    places: Option<usize>,
}

/// The store that a fleet shares.
#[derive(Clone)]
pub(super) struct SharedStore {
    pub(super) store: Arc<Mutex<pool::Store>>,
    /// When it does not answer. It has then lost all that it held.
    pub(super) lost_ms: Range<u64>,
}

impl Replica {
    /// A process of its own.
    pub(super) fn alone(policies: &Policies, clock: &Clock) -> Replica {
        let store = Memory::new(policies.budgets());
        Replica { decider: decider(policies, store, clock), exchange: None }
    }

    /// One of `replicas` that share `shared`, with the place `number` among them.
    pub(super) fn of_fleet(
        policies: &Policies,
        clock: &Clock,
        shared: &SharedStore,
        number: u32,
        replicas: u32,
    ) -> Replica {
        let sharing = Arc::new(Sharing::new(replicas));
        let store = Memory::shared(policies.budgets(), BALANCES_MAX, Arc::clone(&sharing));
        let (who, clock) = (format!("replica-{number}"), clock.clone());
        let reached = Reached { who, shared: shared.clone(), clock: clock.clone() };
        let ticker = Ticker::new(reached, sharing, clock.clone(), Dice::loaded(0));
        let exchange = Some(Exchange { ticker, places: None });
        Replica { decider: decider(policies, store, &clock), exchange }
    }

    /// Whether it shares its balances.
    pub(super) fn is_of_fleet(&self) -> bool {
        self.exchange.is_some()
    }

    /// Begins a round of exchanges.
    pub(super) fn begin_round(&mut self) {
        if let Some(exchange) = &mut self.exchange {
            let end = CancellationToken::new();
            // It waits for nothing but the store, which is at hand.
            exchange.places = exchange.ticker.exchange_now(&end).now_or_never().flatten();
        }
    }

    /// Exchanges what was touched for the first time since the round began.
    pub(super) fn greet_newcomers(&mut self) {
        if let Some(Exchange { ticker, places: Some(places) }) = &mut self.exchange {
            ticker.exchange_newcomers(places).now_or_never();
        }
    }
}

fn decider(policies: &Policies, store: Memory, clock: &Clock) -> Decider<Memory> {
    let metrics = Arc::new(Metrics::new());
    Decider::new(policies.clone(), store, clock.clone(), Dice::loaded(0), metrics)
}

/// The store as one replica reaches it.
struct Reached {
    who: String,
    shared: SharedStore,
    clock: Clock,
}

/// The store's time of day at the beginning: any, but not 0.
const EPOCH_MS: u64 = 1_700_000_000_000;

impl Reached {
    /// Calls the store, unless it is lost.
    fn call<R>(&self, call: impl FnOnce(&mut pool::Store, u64) -> R) -> Result<R, Failure> {
        let now_ms = self.clock.now().monotonic_ms;
        let mut store = self.shared.store.lock();
        if self.shared.lost_ms.contains(&now_ms) {
            *store = pool::Store::default();
            return Err(Failure::Unknown("the store is lost".to_owned()));
        }
        Ok(call(&mut store, EPOCH_MS + now_ms))
    }
}

impl Pools for Reached {
    async fn attend(&mut self, attendance: Attendance) -> Result<Fleet, Failure> {
        self.call(|store, time_ms| store.attend(time_ms, &self.who, attendance, false))
    }

    async fn exchange(&mut self, errands: &[Errand]) -> Vec<Result<Reply, Failure>> {
        let exchange =
            |errand| self.call(|store, time_ms| store.exchange(time_ms, &self.who, errand));
        errands.iter().map(exchange).collect()
    }

    async fn leave(&mut self) -> Result<(), Failure> {
        let last = Attendance { now_ms: 0, attended_ms: 0 };
        self.call(|store, time_ms| store.attend(time_ms, &self.who, last, true)).map(|_| ())
    }
}
