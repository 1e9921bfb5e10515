//! The engine held against the contract: a reference that was written from the contract alone, on
//! every combination of facts around each edge, and the laws that follow from the contract.
#[path = "laws/grid.rs"]
mod grid;
#[path = "laws/reference.rs"]
mod reference;

use grid::Grid;
use reference::{Answer, Policy, Source, answer};
use retryd::engine::{Delay, Facts, decide};

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
