//! The store as a model: answers as `exchange.lua` and `fleet.lua` do, number for number. Change it
//! when they change; `tests/sharing/equality.rs` holds both against each other.
mod units;

use std::collections::BTreeMap;

use self::units::Units;
use crate::budget::shared::exchange::{Reply, Sizes};
use crate::budget::shared::pools::{Attendance, Errand, Fleet};

const RETRY_UNITS: u64 = 100;
const HELD_MS: u64 = 600;
const SIZES_MS: u64 = 60_000;
const LIFE_MS_MAX: u64 = 86_400_000;
const FLEET_SEEN_MS: u64 = 60_000;
const FLEET_LIFE_MS: u64 = 600_000;

/// Everything that one store holds, each value with the time at which it expires.
#[derive(Debug, Default)]
pub struct Store {
    pools: BTreeMap<Box<str>, (u64, Pool)>,
    fleet: Option<(u64, Members)>,
}

impl Store {
    /// One call of `exchange.lua`. `time_ms` is what `TIME` tells.
    pub fn exchange(&mut self, time_ms: u64, who: &str, errand: &Errand) -> Reply {
        let Errand { pool: name, now_ms, call } = errand;
        let Sizes { tokens, parts, refill, interval_ms, price, forgives } = call.sizes;
        let sizes = Counted { tokens, parts, refill, interval_ms };
        let now = time_ms.max(*now_ms);
        let mut pool = match self.pools.remove(name) {
            Some((expires_ms, pool)) if time_ms < expires_ms => pool,
            _ => Pool { at: now, level: call.start, debt: call.debt, sizes, ..Pool::default() },
        };
        let now = now.max(pool.at);

        if pool.held.get(who).is_some_and(|mine| call.sequence <= mine.sequence) {
            let (debt, level) = (pool.debt, pool.level);
            self.pools.insert(name.clone(), (pool.expires_ms, pool));
            return Reply { now_ms: now, granted: 0, active: 1, debt, level, ..Reply::default() };
        }

        pool.follow(sizes, now);
        let lapsed = pool.held.values().filter(|lease| lease.until <= now);
        let lapsed_at = lapsed.map(|lease| lease.until).max().unwrap_or(0).max(pool.at);
        let all = pool.held.values().map(|lease| lease.holds).sum();
        pool.refill_until(lapsed_at, all);
        let there = pool.held.values().filter(|lease| now < lease.until);
        let there = there.map(|lease| lease.holds).sum();
        pool.refill_until(now, there);

        pool.held.retain(|other, lease| now < lease.until && **other != *who);
        let out = pool.held.values().map(|lease| lease.holds).sum::<u64>() + call.holds;
        let active = pool.held.len() as u64 + 1;

        let Counted { tokens, parts, refill, interval_ms } = pool.sizes;
        let room = (tokens * parts).saturating_sub(out * parts);
        pool.level = (pool.level + call.returns * parts).min(room);
        pool.debt += call.owes;

        let mut units = Units::default();
        if let Some(current) = (now * 10).checked_div(interval_ms) {
            for (began, number) in pool
                .units
                .iter()
                .map(|(began, number)| (*began, *number))
                .chain(call.gives.iter().map(|(began, number)| (*began, u64::from(*number))))
            {
                units.put(began, number, interval_ms, current);
            }
        }

        if 0 < interval_ms {
            let paid = pool.debt.min(units.total() / RETRY_UNITS);
            units.take(paid * RETRY_UNITS);
            pool.debt -= paid;
        }
        let paid = pool.debt.min(pool.level / parts);
        pool.level -= paid * parts;
        pool.debt = if forgives { 0 } else { pool.debt - paid };

        let total = units.total();
        let part = if total <= 2 * RETRY_UNITS { total } else { (total / 2).max(RETRY_UNITS) };
        let given = units.take(call.wants_units.min(part));
        let whole = pool.level / parts;
        let fair = (2 * price).max(whole.div_ceil(2)).max(tokens / active);
        let granted = call.wants.min(whole).min(fair);
        pool.level -= granted * parts;

        let lease =
            Lease { holds: call.holds + granted, until: now + HELD_MS, sequence: call.sequence };
        pool.held.insert(who.into(), lease);
        let units_left = units.total();
        pool.units = units.0.into_iter().filter(|(_, number)| 0 < *number).collect();
        let mut life = call.sizes.life_ms();
        if 0 < pool.debt && 0 < refill {
            life = (life + (pool.debt * parts).div_ceil(refill)).min(LIFE_MS_MAX);
        }
        let (debt, level) = (pool.debt, pool.level);
        pool.expires_ms = time_ms + life;
        self.pools.insert(name.clone(), (pool.expires_ms, pool));
        let units = given.into_iter().map(|(began, number)| (began, narrow(number)));
        Reply { now_ms: now, units: units.collect(), granted, active, debt, level, units_left }
    }

    /// One call of `fleet.lua`, by a replica that lives or one that ends.
    pub fn attend(
        &mut self,
        time_ms: u64,
        who: &str,
        attendance: Attendance,
        leaves: bool,
    ) -> Fleet {
        let Attendance { now_ms, attended_ms } = attendance;
        let now = time_ms.max(now_ms);
        let there = self.fleet.take().filter(|(expires_ms, _)| time_ms < *expires_ms);
        if leaves && there.is_none() {
            return Fleet { now_ms: now, replicas: 0, emptied_ms: None };
        }
        let fresh = || Members { at: now, born: now, ..Members::default() };
        let mut fleet = there.map_or_else(fresh, |(_, fleet)| fleet);
        let now = now.max(fleet.at);
        if 0 < attended_ms && attended_ms < fleet.born && now < attended_ms + FLEET_LIFE_MS {
            fleet.emptied = fleet.born;
        }
        fleet.at = now;
        if leaves {
            fleet.seen.remove(who);
        } else {
            fleet.seen.insert(who.into(), now);
        }
        fleet.seen.retain(|_, seen| now < *seen + FLEET_SEEN_MS);
        let replicas = u32::try_from(fleet.seen.len()).unwrap_or(u32::MAX);
        let emptied_ms = (0 < fleet.emptied).then_some(fleet.emptied);
        self.fleet = Some((time_ms + FLEET_LIFE_MS, fleet));
        Fleet { now_ms: now, replicas, emptied_ms }
    }

    /// Whether there is a pool of this name.
    pub fn has_pool(&self, time_ms: u64, name: &str) -> bool {
        self.pools.get(name).is_some_and(|(expires_ms, _)| time_ms < *expires_ms)
    }

    /// Drops one pool.
    pub fn drop_pool(&mut self, name: &str) {
        self.pools.remove(name);
    }
}

/// What one key holds.
#[derive(Clone, Debug, Default)]
struct Pool {
    at: u64,
    level: u64,
    debt: u64,
    /// By the moment that a slot began, in tenths of a millisecond.
    units: BTreeMap<u64, u64>,
    held: BTreeMap<Box<str>, Lease>,
    /// When sizes were seen first, and last.
    seen: BTreeMap<Written, (u64, u64)>,
    sizes: Counted,
    expires_ms: u64,
}

impl Pool {
    /// What refills has room beside all that is leased.
    fn refill_until(&mut self, time: u64, leased: u64) {
        let Counted { tokens, parts, refill, .. } = self.sizes;
        if 0 < refill && self.at < time {
            let full = tokens * parts;
            let refilled = ((time - self.at) * refill).min(full + self.debt * parts);
            let room = full.saturating_sub(leased * parts);
            self.level = (self.level + refilled).min(room.max(self.level));
        }
        self.at = self.at.max(time);
    }

    /// Sizes: those first seen last, of all that somebody went by within the last minute.
    fn follow(&mut self, sizes: Counted, now: u64) {
        self.seen.retain(|_, (_, last)| now < *last + SIZES_MS);
        let written = sizes.written();
        let first = self.seen.get(&written).map_or(now, |(first, _)| *first);
        self.seen.insert(written.clone(), (first, now));
        let newest = self.seen.iter().max_by_key(|(other, (first, _))| (*first, *other));
        if newest.is_none_or(|(newest, _)| *newest != written) || self.sizes == sizes {
            return;
        }
        let old = self.sizes.tokens * self.sizes.parts;
        let new = sizes.tokens * sizes.parts;
        self.level = if 0 < old { in_proportion(self.level, old, new).min(new) } else { 0 };
        self.sizes = sizes;
    }
}

/// A slot holds no more units than fit.
fn narrow(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// As a double counts it.
#[expect(clippy::cast_possible_truncation, reason = "a script's numbers are doubles")]
fn in_proportion(level: u64, old: u64, new: u64) -> u64 {
    (level as f64 / old as f64 * new as f64).floor() as u64
}

#[derive(Clone, Copy, Debug)]
struct Lease {
    holds: u64,
    until: u64,
    sequence: u64,
}

/// The sizes that a pool goes by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counted {
    tokens: u64,
    parts: u64,
    refill: u64,
    interval_ms: u64,
}

/// Sizes as text, which is how a script compares them.
type Written = String;

impl Counted {
    fn written(&self) -> Written {
        let Counted { tokens, parts, refill, interval_ms } = self;
        format!("{tokens} {parts} {refill} {interval_ms}")
    }
}

/// The fleet's key.
#[derive(Debug, Default)]
struct Members {
    at: u64,
    born: u64,
    emptied: u64,
    seen: BTreeMap<Box<str>, u64>,
}
