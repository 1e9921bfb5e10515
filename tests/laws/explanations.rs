//! Laws of the explanation: it shows what was asked, in order, and all that mattered.
use std::{collections::HashMap, fs, path::Path};

use retryd::engine::{Denied, Facts, Retry, Rule, Step, decide};

use super::grid::Grid;

fn steps<'a>(answer: &Result<Retry<'a>, Denied<'a>>) -> Vec<Step<'a>> {
    match answer {
        Ok(retry) => retry.steps().collect(),
        Err(denied) => denied.steps().collect(),
    }
}

#[test]
fn steps_are_every_rule_up_to_the_one_that_decided() {
    Grid::coarse().each(|_, f| {
        let answer = decide(f);
        let decided = answer.as_ref().map_or_else(Denied::rule, |_| Rule::Retryable);
        let asked = steps(&answer).into_iter().map(|step| step.rule);
        let expected = Rule::ALL.into_iter().take(decided as usize + 1);
        assert!(asked.eq(expected), "{f:?}");
        assert_eq!(Rule::ALL[decided as usize], decided);
    });
}

/// What a rule looked at settles what it said, and for the last one the delay. So no fact matters
/// that the explanation does not show, and equal explanations have equal answers.
#[test]
fn equal_looks_have_equal_answers() {
    let (clear, coarse) = (Grid::clear(), Grid::coarse());
    let clear = (0..clear.len()).map(|number| clear.get(number).1);
    // The step has no factor in common with the axes, so that all of their values come up.
    let coarse = (0..coarse.len()).step_by(61).map(|number| coarse.get(number).1);
    let mut said = HashMap::new();
    let mut shared = 0_u32;
    for f in clear.chain(coarse) {
        for (look, says) in looks(&f) {
            let first = said.entry(look).or_insert_with_key(|_| says.clone());
            shared += 1;
            assert_eq!(*first, says, "one look, two answers: {f:?}");
        }
    }
    println!("{shared} looks, {} of them different", said.len());
    assert!(2 * said.len() < shared as usize, "too few looks are shared to show anything");
}

/// Each look, and what its rule said.
fn looks(f: &Facts<'_>) -> Vec<(String, String)> {
    let answer = decide(f);
    let steps = steps(&answer);
    let last = steps.len() - 1;
    let says = |place| match &answer {
        Err(_) if place == last => "no".to_owned(),
        Ok(retry) if place == last => format!("{:?}", retry.delay()),
        _ => "nothing".to_owned(),
    };
    let look = |step: &Step<'_>| format!("{:?} saw {:?}", step.rule, step.look);
    steps.iter().enumerate().map(|(place, step)| (look(step), says(place))).collect()
}

/// The numbers of the reasons follow the order of asking, but for RETRYABLE, which comes first.
#[test]
fn rules_are_the_reasons_of_the_contract_in_order() {
    let contract = Path::new(env!("CARGO_MANIFEST_DIR")).join("proto/retryd/v1/retryd.proto");
    let contract = fs::read_to_string(contract).unwrap();
    let (_, reasons) = contract.split_once("enum Reason {").unwrap();
    let (reasons, _) = reasons.split_once('}').unwrap();
    let mut numbered: Vec<(u32, &str)> = reasons
        .lines()
        .filter_map(|line| {
            line.trim().strip_prefix("REASON_")?.strip_suffix(';')?.split_once(" = ")
        })
        .map(|(name, number)| (number.parse().unwrap(), name))
        .collect();
    numbered.sort_unstable();
    let [(0, "UNSPECIFIED"), (1, "RETRYABLE"), asked @ ..] = numbered.as_slice() else {
        panic!("{numbered:?}");
    };
    let mut names: Vec<&str> = asked.iter().map(|(_, name)| *name).collect();
    names.push("RETRYABLE");
    assert_eq!(Rule::ALL.map(Rule::name).as_slice(), names);
}

#[test]
fn answers_are_small() {
    assert!(size_of::<Result<Retry<'_>, Denied<'_>>>() <= 32);
    assert!(size_of::<Denied<'_>>() <= 16);
}
