//! A thousand seeds, and one.
use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::plan::Plan;
use super::simulation::play;

const SEEDS: u64 = 1_000;

#[test]
fn the_guarantee_holds_whatever_fails() {
    let next = AtomicU64::new(0);
    let seeds = std::env::var("SEEDS").map_or(SEEDS, |seeds| seeds.parse().unwrap());
    let failed = Mutex::new(Vec::new());
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let seed @ 0.. = next.fetch_add(1, Ordering::Relaxed)
                    && seed < seeds
                {
                    if seed % 100 == 99 {
                        println!("{} seeds began", seed + 1);
                    }
                    if let Err(wrong) = check(seed, false) {
                        println!("{wrong}");
                        failed.lock().unwrap().push(seed);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{} seeds failed: {failed:?}", failed.len());
}

/// `SEED=7 cargo test --test sharing one_seed -- --nocapture` tells all that happened.
#[test]
fn one_seed() {
    let seed = std::env::var("SEED").map_or(0, |seed| seed.parse().unwrap());
    if let Err(wrong) = check(seed, true) {
        panic!("{wrong}");
    }
}

fn check(seed: u64, in_full: bool) -> Result<(), String> {
    let plan = Plan::of(seed);
    let played = play(&plan, false);
    let mut wrong = String::new();
    for ((budget, traffic), history) in plan.budgets.iter().zip(&played.histories) {
        let Err(broken) = history.check() else { continue };
        writeln!(wrong, "{}: {broken}", budget.name).unwrap();
        if in_full {
            writeln!(wrong, "{budget:#?} {traffic:?}\n{}", history.trace(&broken)).unwrap();
            let (from_ms, to_ms) = (broken.from_ms.saturating_sub(1_000), broken.to_ms);
            for one in &played.executed {
                if one.pool.contains(&*budget.name) && (from_ms..=to_ms).contains(&one.at_ms) {
                    writeln!(wrong, "{one}").unwrap();
                }
            }
        }
    }
    for one in &played.not_healed {
        writeln!(wrong, "no retry after all was well again: {one}").unwrap();
    }
    if wrong.is_empty() {
        return Ok(());
    }
    if in_full {
        let Plan { replicas, step_ms, until_ms, network, faults, .. } = &plan;
        writeln!(wrong, "{replicas} replicas, {step_ms} ms a step, {until_ms} ms, {network:?}")
            .unwrap();
        faults.iter().for_each(|(at_ms, fault)| writeln!(wrong, "{at_ms:>7}  {fault:?}").unwrap());
    }
    let command = format!("SEED={seed} cargo test --test sharing one_seed -- --nocapture");
    Err(format!("{wrong}reproduce: {command}"))
}
