//! What happened, as the guarantee looks at it.
use retryd::budget::Limits;

use super::callers::Callers;
use super::guarantee::{Event, History};
use super::network::{Executed, Outcome};
use super::plan::Plan;
use super::simulation::Life;

/// Calls without an answer, one after the other, by which a replica is cut off.
const MISSED_MAX: u32 = 4;

pub(crate) fn histories(
    plan: &Plan,
    callers: &Callers,
    lives: &[Life],
    executed: &[Executed],
) -> Vec<History> {
    let outcomes: Vec<Vec<Outcome>> = lives.iter().map(Life::outcomes).collect();
    let history = |(number, (budget, _)): (usize, &(retryd::budget::Budget, _))| {
        let is_its = |pool: &str| pool.contains(&*budget.name);
        let mut events = callers.events(number).to_vec();
        // An estimate is not held against anything.
        if !matches!(budget.limits, Limits::Throttle(_)) {
            let its: Vec<&Executed> = executed.iter().filter(|one| is_its(&one.pool)).collect();
            let remade = its.windows(2).filter(|pair| pair[1].made_it);
            let lost = remade.flat_map(|pair| {
                let (last, first) = (pair[0], pair[1]);
                let is_known = is_known(lives, &outcomes, first.at_ms, is_its);
                let forgotten = 0 < first.call.start && !is_known;
                let forgotten = forgotten.then_some((first.at_ms, Event::Forgotten));
                forgotten.into_iter().chain([(first.at_ms, Event::Forgiven(last.reply.debt))])
            });
            insert(&mut events, lost);
        }
        let away = (0..plan.replicas).flat_map(|replica| {
            let its = lives.iter().zip(&outcomes).filter(move |(life, _)| life.replica == replica);
            let away = its.flat_map(|(life, outcomes)| away(life, outcomes, plan.until_ms, is_its));
            let away = joined(away.collect());
            away.into_iter().map(move |(from_ms, to_ms)| (replica, from_ms, to_ms))
        });
        History {
            limits: budget.limits,
            on_store_loss: budget.on_store_loss,
            replicas: u32::try_from(plan.replicas).unwrap(),
            events,
            away: away.collect(),
        }
    };
    plan.budgets.iter().enumerate().map(history).collect()
}

/// Keeps the places that releases name.
fn insert(events: &mut Vec<(u64, Event)>, more: impl Iterator<Item = (u64, Event)>) {
    for (at_ms, event) in more {
        let place = events.partition_point(|(other_ms, _)| *other_ms < at_ms);
        events.insert(place, (at_ms, event));
        for (_, event) in events.iter_mut() {
            if let Event::Released { of, .. } = event {
                *of += usize::from(place <= *of);
            }
        }
    }
}

/// Whether somebody who lives at a time has exchanged with the pool before.
fn is_known(
    lives: &[Life],
    outcomes: &[Vec<Outcome>],
    at_ms: u64,
    is_its: impl Fn(&str) -> bool + Copy,
) -> bool {
    lives.iter().zip(outcomes).any(|(life, outcomes)| {
        let lives = life.from_ms <= at_ms && life.to_ms.is_none_or(|to_ms| at_ms < to_ms);
        let has_known = outcomes.iter().any(|outcome| {
            let its = outcome.pool.as_deref().is_some_and(is_its);
            its && outcome.is_answered && outcome.at_ms < at_ms
        });
        lives && has_known
    })
}

/// When a replica was cut off from one pool.
fn away(
    life: &Life,
    outcomes: &[Outcome],
    until_ms: u64,
    is_its: impl Fn(&str) -> bool + Copy,
) -> Vec<(u64, u64)> {
    let to_ms = life.to_ms.unwrap_or(until_ms);
    let mut away = Vec::new();
    for of_pool in [false, true] {
        let (mut missed, mut reached_ms) = (0, life.from_ms);
        let concerns = |outcome: &&Outcome| match outcome.pool.as_deref() {
            Some(pool) => of_pool && is_its(pool),
            None => !of_pool,
        };
        for outcome in outcomes.iter().filter(concerns) {
            if outcome.is_answered {
                if MISSED_MAX <= missed {
                    away.push((reached_ms, outcome.at_ms));
                }
                (missed, reached_ms) = (0, outcome.at_ms);
            } else {
                missed += 1;
            }
        }
        if MISSED_MAX <= missed {
            away.push((reached_ms, to_ms));
        }
    }
    away
}

fn joined(mut all: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    all.sort_unstable();
    let mut joined: Vec<(u64, u64)> = Vec::new();
    for (from_ms, to_ms) in all {
        match joined.last_mut() {
            Some((_, last_ms)) if from_ms <= *last_ms => *last_ms = to_ms.max(*last_ms),
            _ => joined.push((from_ms, to_ms)),
        }
    }
    joined
}
