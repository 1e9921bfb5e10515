//! What one replica holds of a balance that it shares. Units and tokens move between it and the
//! pool, they are never copied.
use super::demand::Demand;
use super::exchange::{Sizes, Standing};
use super::local::Local;
use super::price::Price;
use super::reach::Reach;
use crate::budget::balance::{Debit, Purpose};
use crate::budget::window::Window;
use crate::budget::{
    Limits, OnStoreLoss, Usage, bucket, in_proportion, ratio, saturated, throttle,
};

/// One replica's part of one balance. Every time in it is the fleet's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::budget) struct Share {
    pub(super) own: Own,
    /// Leased tokens, and until when.
    pub(super) lease: u64,
    pub(super) lease_until_ms: u64,
    /// Tokens for the pool.
    pub(super) returns: u64,
    /// Tokens granted on credit that the pool does not know of for sure.
    pub(super) owes: u64,
    /// Stands in for the lease while the store is lost.
    pub(super) local: Option<Local>,
    pub(super) demand: Demand,
    /// Something came in or went out since the last exchange.
    pub(super) touched: bool,
    pub(super) seen: Option<Seen>,
    pub(super) sequence: u64,
    pub(super) reach: Reach,
    pub(super) now_ms: u64,
    /// Somebody will exchange it.
    pub(in crate::budget) is_queued: bool,
}

/// What belongs to this replica without a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Own {
    /// Units of a ratio.
    Window(Window),
    /// What this replica thinks is in a throttle, and what it has not told yet, in thousandths.
    Copy { balance: throttle::Balance, failures: u64, successes: u64 },
    /// Tokens earned for a token bucket.
    Earned(u64),
}

/// What the pool told last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) sent_ms: u64,
    pub(super) active: u64,
    pub(super) debt: u64,
    pub(super) level: u64,
    pub(super) units_left: u64,
}

impl Share {
    /// The part of a replica that has not touched the balance before.
    pub(in crate::budget) fn fresh(limits: &Limits, standing: Standing, now_ms: u64) -> Share {
        let own = match limits {
            Limits::Ratio(_) => Own::Window(Window::empty(now_ms)),
            Limits::TokenBucket(_) => Own::Earned(0),
            Limits::Throttle(throttle) => {
                let full = throttle::Balance::fresh(throttle);
                let may_be_empty = standing.lost_since_ms.is_some()
                    || standing.has_emptied(&Sizes::of(limits), now_ms);
                let balance = if may_be_empty { full.halved() } else { full };
                Own::Copy { balance, failures: 0, successes: 0 }
            }
        };
        let mut share = Share {
            own,
            lease: 0,
            lease_until_ms: 0,
            returns: 0,
            owes: 0,
            local: None,
            demand: Demand::default(),
            touched: false,
            seen: None,
            // Greater than any that the pool knows, also of a budget that was away for a while.
            sequence: now_ms,
            reach: Reach::new(standing),
            now_ms,
            is_queued: false,
        };
        share.settle(limits, standing, now_ms);
        share
    }

    /// A fresh one that stands in its place.
    pub(in crate::budget) fn renewed(&self, limits: &Limits, now_ms: u64) -> Share {
        Share::fresh(limits, self.reach.standing, now_ms)
    }

    /// Moves on to `now_ms`. To be called before anything is asked of it.
    pub(in crate::budget) fn settle(&mut self, limits: &Limits, standing: Standing, now_ms: u64) {
        self.reach.standing = standing;
        self.now_ms = self.now_ms.max(now_ms);
        if let (Own::Window(window), Limits::Ratio(limits)) = (&mut self.own, limits) {
            window.move_on(limits.interval_ms, self.now_ms);
        }
        if self.lease_until_ms <= self.now_ms {
            self.returns = self.returns.saturating_add(std::mem::take(&mut self.lease));
        }
        self.local = match (limits, standing.on_store_loss, self.reach.lost_since_ms()) {
            (Limits::Ratio(limits), OnStoreLoss::LocalShare, Some(since_ms)) => {
                let local = self.local.unwrap_or(Local::empty(since_ms));
                Some(local.refilled(&limits.floor, standing.replicas, self.now_ms))
            }
            _ => None,
        };
    }

    /// Earns for what was reported.
    pub(in crate::budget) fn deposit(&mut self, limits: &Limits, usage: &Usage) {
        let is_lost = self.reach.lost_since_ms().is_some();
        match (&mut self.own, limits) {
            (Own::Window(window), Limits::Ratio(limits)) => {
                window.deposit(limits.units_earned(usage));
            }
            (Own::Copy { balance, successes, .. }, Limits::Throttle(limits)) => {
                *balance = balance.deposit(limits, usage);
                let earned = successes.saturating_add(limits.earned(usage));
                *successes = earned.min(limits.full().into());
            }
            (Own::Earned(earned), Limits::TokenBucket(limits)) => {
                // Nobody is asked to take it in while the store is lost.
                let replicas = if is_lost { self.reach.standing.replicas.max(1) } else { 1 };
                let most = u64::from(limits.capacity / replicas);
                *earned = earned.saturating_add(limits.tokens_earned(usage)).min(most.max(*earned));
            }
            _ => {}
        }
        self.touched |= limits.is_fed(usage, false);
    }

    /// Takes a token from a throttle.
    pub(in crate::budget) fn count_failure(&mut self) {
        if let Own::Copy { balance, failures, .. } = &mut self.own {
            *balance = balance.count_failure();
            *failures = failures.saturating_add(throttle::TOKEN.into());
            self.touched = true;
        }
    }

    /// Retries are refused. So the next exchange asks for more.
    pub(in crate::budget) fn refused(&mut self, retries: u32) {
        self.demand.asked(retries, self.now_ms);
    }

    /// Whether it lets one more retry pass.
    pub(in crate::budget) fn grants(&self, limits: &Limits, purpose: Purpose) -> bool {
        self.price(limits, purpose, 1).is_some()
    }

    /// Pays for `retries`, all or none.
    pub(in crate::budget) fn withdraw(
        &mut self,
        limits: &Limits,
        purpose: Purpose,
        retries: u32,
    ) -> Option<Debit> {
        let Price { lease, local, earned, owes } = self.price(limits, purpose, retries)?;
        let debit = match (&mut self.own, limits) {
            (Own::Window(window), Limits::Ratio(limits)) => {
                let by_window = saturated(earned);
                Debit::Ratio(ratio::Debit::of(window, by_window, limits.interval_ms))
            }
            (Own::Copy { balance, failures, .. }, Limits::Throttle(limits)) => {
                *balance = balance.withdraw(limits, retries)?;
                *failures = failures.saturating_add(earned);
                Debit::Throttle { tokens_max: limits.tokens_max }
            }
            (Own::Earned(tokens), Limits::TokenBucket(limits)) => {
                *tokens = tokens.saturating_sub(earned);
                Debit::TokenBucket(bucket::Debit::of(limits, purpose.class()))
            }
            _ => return None,
        };
        self.lease = self.lease.saturating_sub(lease);
        self.owes = self.owes.saturating_add(owes);
        if let Some(own_part) = &mut self.local {
            own_part.take(local);
        }
        self.demand.asked(retries, self.now_ms);
        Some(debit)
    }

    /// Takes `retries` back, and tells what is left of the debit.
    pub(in crate::budget) fn give_back(
        &mut self,
        limits: &Limits,
        debit: Debit,
        retries: u32,
    ) -> Debit {
        self.touched = true;
        match (&mut self.own, limits, debit) {
            (Own::Window(window), Limits::Ratio(limits), Debit::Ratio(debit)) => {
                Debit::Ratio(debit.give_back(window, retries, limits.interval_ms))
            }
            (
                Own::Copy { balance, successes, .. },
                Limits::Throttle(limits),
                Debit::Throttle { tokens_max },
            ) => {
                let before = balance.thousandths();
                *balance = balance.give_back(limits, tokens_max, retries);
                let back = balance.thousandths().saturating_sub(before);
                *successes = successes.saturating_add(back.into());
                debit
            }
            (Own::Earned(earned), Limits::TokenBucket(limits), Debit::TokenBucket(paid)) => {
                *earned = earned.saturating_add(paid.given_back(limits, retries));
                debit
            }
            _ => debit,
        }
    }

    /// The store is out of reach, and what is granted rests on this replica alone.
    pub(in crate::budget) fn is_degraded(&self) -> bool {
        self.reach.lost_since_ms().is_some()
    }

    /// Carries what is in it over to other sizes. What a lease grows by comes from the pool.
    pub(in crate::budget) fn rescale(&mut self, old: &Limits, new: &Limits) {
        let (was, is) = (Sizes::of(old), Sizes::of(new));
        let smaller = |tokens| in_proportion(tokens, was.tokens, is.tokens).min(tokens);
        self.lease = smaller(self.lease);
        self.returns = smaller(self.returns);
        // Nothing is minted: it begins anew, from empty.
        self.local = self.reach.lost_since_ms().map(|_| Local::empty(self.now_ms));
        match (&mut self.own, old, new) {
            (Own::Window(window), Limits::Ratio(old), Limits::Ratio(new)) => {
                *window = window.rescaled(old.interval_ms, new.interval_ms);
            }
            (Own::Copy { balance, .. }, Limits::Throttle(old), Limits::Throttle(new)) => {
                *balance = balance.rescaled(old, new);
            }
            (Own::Earned(earned), Limits::TokenBucket(_), Limits::TokenBucket(_)) => {
                *earned = smaller(*earned);
            }
            _ => {}
        }
    }
}
