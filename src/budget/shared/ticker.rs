//! The task that exchanges shares with their pools, beside all decisions.
use std::{pin::pin, sync::Arc, time::Duration};

use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::pools::{Attendance, Failure, Fleet, Pools};
use super::rounds::{Rounds, Sent};
use super::sharing::Sharing;
use crate::clock::{Clock, Dice};

/// Between two rounds, 10 % more or less.
const TICK: Duration = Duration::from_millis(ROUND_MS);
const ROUND_MS: u64 = 100;
/// Balances that are touched for the first time are not kept waiting for the next round, but
/// gathered for so long.
const GATHER: Duration = Duration::from_millis(10);
/// Exchanges of one round at most, newcomers included, so that the store's load is bounded whatever is asked.
const EXCHANGES_MAX: usize = 1_000;
/// Exchanges that are sent together. They are answered well within the time that a call has; where
/// the store is too slow for so many, fewer are, or their answers would come too late every time.
const BATCH_MAX: usize = 100;
const BATCH_MIN: usize = 8;
/// Rounds without an answer until the store counts as lost.
const MISSED_MAX: u32 = 4;
/// How long the end of the process may take to give everything back.
const FAREWELL: Duration = Duration::from_millis(500);

/// Runs until it is told to end, and then gives everything back.
#[derive(Debug)]
pub struct Ticker<P> {
    pools: P,
    rounds: Rounds,
    batch: usize,
    dice: Dice,
    is_reached: watch::Sender<bool>,
    /// Rounds without an answer, and why the first of them had none.
    missed: u32,
    cause: String,
    /// Rounds in which every exchange has failed.
    refused: u32,
    emptied_ms: Option<u64>,
    /// When the store answered last, on this process's clock.
    reached_ms: u64,
    /// When it did in the fleet's time; 0: never.
    attended_ms: u64,
}

impl<P: Pools> Ticker<P> {
    /// A ticker for the balances of `sharing`.
    pub fn new(pools: P, sharing: Arc<Sharing>, clock: Clock, dice: Dice) -> Ticker<P> {
        Ticker {
            pools,
            batch: BATCH_MAX,
            dice,
            is_reached: watch::Sender::new(false),
            missed: 0,
            cause: String::new(),
            refused: 0,
            emptied_ms: None,
            reached_ms: clock.now().monotonic_ms,
            attended_ms: 0,
            rounds: Rounds::new(sharing, clock),
        }
    }

    /// Tells whether the store answers, again whenever that changes.
    pub fn reached(&self) -> watch::Receiver<bool> {
        self.is_reached.subscribe()
    }

    /// Exchanges until `end`, then gives back what is held.
    pub async fn run(mut self, end: CancellationToken) {
        while !end.is_cancelled() {
            self.round(&end).await;
        }
        if timeout(FAREWELL, self.give_everything_back()).await.is_err() {
            tracing::warn!("the store did not take back in time what this process held");
        }
    }

    /// Exchanges what is due, and what is new until the next round is due.
    async fn round(&mut self, end: &CancellationToken) {
        let begun = self.exchange_now(end).await;
        let (is_reached, mut places) = (begun.is_some(), begun.unwrap_or(EXCHANGES_MAX));
        let mut pause = pin!(sleep(self.pause()));
        let sharing = Arc::clone(&self.rounds.sharing);
        // Only waiting is cut short: whatever was sent is heard to its end.
        while 0 < places {
            tokio::select! {
                () = &mut pause => return,
                () = end.cancelled() => return,
                () = sharing.newcomer.notified(), if is_reached => {}
            }
            self.exchange_newcomers(&mut places).await;
            tokio::select! {
                () = &mut pause => return,
                () = end.cancelled() => return,
                () = sleep(GATHER) => {}
            }
        }
        tokio::select! {
            () = pause => {}
            () = end.cancelled() => {}
        }
    }

    /// Exchanges what is due, once and without a pause: for whoever keeps the time and calls this
    /// again, instead of [`run`](Ticker::run). How many more exchanges this round may make; `None`:
    /// the store does not answer.
    pub async fn exchange_now(&mut self, end: &CancellationToken) -> Option<usize> {
        if !self.attend().await {
            return None;
        }
        let mut places = EXCHANGES_MAX;
        self.exchange_due(&mut places, end).await;
        self.judge();
        Some(places)
    }

    /// Tells the fleet that this replica lives. Whether the store answers shows here.
    async fn attend(&mut self) -> bool {
        let attendance = Attendance { now_ms: self.rounds.claim(), attended_ms: self.attended_ms };
        match self.pools.attend(attendance).await {
            Ok(fleet) => {
                self.found(&fleet);
                true
            }
            Err(failure) => {
                self.missed(&failure);
                false
            }
        }
    }

    fn found(&mut self, fleet: &Fleet) {
        // Before the time: a step forward must not refill what stands in for the store.
        self.rounds.sharing.found(fleet);
        self.rounds.learn_time(fleet.now_ms);
        self.attended_ms = fleet.now_ms;
        self.reached_ms = self.rounds.clock.now().monotonic_ms;
        self.missed = 0;
        if let Some(emptied_ms) = fleet.emptied_ms
            && self.emptied_ms.replace(emptied_ms) != Some(emptied_ms)
        {
            tracing::warn!("the store has lost what it held: budgets begin at nothing and refill");
        }
    }

    /// Whether the store does more than to say that it is there. Each balance finds that out for
    /// itself; this is for those who look at the process.
    fn judge(&mut self) {
        let (answered, failure) = self.rounds.heard();
        if 0 < answered {
            self.refused = 0;
        } else if let Some(failure) = failure {
            self.refused = self.refused.saturating_add(1);
            if self.refused == MISSED_MAX {
                let error = failure.to_string();
                tracing::warn!(error, "the store is lost: it serves no balance");
            }
        }
        let serves = self.refused < MISSED_MAX;
        self.rounds.sharing.serves(serves);
        if self.is_reached.send_replace(serves) != serves && serves {
            let replicas = self.rounds.sharing.state().replicas;
            tracing::info!(replicas, "the store answers");
        }
    }

    fn missed(&mut self, failure: &Failure) {
        self.missed = self.missed.saturating_add(1);
        // The first cause: after that there is only no connection.
        if self.missed == 1 {
            self.cause = failure.to_string();
        }
        if self.missed == MISSED_MAX {
            let sharing = &self.rounds.sharing;
            sharing.lost(sharing.fleet_ms(self.reached_ms));
            self.is_reached.send_replace(false);
            let error = &*self.cause;
            tracing::warn!(error, "the store is lost: budgets go by what is here");
        }
    }

    async fn exchange_due(&mut self, places: &mut usize, end: &CancellationToken) {
        let begun_ms = self.rounds.clock.now().monotonic_ms;
        self.rounds.begin();
        // A slow store gets no more than the time of one round.
        while !end.is_cancelled()
            && self.rounds.clock.now().monotonic_ms.saturating_sub(begun_ms) < ROUND_MS
        {
            let sent = self.rounds.next(self.batch.min(*places));
            *places = places.saturating_sub(sent.len());
            if sent.is_empty() || !self.exchange(sent).await {
                break;
            }
        }
        self.rounds.end();
    }

    /// Exchanges what was touched for the first time since the round began.
    pub async fn exchange_newcomers(&mut self, places: &mut usize) {
        let sent = self.rounds.newcomers(self.batch.min(*places));
        *places = places.saturating_sub(sent.len());
        self.exchange(sent).await;
    }

    /// `false` if the store does not answer.
    async fn exchange(&mut self, sent: Vec<Sent>) -> bool {
        if sent.is_empty() {
            return true;
        }
        let answers = self.pools.exchange(&self.rounds.errands(&sent)).await;
        let are_known = self.rounds.receive(sent, answers);
        self.batch = if are_known {
            self.batch.saturating_add(self.batch / 8 + 1).min(BATCH_MAX)
        } else {
            (self.batch / 2).max(BATCH_MIN)
        };
        are_known
    }

    async fn give_everything_back(&mut self) {
        let mut sent = self.rounds.farewells();
        while !sent.is_empty() {
            let rest = sent.split_off(sent.len().min(self.batch));
            if !self.exchange(sent).await {
                return;
            }
            sent = rest;
        }
        self.pools.leave().await.ok();
    }

    fn pause(&self) -> Duration {
        TICK.mul_f64(0.9 + 0.2 * f64::from(self.dice.roll()) / f64::from(u32::MAX))
    }
}
