//! What one seed decides: the fleet, its budgets, what callers do, and what fails.
use fastrand::Rng;
use retryd::budget::{Budget, Limits, OnStoreLoss, Scope, bucket, ratio, throttle};

#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) replicas: usize,
    /// The simulation goes in steps of so much.
    pub(crate) step_ms: u64,
    pub(crate) until_ms: u64,
    pub(crate) network: Network,
    pub(crate) budgets: Vec<(Budget, Traffic)>,
    /// In the order of time.
    pub(crate) faults: Vec<(u64, Fault)>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Network {
    pub(crate) latency_ms: (u64, u64),
    /// Of a million messages.
    pub(crate) lost: u32,
}

/// What callers do to one balance.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traffic {
    /// Requests of a second.
    pub(crate) rate: f64,
    /// How many of a hundred fail, and ask.
    pub(crate) failing: u32,
    pub(crate) shape: Shape,
    pub(crate) reports: Place,
    pub(crate) asks: Place,
    /// How many of a hundred retries are given back.
    pub(crate) released: u32,
    /// How many of a hundred asks take whatever there is.
    pub(crate) greedy: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape {
    Steady,
    /// All requests of a period at its beginning.
    Bursts {
        period_ms: u64,
    },
    /// Reports all the time; asks of everybody for all that there is, once in a period.
    Storms {
        period_ms: u64,
    },
    /// Nothing in the second half of each period.
    OnAndOff {
        period_ms: u64,
    },
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    Anywhere,
    At(usize),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// Nothing passes between a replica and the pools.
    Partition(usize),
    /// Answers are lost, what is asked is done.
    Deafen(usize),
    /// Everything is held, and passes when it is over.
    Hold(usize),
    Repair(usize),
    /// Gone with all that it holds.
    Crash(usize),
    /// Gives back what it holds.
    Exit(usize),
    Start(usize),
    /// The host of the pools fails, and its memory with it or not.
    StopPools {
        forgets: bool,
    },
    StartPools,
    Forget,
    Refuse(bool),
    /// The time of day of the host goes back.
    SetBack {
        by_ms: u64,
    },
}

/// The last part of a run, in which nothing fails any more.
pub(crate) const CALM_MS: u64 = 4_000;

impl Plan {
    pub(crate) fn of(seed: u64) -> Plan {
        let mut rng = Rng::with_seed(seed);
        let replicas = rng.usize(2..=10);
        let until_ms = rng.u64(8..=16) * 1_000;
        let budgets = (0..rng.usize(1..=3)).map(|number| {
            let limits = limits(&mut rng);
            let on_store_loss =
                if rng.bool() { OnStoreLoss::LocalShare } else { OnStoreLoss::Deny };
            let name = format!("budget-{number}").into();
            let budget = Budget { name, scope: Scope::Tenant, limits, on_store_loss };
            (budget, Traffic::any(&mut rng, replicas))
        });
        let budgets = budgets.collect();
        let latency_ms = one_of(&mut rng, &[(0, 1), (0, 5), (1, 20), (5, 40), (0, 90)]);
        let network = Network { latency_ms, lost: one_of(&mut rng, &[0, 0, 5_000, 50_000]) };
        let faults = faults(&mut rng, replicas, until_ms - CALM_MS);
        Plan {
            seed,
            replicas,
            step_ms: one_of(&mut rng, &[5, 10, 10]),
            until_ms,
            network,
            budgets,
            faults,
        }
    }
}

fn limits(rng: &mut Rng) -> Limits {
    let costs = one_of(
        rng,
        &[
            bucket::Costs::AWS_2026,
            bucket::Costs::AWS_LEGACY,
            bucket::Costs { transient: 1, throttling: 2, timeout: 3 },
        ],
    );
    match rng.u32(..10) {
        0 => Limits::Throttle(throttle::Limits { tokens_max: 10, token_ratio_thousandths: 100 }),
        1 | 2 => {
            Limits::TokenBucket(bucket::Limits { capacity: one_of(rng, &[14, 60, 500]), costs })
        }
        _ => {
            let (count, interval_ms) = one_of(
                rng,
                &[
                    (0, 1_000),
                    (1, 1_000),
                    (1, 3_600_000),
                    (3, 1_000),
                    (10, 1_000),
                    (10, 5_000),
                    (20, 60_000),
                    (50, 1_000),
                    (200, 1_000),
                ],
            );
            Limits::Ratio(ratio::Limits {
                percent: one_of(rng, &[0, 0, 0, 1, 20, 20, 70, 100, 300]),
                interval_ms: one_of(rng, &[1_000, 2_000, 10_000, 10_000]),
                floor: ratio::Floor { count, interval_ms },
            })
        }
    }
}

impl Traffic {
    fn any(rng: &mut Rng, replicas: usize) -> Traffic {
        let shape = match rng.u32(..6) {
            2 | 3 => Shape::Storms { period_ms: one_of(rng, &[700, 1_500, 3_000, 4_500]) },
            0 => Shape::Bursts { period_ms: one_of(rng, &[1_000, 3_000, 7_000]) },
            1 => Shape::OnAndOff { period_ms: one_of(rng, &[2_000, 6_000, 14_000]) },
            _ => Shape::Steady,
        };
        let place = |rng: &mut Rng| match rng.u32(..3) {
            0 => Place::At(rng.usize(..replicas)),
            _ => Place::Anywhere,
        };
        Traffic {
            rate: one_of(rng, &[0.5, 5.0, 20.0, 60.0]),
            failing: one_of(rng, &[10, 50, 100]),
            shape,
            reports: place(rng),
            asks: place(rng),
            released: one_of(rng, &[0, 0, 0, 30]),
            greedy: one_of(rng, &[0, 5, 50]),
        }
    }

    /// Requests in the `step_ms` from `now_ms` on.
    pub(crate) fn requests(&self, rng: &mut Rng, now_ms: u64, step_ms: u64) -> u64 {
        let expected = match self.shape {
            Shape::Steady | Shape::Storms { .. } => self.rate * step_ms as f64 / 1_000.0,
            Shape::Bursts { period_ms } if now_ms % period_ms < step_ms => {
                self.rate * period_ms as f64 / 1_000.0
            }
            Shape::OnAndOff { period_ms } if now_ms % period_ms < period_ms / 2 => {
                self.rate * step_ms as f64 / 500.0
            }
            Shape::Bursts { .. } | Shape::OnAndOff { .. } => 0.0,
        };
        #[allow(clippy::cast_possible_truncation, reason = "a small number")]
        let whole = expected as u64;
        whole + u64::from(rng.f64() < expected.fract())
    }
}

impl Place {
    pub(crate) fn pick(self, rng: &mut Rng, replicas: usize) -> usize {
        match self {
            Place::Anywhere => rng.usize(..replicas),
            Place::At(replica) => replica,
        }
    }
}

/// Each begins and ends within the time.
fn faults(rng: &mut Rng, replicas: usize, until_ms: u64) -> Vec<(u64, Fault)> {
    let mut faults = Vec::new();
    for _ in 0..rng.usize(0..=6) {
        let from = rng.u64(..until_ms);
        let long = one_of(rng, &[60, 300, 800, 3_000, 8_000]);
        let to = (from + rng.u64(1..=long)).min(until_ms);
        let one = rng.usize(..replicas);
        match rng.u32(..12) {
            0 => faults.extend([(from, Fault::Partition(one)), (to, Fault::Repair(one))]),
            1 => faults.extend([(from, Fault::Deafen(one)), (to, Fault::Repair(one))]),
            2 => faults.extend([(from, Fault::Hold(one)), (to, Fault::Repair(one))]),
            3 | 4 => faults.extend([(from, Fault::Crash(one)), (to, Fault::Start(one))]),
            5 => faults.extend([(from, Fault::Exit(one)), (to, Fault::Start(one))]),
            6 => {
                let forgets = rng.bool();
                faults.extend([(from, Fault::StopPools { forgets }), (to, Fault::StartPools)]);
            }
            7 => faults.push((from, Fault::Forget)),
            8 => faults.extend([(from, Fault::Refuse(true)), (to, Fault::Refuse(false))]),
            9 => {
                faults.push((from, Fault::SetBack { by_ms: one_of(rng, &[50, 2_000, 3_600_000]) }))
            }
            10 => {
                for each in 0..replicas {
                    faults.extend([(from, Fault::Partition(each)), (to, Fault::Repair(each))]);
                }
            }
            _ => {
                for each in 0..replicas {
                    faults.extend([(from, Fault::Hold(each)), (to, Fault::Repair(each))]);
                }
            }
        }
    }
    faults.sort_by_key(|(at_ms, _)| *at_ms);
    faults
}

fn one_of<T: Copy>(rng: &mut Rng, all: &[T]) -> T {
    all[rng.usize(..all.len())]
}
