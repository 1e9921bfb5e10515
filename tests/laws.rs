//! The engine held against the contract: a reference that was written from the contract alone, on
//! every combination of facts around each edge, and the laws that follow from the contract.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]
#[path = "laws/explanations.rs"]
mod explanations;
#[path = "laws/grid.rs"]
mod grid;
#[path = "laws/hints.rs"]
mod hints;
#[path = "laws/reference.rs"]
mod reference;
#[path = "laws/waits.rs"]
mod waits;
#[path = "laws/words.rs"]
mod words;
#[path = "laws/worse.rs"]
mod worse;

use std::{
    collections::HashSet,
    sync::{Mutex, PoisonError},
};

use grid::{Grid, http};
use reference::{Answer, Policy, Source, answer, objections};
use retryd::engine::{
    Category, Coverage, Delay, Facts, Failure, GrpcCode, HttpStatus, Idempotency, Judged, Purse,
    Rules, Wait, decide,
};

/// What the engine says, in the words of the reference.
fn said(f: &Facts<'_>) -> Answer {
    let (reason, delay) = match decide(f) {
        Ok(retry) => ("RETRYABLE", Some(retry.delay())),
        Err(denied) => (denied.rule().name(), None),
    };
    let delay = delay.map(|delay| match delay {
        Delay::Backoff { delay_ms } => (Source::Backoff, delay_ms),
        Delay::ServerHint { delay_ms } => (Source::ServerHint, delay_ms),
    });
    Answer { reason, delay, counts: f.counts(), class: f.failure.class(), evidence: f.evidence() }
}

#[track_caller]
fn agrees(policy: &Policy, f: &Facts<'_>) {
    assert_eq!(said(f), answer(policy, f), "engine left, contract right: {f:?}");
}

#[test]
fn the_first_objection_in_order_on_every_combination() {
    for grid in [Grid::full(), Grid::coarse()] {
        grid.each(agrees);
        println!("{} combinations agree", grid.len());
    }
}

#[test]
fn the_combinations_reach_every_answer() {
    let grid = Grid::coarse();
    let seen = Mutex::new(HashSet::new());
    grid.each(|policy, f| {
        let Answer { reason, delay, .. } = answer(policy, f);
        seen.lock().unwrap_or_else(PoisonError::into_inner).insert((reason, delay.map(|d| d.0)));
    });
    assert_eq!(seen.into_inner().unwrap().len(), 14 + 2, "14 refusals, and a yes of each source");
}

#[test]
fn the_defaults_are_those_of_the_contract() {
    assert_eq!(Rules::default(), Policy::default().rules);
}

/// Every status, code and category, under policies that list the defaults, everything and nothing.
#[test]
fn every_failure_is_judged_as_the_contract_says() {
    static HTTP: [u16; 500] = {
        let mut statuses = [0; 500];
        let mut offset = 0;
        while offset < 500 {
            statuses[offset as usize] = 100 + offset;
            offset += 1;
        }
        statuses
    };
    let defaults = Policy::default();
    let everything = Policy {
        retry_http: &HTTP,
        retry_grpc: &GrpcCode::ALL,
        retry_categories: &Category::ALL,
        refusal_http: &HTTP,
        refusal_grpc: &GrpcCode::ALL,
        ..defaults
    };
    let nothing = Policy {
        retry_http: &[],
        retry_grpc: &[],
        retry_categories: &[],
        refusal_http: &[],
        refusal_grpc: &[],
        ..defaults
    };
    let failures: Vec<Failure> = (HTTP.into_iter().map(http))
        .chain(GrpcCode::ALL.map(Failure::Grpc))
        .chain(Category::ALL.map(Failure::Category))
        .chain([Failure::Category(Category::UnknownPermanent)])
        .collect();
    assert_eq!(failures.len(), 500 + 16 + 15 + 1);

    for policy in [defaults, everything, nothing].map(Policy::listed) {
        for failure in &failures {
            for declared in [false, true] {
                for wait in [Wait::Unsaid, Wait::AtLeast(0), Wait::Forbidden] {
                    let mut facts = clear(&policy.rules, *failure);
                    facts.idempotency.declared = declared;
                    facts.hint.wait = wait;
                    agrees(&policy, &facts);
                    assert_eq!(facts.failure.is_permanent(), reference::is_permanent(*failure));
                }
            }
        }
    }
}

#[test]
fn numbers_of_statuses_end_where_the_contract_says() {
    assert_eq!(
        [99, 100, 599, 600].map(|n| HttpStatus::new(n).is_some()),
        [false, true, true, false]
    );
    assert_eq!(GrpcCode::ALL.map(|code| code as usize), std::array::from_fn(|place| place + 1));
    assert_eq!(
        Category::ALL.map(|category| category as u8),
        [2, 3, 4, 5, 6, 7, 8, 20, 21, 22, 23, 24, 25, 26, 27]
    );
}

/// Asked in any order, the six blockers give the engine's verdict; only the reason may differ.
#[test]
fn the_verdict_ignores_the_order_inside_stage_one() {
    let policy = Policy::default();
    let orders = orders(&[0, 1, 2, 3, 4, 5]);
    assert_eq!(orders.len(), 720);
    for raised in 0..1 << 6 {
        let is_raised = |blocker: u32| raised >> blocker & 1 == 1;
        let mut f = clear(&policy.rules, http(503));
        f.attempts_made = if is_raised(0) { 3 } else { 2 };
        f.budget = if is_raised(1) { Coverage::Exhausted(PURSE) } else { Coverage::Covered(PURSE) };
        f.body_replayable = !is_raised(2);
        f.first_byte_delivered = is_raised(3);
        f.runtime_draining = is_raised(4);
        f.remaining_ms = Some(if is_raised(5) { 50 } else { 5_000 });
        let verdict = decide(&f).is_ok();
        for order in &orders {
            let objections = objections(&policy, &f);
            let stage_one = order.iter().map(|place| objections[*place]);
            let first = stage_one.chain(objections[6..].iter().copied()).find(|(_, no)| *no);
            assert_eq!(verdict, first.is_none(), "{order:?} {f:?}");
        }
        assert_eq!(verdict, raised == 0);
    }
}

/// All orders of `places`.
fn orders(places: &[usize]) -> Vec<Vec<usize>> {
    if places.is_empty() {
        return vec![vec![]];
    }
    let starting_with = |first: &usize| {
        let rest: Vec<usize> = places.iter().copied().filter(|place| place != first).collect();
        orders(&rest).into_iter().map(|order| [vec![*first], order].concat()).collect::<Vec<_>>()
    };
    places.iter().flat_map(starting_with).collect()
}

const PURSE: Purse<'static> = Purse { budget: "per-tenant", available: 4 };

/// Facts to which no rule objects, but for what `failure` itself says.
fn clear(rules: &Rules, failure: Failure) -> Facts<'_> {
    Facts {
        rules,
        attempts_made: 1,
        budget: Coverage::Unbudgeted,
        body_replayable: true,
        first_byte_delivered: false,
        runtime_draining: false,
        remaining_ms: None,
        failure: Judged::by(rules, failure),
        evidence: None,
        idempotency: Idempotency { declared: true, ..Idempotency::default() },
        hint: Default::default(),
        draw: u32::MAX,
    }
}
