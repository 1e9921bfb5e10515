//! What a share and its pool exchange: what the one has too much of, and what it lacks.
use super::exchange::{Call, Reply, Sizes};
use super::share::{Own, Seen, Share};
use crate::budget::window::RETRY_UNITS;
use crate::budget::{Limits, throttle};

/// How long a lease is good for, from the moment that its exchange was sent. `HELD_MS` in
/// `exchange.lua` is longer: a token must not be in the pool again while somebody can spend it.
const LEASE_MS: u64 = 500;
/// How often what is held is told when nothing else is to say. So a lease outlives a late answer.
const RENEWED_MS: u64 = 300;
/// Less than from one round to the next: what is expected, and kept for it, falls in each.
const ROUND_MS: u64 = 50;
/// How often a replica looks whether a debt was paid, and for how long after it was last asked.
const DEBT_LOOK_MS: u64 = 1_000;
const DEBT_LOOKED_FOR_MS: u64 = 60_000;

/// When a share wants to be exchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::budget) enum Want {
    /// It was asked, or it owes.
    Now,
    /// It has something to tell.
    Soon,
    /// Not before this time.
    Later(u64),
    /// It holds nothing, and has nothing to tell.
    Never,
}

impl Share {
    /// When it wants to be exchanged. It was moved on to now before.
    pub(in crate::budget) fn want(&self) -> Want {
        if self.demand.is_fresh() || 0 < self.owes {
            return Want::Now;
        }
        if self.touched || 0 < self.returns {
            return Want::Soon;
        }
        let Some(seen) = &self.seen else { return Want::Never };
        let after = |ms| match seen.sent_ms.saturating_add(ms) {
            due_ms if due_ms <= self.now_ms => Want::Soon,
            due_ms => Want::Later(due_ms),
        };
        let asked_ms = self.demand.asked_ms().unwrap_or(0);
        let has_units = matches!(&self.own, Own::Window(window) if !window.is_empty());
        if !self.demand.is_settled() {
            after(ROUND_MS)
        } else if 0 < self.lease || has_units {
            after(RENEWED_MS)
        } else if 0 < seen.debt && self.now_ms < asked_ms.saturating_add(DEBT_LOOKED_FOR_MS) {
            after(DEBT_LOOK_MS)
        } else {
            Want::Never
        }
    }

    /// What it tells the pool now. What it gives away is gone from here.
    pub(in crate::budget) fn call(&mut self, limits: &Limits) -> Call {
        self.demand.tick();
        self.touched = false;
        self.sequence = self.sequence.saturating_add(1);
        let sizes = Sizes::of(limits);
        let mut call = Call {
            sequence: self.sequence,
            sizes,
            start: self.start(limits, &sizes),
            debt: self.seen.map_or(0, |seen| seen.debt),
            gives: Vec::new(),
            wants_units: 0,
            holds: 0,
            wants: 0,
            returns: std::mem::take(&mut self.returns),
            owes: self.owes,
        };
        let mut units = 0;
        match &mut self.own {
            Own::Window(window) => {
                let kept = self.demand.units_kept();
                let surplus = window.units().saturating_sub(kept);
                call.gives = window.take_newest(surplus, sizes.interval_ms);
                units = window.units();
                call.wants_units = self.demand.units().saturating_sub(units);
            }
            Own::Copy { failures, successes, .. } => {
                (call.owes, call.returns) = (*failures, std::mem::take(successes));
                return call;
            }
            Own::Earned(earned) => {
                call.returns = call.returns.saturating_add(std::mem::take(earned));
            }
        }
        let target = self.target(&sizes, units / RETRY_UNITS);
        let spare = self.lease.saturating_sub(target);
        self.lease = self.lease.saturating_sub(spare);
        call.returns = call.returns.saturating_add(spare);
        call.holds = self.lease;
        call.wants = target.saturating_sub(self.lease);
        call
    }

    /// The same before the process ends: everything goes back.
    pub(in crate::budget) fn farewell(&mut self, limits: &Limits) -> Call {
        self.demand = super::demand::Demand::default();
        let mut call = self.call(limits);
        call.wants = 0;
        call
    }

    /// The pool has answered a call that was sent at `sent_ms`.
    pub(in crate::budget) fn answered(
        &mut self,
        limits: &Limits,
        call: &Call,
        reply: &Reply,
        sent_ms: u64,
    ) {
        self.reach.found();
        let Reply { active, debt, level, units_left, .. } = *reply;
        self.seen = Some(Seen { sent_ms, active, debt, level, units_left });
        match (&mut self.own, limits) {
            (Own::Window(window), Limits::Ratio(limits)) => {
                for (began, units) in &reply.units {
                    window.add(*began, u64::from(*units), limits.interval_ms);
                }
            }
            (Own::Copy { balance, failures, successes }, Limits::Throttle(limits)) => {
                *failures = failures.saturating_sub(call.owes);
                *balance = throttle::Balance::of_thousandths(limits, level)
                    .minus_thousandths(*failures)
                    .plus(limits, *successes);
                return;
            }
            _ => {}
        }
        self.owes = self.owes.saturating_sub(call.owes);
        self.lease = self.lease.saturating_add(reply.granted);
        self.lease_until_ms = sent_ms.saturating_add(LEASE_MS);
    }

    /// The store has refused a call, so nothing of it was done.
    pub(in crate::budget) fn refused_call(&mut self, limits: &Limits, call: &Call) {
        self.reach.missed(self.now_ms);
        self.touched = true;
        match (&mut self.own, limits) {
            (Own::Window(window), Limits::Ratio(limits)) => {
                for (began, units) in &call.gives {
                    window.add(*began, u64::from(*units), limits.interval_ms);
                }
                self.returns = self.returns.saturating_add(call.returns);
            }
            (Own::Copy { successes, .. }, _) => {
                *successes = successes.saturating_add(call.returns);
            }
            _ => self.returns = self.returns.saturating_add(call.returns),
        }
    }

    /// Nobody knows what became of a call. What was given is gone, what was asked for was not
    /// received, and what is owed is told again.
    pub(in crate::budget) fn unanswered(&mut self) {
        self.reach.missed(self.now_ms);
        self.touched = true;
    }

    /// Whether a fresh one may stand in its place.
    pub(in crate::budget) fn may_be_dropped(&self, limits: &Limits, now_ms: u64) -> bool {
        let life_ms = Sizes::of(limits).life_ms();
        let is_forgotten =
            self.seen.is_none_or(|seen| seen.sent_ms.saturating_add(life_ms) <= now_ms);
        !self.is_queued && is_forgotten
    }

    /// What a pool that is gone begins with. One that was there is not a full one now.
    fn start(&self, limits: &Limits, sizes: &Sizes) -> u64 {
        let life_ms = sizes.life_ms();
        let knew = self.seen.is_some_and(|seen| self.now_ms < seen.sent_ms.saturating_add(life_ms));
        match (&self.own, limits) {
            (Own::Copy { balance, failures, successes }, Limits::Throttle(limits)) => {
                let before = balance.minus_thousandths(*successes).plus(limits, *failures);
                before.thousandths().into()
            }
            _ if knew || self.reach.standing.has_emptied(sizes, self.now_ms) => 0,
            _ => sizes.full(),
        }
    }

    /// Leased tokens that it should have: its part of the floor, or more if it is asked for more.
    fn target(&self, sizes: &Sizes, retries_held: u64) -> u64 {
        if self.demand.is_idle(self.now_ms) {
            return 0;
        }
        let active = self.seen.map_or(1, |seen| seen.active).max(1);
        let needed = self.demand.retries().saturating_sub(retries_held);
        (sizes.tokens / active).max(needed.saturating_mul(sizes.price)).min(sizes.tokens)
    }
}
