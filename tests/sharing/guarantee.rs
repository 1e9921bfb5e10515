//! The printed guarantee, checked in every window of what happened to one balance.
//!
//! A ratio: over any time T, retries of all replicas together <= percent x requests reported in
//! (T + interval) + count x (1 + T / floor interval) + replicas, plus one for each replica that
//! crashed in T, plus for each replica cut off for a time t of T: count / replicas x
//! (1 + t / floor interval), or nothing with `deny`. A token bucket: what was paid since the start
//! costs no more than capacity + what was earned + the dearest retry for each replica and crash.
//! A store that loses a pool adds what was granted on credit and not paid yet; one which no living
//! replica knew adds a full one.
use std::fmt::{self, Write as _};

use retryd::budget::{Limits, OnStoreLoss};

/// All that happened to one balance.
#[derive(Debug)]
pub(crate) struct History {
    pub(crate) limits: Limits,
    pub(crate) on_store_loss: OnStoreLoss,
    pub(crate) replicas: u32,
    /// In the order of time.
    pub(crate) events: Vec<(u64, Event)>,
    /// Times in which one replica was cut off: its number, from, to.
    pub(crate) away: Vec<(usize, u64, u64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// Requests reported, or tokens earned.
    Earned { replica: usize, number: u64 },
    /// `cost` is in tokens of a token bucket.
    Granted { replica: usize, retries: u32, cost: u64 },
    /// By the place of the event that granted it.
    Released { replica: usize, retries: u32, cost: u64, of: usize },
    /// A replica is gone with all that it held.
    Crashed { replica: usize },
    /// The store has lost the pool, and nobody who knew of it was left.
    Forgotten,
    /// The store has lost the pool, and what was granted on credit with it: retries, or tokens.
    Forgiven(u64),
}

/// One window in which too much was granted.
#[derive(Debug)]
pub(crate) struct Broken {
    pub(crate) from_ms: u64,
    pub(crate) to_ms: u64,
    granted: f64,
    bound: f64,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Broken { from_ms, to_ms, granted, bound } = self;
        write!(f, "{granted} granted from {from_ms} to {to_ms} ms, {bound:.3} at most")
    }
}

/// Numbers of the size that is met here are exact in a double but for this.
const ROUNDING: f64 = 1e-6;

impl History {
    pub(crate) fn check(&self) -> Result<(), Broken> {
        match self.limits {
            Limits::Ratio(ratio) => {
                let earned = self.events.iter().scan(0, |sum, (_, event)| {
                    if let Event::Earned { number, .. } = event {
                        *sum += number;
                    }
                    Some(*sum)
                });
                let bound = Bound {
                    earned: std::iter::once(0).chain(earned).collect(),
                    percent: f64::from(ratio.percent) / 100.0,
                    interval_ms: ratio.interval_ms,
                    count: f64::from(ratio.floor.count),
                    floor_ms: ratio.floor.interval_ms as f64,
                    history: self,
                };
                // First with a lower bound that one pass finds out.
                if bound.worst_at_most() <= ROUNDING { Ok(()) } else { bound.check_each() }
            }
            Limits::TokenBucket(bucket) => {
                let (capacity, costs) = (f64::from(bucket.capacity), bucket.costs);
                let dearest = costs.transient.max(costs.throttling).max(costs.timeout);
                self.check_costs(capacity, f64::from(dearest))
            }
            // An estimate, and no allotment.
            Limits::Throttle(_) => Ok(()),
        }
    }

    fn check_costs(&self, capacity: f64, dearest: f64) -> Result<(), Broken> {
        let mut bound = capacity + f64::from(self.replicas) * dearest;
        let mut spent = 0.0;
        for (at_ms, event) in &self.events {
            match *event {
                Event::Earned { number, .. } => bound += number as f64,
                Event::Granted { cost, .. } => spent += cost as f64,
                Event::Released { cost, .. } => spent -= cost as f64,
                Event::Crashed { .. } => bound += dearest,
                Event::Forgotten => bound += capacity,
                Event::Forgiven(tokens) => bound += tokens as f64,
            }
            if bound + ROUNDING < spent {
                return Err(Broken { from_ms: 0, to_ms: *at_ms, granted: spent, bound });
            }
        }
        Ok(())
    }

    /// What happened around a window that broke it, a line for each event.
    pub(crate) fn trace(&self, broken: &Broken) -> String {
        let mut trace = String::new();
        let from_ms = broken.from_ms.saturating_sub(1_000);
        for (at_ms, event) in &self.events {
            if (from_ms..=broken.to_ms).contains(at_ms) {
                writeln!(trace, "{at_ms:>7}  {event:?}").unwrap();
            }
        }
        for (replica, from, to) in &self.away {
            writeln!(trace, "replica {replica} cut off from {from} to {to}").unwrap();
        }
        trace
    }
}

struct Bound<'h> {
    /// Reported before each event.
    earned: Vec<u64>,
    percent: f64,
    interval_ms: u64,
    count: f64,
    floor_ms: f64,
    history: &'h History,
}

impl Bound<'_> {
    /// More than the worst window exceeds its bound, if any does: releases and what a replica has
    /// at first when it is cut off are left out, so each term is a difference of two sums.
    fn worst_at_most(&self) -> f64 {
        let fixed = self.count + f64::from(self.history.replicas);
        let (mut granted, mut allowed) = (0.0, 0.0);
        // What lies before a window, for each event that grants.
        let mut lowest = f64::INFINITY;
        let mut worst = f64::NEG_INFINITY;
        for (at_ms, event) in &self.history.events {
            let at_ms = *at_ms;
            match *event {
                Event::Granted { retries, .. } => {
                    let before = granted
                        - (self.percent
                            * self.earned_until(at_ms.saturating_sub(self.interval_ms)))
                        - (allowed + self.over_time(at_ms));
                    lowest = lowest.min(before);
                    granted += f64::from(retries);
                    let until = granted
                        - self.percent * self.earned_until(at_ms + 1)
                        - (allowed + self.over_time(at_ms));
                    worst = worst.max(until - lowest - fixed);
                }
                Event::Crashed { .. } => allowed += 1.0,
                Event::Forgotten => allowed += self.count,
                Event::Forgiven(retries) => allowed += retries as f64,
                Event::Earned { .. } | Event::Released { .. } => {}
            }
        }
        worst
    }

    /// What the floor refills until a moment, with the share of those who are cut off.
    fn over_time(&self, at_ms: u64) -> f64 {
        self.count * (at_ms as f64 + self.part() * self.away_until(at_ms) as f64) / self.floor_ms
    }

    /// The part of a floor that a replica has while it is cut off.
    fn part(&self) -> f64 {
        match self.history.on_store_loss {
            OnStoreLoss::LocalShare => 1.0 / f64::from(self.history.replicas),
            OnStoreLoss::Deny => 0.0,
        }
    }

    fn away_until(&self, at_ms: u64) -> u64 {
        self.history.away.iter().map(|(_, from, to)| at_ms.min(*to).saturating_sub(*from)).sum()
    }

    /// Reported before a moment.
    fn earned_until(&self, before_ms: u64) -> f64 {
        let end = self.history.events.partition_point(|(at_ms, _)| *at_ms < before_ms);
        self.earned[end] as f64
    }

    /// Every window for itself, with all terms.
    fn check_each(&self) -> Result<(), Broken> {
        let events = &self.history.events;
        let grants = |event: &Event| matches!(event, Event::Granted { .. });
        let mut worst: Option<Broken> = None;
        for first in (0..events.len()).filter(|first| grants(&events[*first].1)) {
            let from_ms = events[first].0;
            let since_ms = from_ms.saturating_sub(self.interval_ms);
            let reported_before = self.earned_until(since_ms);
            let (mut granted, mut besides) = (0.0, 0.0);
            for (to_ms, event) in &events[first..] {
                match *event {
                    Event::Granted { retries, .. } => granted += f64::from(retries),
                    Event::Released { retries, of, .. } if first <= of => {
                        granted -= f64::from(retries);
                    }
                    Event::Crashed { .. } => besides += 1.0,
                    Event::Forgotten => besides += self.count,
                    Event::Forgiven(retries) => besides += retries as f64,
                    Event::Released { .. } | Event::Earned { .. } => {}
                }
                if !grants(event) {
                    continue;
                }
                // Reports of the same moment count, whichever was told first.
                let earned = self.earned_until(to_ms + 1) - reported_before;
                let time_ms = (to_ms - from_ms) as f64;
                let bound = self.percent * earned
                    + self.count * (1.0 + time_ms / self.floor_ms)
                    + f64::from(self.history.replicas)
                    + besides
                    + self.of_those_away(from_ms, *to_ms);
                let excess = granted - bound;
                if ROUNDING < excess && worst.as_ref().is_none_or(|w| w.granted - w.bound < excess)
                {
                    worst = Some(Broken { from_ms, to_ms: *to_ms, granted, bound });
                }
            }
        }
        worst.map_or(Ok(()), Err)
    }

    fn of_those_away(&self, from_ms: u64, to_ms: u64) -> f64 {
        let away_ms = |replica: usize| {
            let away = self.history.away.iter().filter(|(away, ..)| *away == replica);
            away.map(|(_, from, to)| {
                (*from <= to_ms && from_ms <= *to).then(|| to_ms.min(*to) - from_ms.max(*from))
            })
            .fold(None, |sum: Option<u64>, time_ms| match (sum, time_ms) {
                (sum, None) => sum,
                (sum, Some(time_ms)) => Some(sum.unwrap_or(0) + time_ms),
            })
        };
        let each = |replica| match away_ms(replica) {
            Some(time_ms) => self.count * self.part() * (1.0 + time_ms as f64 / self.floor_ms),
            None => 0.0,
        };
        (0..self.history.replicas as usize).map(each).sum()
    }
}
