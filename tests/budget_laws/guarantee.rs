//! The guarantee of a ratio, against adversaries who choose the moments, the reports, what is given
//! back and the reloads. It holds in every window of every history.
use proptest::prelude::*;
use proptest::sample::Index;
use retryd::budget::{Usage, ratio};

use super::moments::{Gap, gap, start_ms};
use super::windows::{Happened, Window};

#[derive(Clone, Debug)]
enum Move {
    Report {
        requests: u64,
        period_ms: Option<u64>,
    },
    /// As many retries as there are, up to so many, in one grant.
    Acquire {
        retries_max: u32,
    },
    /// One retry after the other until the answer is no.
    Drain,
    Release {
        grant: Index,
        retries_max: u32,
    },
    Reload(ratio::Limits),
}

fn limits() -> impl Strategy<Value = ratio::Limits> {
    let percent = prop_oneof![Just(0), Just(20), Just(70), Just(100), 0..=1_000_u32];
    let interval_ms = prop_oneof![Just(1_000), Just(2_000), Just(10_000), 1_000..12_000_u64];
    let floor_ms = prop::sample::select(&super::windows::FLOOR_INTERVALS_MS[..]);
    let floor =
        (0..12_u32, floor_ms).prop_map(|(count, interval_ms)| ratio::Floor { count, interval_ms });
    (percent, interval_ms, floor).prop_map(|(percent, interval_ms, floor)| ratio::Limits {
        percent,
        interval_ms,
        floor,
    })
}

fn a_move() -> impl Strategy<Value = Move> {
    let period_ms = prop_oneof![3 => Just(None), 2 => (1..30_000_u64).prop_map(Some)];
    let retries_max = || prop_oneof![1..6_u32, Just(1_000)];
    prop_oneof![
        5 => (0..40_u64, period_ms)
            .prop_map(|(requests, period_ms)| Move::Report { requests, period_ms }),
        4 => retries_max().prop_map(|retries_max| Move::Acquire { retries_max }),
        4 => Just(Move::Drain),
        4 => (any::<Index>(), retries_max())
            .prop_map(|(grant, retries_max)| Move::Release { grant, retries_max }),
        1 => limits().prop_map(Move::Reload),
    ]
}

fn moves() -> impl Strategy<Value = Vec<(Gap, Move)>> {
    prop::collection::vec((gap(), a_move()), 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// Chance decides when he asks, and how much he takes.
    #[test]
    fn a_ratio_keeps_its_guarantee(
        limits in limits(),
        start_ms in start_ms(),
        moves in moves(),
    ) {
        let mut adversary = Adversary::new(limits, start_ms);
        for (gap, step) in moves {
            adversary.goes_on(gap, step);
        }
        holds(&adversary.happened)?;
    }

    /// He leaves nothing to lie, ever.
    #[test]
    fn a_ratio_keeps_its_guarantee_against_greed(
        limits in limits(),
        start_ms in start_ms(),
        moves in moves(),
    ) {
        let mut adversary = Adversary::new(limits, start_ms);
        for (gap, step) in moves {
            adversary.goes_on(gap, step);
            adversary.goes_on(Gap::Nothing, Move::Drain);
        }
        holds(&adversary.happened)?;
    }
}

struct Adversary {
    limits: ratio::Limits,
    balance: ratio::Balance,
    /// What he may give back: the event, what its grant has left, and how it was paid.
    grants: Vec<(usize, u32, ratio::Debit)>,
    now_ms: u64,
    happened: Vec<Happened>,
}

impl Adversary {
    fn new(limits: ratio::Limits, start_ms: u64) -> Adversary {
        Adversary {
            limits,
            balance: ratio::Balance::fresh(&limits, start_ms),
            grants: Vec::new(),
            now_ms: start_ms,
            happened: Vec::new(),
        }
    }

    fn goes_on(&mut self, gap: Gap, step: Move) {
        // The clock is one that only goes forward.
        let now_ms = gap.after(self.now_ms, &self.limits).max(self.now_ms);
        self.now_ms = now_ms;
        let mut event = Happened::nothing(now_ms, self.limits);
        match step {
            Move::Report { requests, period_ms } => {
                let usage = Usage { requests, period_ms, ..Usage::NOTHING };
                self.balance = self.balance.deposit(&self.limits, &usage, now_ms);
                event.reports(requests, period_ms);
            }
            Move::Acquire { retries_max } => {
                let retries = self.balance.available(&self.limits, now_ms).min(retries_max);
                event.granted = self.take(retries, now_ms);
            }
            Move::Drain => {
                while let taken @ 1.. = self.take(1, now_ms) {
                    event.granted += taken;
                }
            }
            Move::Release { grant, retries_max } if !self.grants.is_empty() => {
                let (of, left, debit) = grant.get_mut(&mut self.grants);
                let retries = retries_max.min(*left);
                *left -= retries;
                (self.balance, *debit) =
                    self.balance.give_back(&self.limits, *debit, retries, now_ms);
                event.released = Some((*of, retries));
            }
            Move::Release { .. } => {}
            Move::Reload(new) => {
                self.balance = self.balance.rescaled(&self.limits, &new, now_ms);
                self.limits = new;
                event.limits = new;
            }
        }
        self.happened.push(event);
    }

    fn take(&mut self, retries: u32, now_ms: u64) -> u32 {
        match self.balance.withdraw(&self.limits, retries, now_ms) {
            Some((left, debit)) => {
                self.balance = left;
                self.grants.push((self.happened.len(), retries, debit));
                retries
            }
            None => 0,
        }
    }
}

/// Retries granted and not released are no more than the bound, in every window that begins and
/// ends with a grant. A release counts from when it happens: nobody knew of it before.
fn holds(happened: &[Happened]) -> Result<(), TestCaseError> {
    for first in 0..happened.len() {
        if happened[first].granted == 0 {
            continue;
        }
        let mut window = Window::from(happened, first);
        for last in first..happened.len() {
            window.grow_to(last);
            prop_assert!(
                happened[last].granted == 0 || window.is_within_bound(),
                "from event {first} to {last}: {window:?}\n{:#?}",
                &happened[first..=last]
            );
        }
    }
    Ok(())
}
