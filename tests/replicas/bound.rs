//! The printed guarantee, held against a log of callers in every window.
//!
//! A caller knows when it sent and when it was answered; what it was told was decided in between. So
//! a grant counts in a window only if all of that time lies in it, and a report does if any of it
//! may: whoever breaks this bound has broken the guarantee, whatever was late.
use std::time::Duration;

use retryd::budget::ratio;

use crate::load::Asked;

/// What is guaranteed of one tenant.
#[derive(Clone, Debug)]
pub(crate) struct Guarantee {
    pub(crate) limits: ratio::Limits,
    pub(crate) replicas: u32,
    /// Replicas that were without the store for a while, and when.
    pub(crate) cut_off: Vec<(Duration, Duration)>,
    /// What a replica without the store has of the floor: nothing with `deny`.
    pub(crate) has_local_share: bool,
}

/// A balance of one process, as the policies of these tests say it.
pub(crate) const LIMITS: ratio::Limits = ratio::Limits {
    percent: 20,
    interval_ms: 10_000,
    floor: ratio::Floor { count: 10, interval_ms: 1_000 },
};

impl Guarantee {
    /// By how much the worst window exceeds its bound; what is below zero holds.
    pub(crate) fn worst_excess(&self, asked: &[&Asked]) -> f64 {
        let windows = Windows::of(self, asked);
        let fixed = f64::from(self.limits.floor.count) + f64::from(self.replicas);
        let Some((from, to)) = self.outage() else {
            return windows.worst(|_| true, |_| true) - fixed;
        };
        let extra = self.cut_off.len() as f64 * self.share();
        [
            windows.worst(|_| true, |y| y < from) - fixed,
            windows.worst(|x| to < x, |_| true) - fixed,
            windows.worst(|x| x <= to, |y| from <= y) - fixed - extra,
        ]
        .into_iter()
        .fold(f64::NEG_INFINITY, f64::max)
    }

    fn outage(&self) -> Option<(f64, f64)> {
        let from = self.cut_off.iter().map(|(from, _)| ms(*from)).reduce(f64::min)?;
        let to = self.cut_off.iter().map(|(_, to)| ms(*to)).reduce(f64::max)?;
        Some((from, to))
    }

    /// A replica's part of the floor.
    fn share(&self) -> f64 {
        if self.has_local_share {
            f64::from(self.limits.floor.count) / f64::from(self.replicas)
        } else {
            0.0
        }
    }

    /// What time allows until a moment.
    fn refilled(&self, at: f64) -> f64 {
        let away: f64 =
            self.cut_off.iter().map(|(from, to)| (at.min(ms(*to)) - ms(*from)).max(0.0)).sum();
        let floor = &self.limits.floor;
        (f64::from(floor.count) * at + self.share() * away) / floor.interval_ms as f64
    }
}

/// Beginnings and ends of windows, each with its side of the bound: the granted and the allowed are
/// differences of sums until the end and until the beginning.
struct Windows {
    begins: Vec<(f64, f64)>,
    ends: Vec<(f64, f64)>,
}

impl Windows {
    fn of(guarantee: &Guarantee, asked: &[&Asked]) -> Windows {
        let each = f64::from(guarantee.limits.percent) / 100.0;
        let interval = guarantee.limits.interval_ms as f64;
        let granted = || asked.iter().filter(|asked| asked.is_granted());
        let sent = sorted(granted().map(|asked| ms(asked.sent)));
        let answered = sorted(granted().map(|asked| ms(asked.answered)));
        let reported = Sum::of(asked.iter().map(|asked| (ms(asked.sent), asked.requests)));
        // A report without an answer may come at any time.
        let is_known = |asked: &&&Asked| asked.outcome.is_ok();
        let surely_reported = asked.iter().filter(is_known);
        let surely_reported =
            Sum::of(surely_reported.map(|asked| (ms(asked.answered), asked.requests)));
        let begin = |(before, at): (usize, &f64)| {
            let earned = each * surely_reported.before(at - interval);
            (*at, before as f64 - earned - guarantee.refilled(*at))
        };
        let end = |(before, at): (usize, &f64)| {
            let earned = each * reported.until(*at);
            (*at, (before + 1) as f64 - earned - guarantee.refilled(*at))
        };
        Windows {
            begins: sent.iter().enumerate().map(begin).collect(),
            ends: answered.iter().enumerate().map(end).collect(),
        }
    }

    /// The most that was granted beyond what was earned and refilled, in windows of these.
    fn worst(&self, begins: impl Fn(f64) -> bool, ends: impl Fn(f64) -> bool) -> f64 {
        let mut before = self.begins.iter().filter(|(at, _)| begins(*at)).peekable();
        let (mut lowest, mut worst) = (f64::INFINITY, f64::NEG_INFINITY);
        for (at, end) in self.ends.iter().filter(|(at, _)| ends(*at)) {
            while let Some((_, begin)) = before.next_if(|(begin, _)| begin <= at) {
                lowest = lowest.min(*begin);
            }
            worst = worst.max(end - lowest);
        }
        worst
    }
}

/// Counts by the time at which they came.
struct Sum(Vec<(f64, u64)>);

impl Sum {
    fn of(counts: impl Iterator<Item = (f64, u64)>) -> Sum {
        let mut counts: Vec<_> = counts.collect();
        counts.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        let mut sum = 0;
        for (_, count) in &mut counts {
            sum += *count;
            *count = sum;
        }
        Sum(counts)
    }

    fn before(&self, at: f64) -> f64 {
        self.first(self.0.partition_point(|(time, _)| *time < at))
    }

    fn until(&self, at: f64) -> f64 {
        self.first(self.0.partition_point(|(time, _)| *time <= at))
    }

    fn first(&self, number: usize) -> f64 {
        number.checked_sub(1).map_or(0.0, |last| self.0[last].1 as f64)
    }
}

fn sorted(times: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut times: Vec<_> = times.collect();
    times.sort_by(f64::total_cmp);
    times
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

/// What one exact balance would have granted for the same reports and asks.
pub(crate) fn entitled(limits: &ratio::Limits, asked: &[&Asked]) -> u64 {
    let mut balance = ratio::Balance::fresh(limits, 0);
    let mut granted = 0;
    for asked in asked {
        let now_ms = asked.sent.as_millis().try_into().unwrap();
        let usage = retryd::budget::Usage { requests: asked.requests, ..Default::default() };
        balance = balance.deposit(limits, &usage, now_ms);
        if let Some((next, _)) = balance.withdraw(limits, 1, now_ms) {
            (balance, granted) = (next, granted + 1);
        }
    }
    granted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Outcome;

    const GUARANTEE: Guarantee =
        Guarantee { limits: LIMITS, replicas: 3, cut_off: Vec::new(), has_local_share: true };

    /// Ten seconds of asks, 5 ms under way each, of which so many budgets decide.
    fn history(budgets: u64) -> Vec<Asked> {
        let mut balances: Vec<_> =
            (0..budgets).map(|_| ratio::Balance::fresh(&LIMITS, 0)).collect();
        let usage = retryd::budget::Usage { requests: 1, ..Default::default() };
        let ask = |at_ms: u64| {
            let balance = &mut balances[usize::try_from(at_ms / 5 % budgets).unwrap()];
            *balance = balance.deposit(&LIMITS, &usage, at_ms);
            let next = balance.withdraw(&LIMITS, 1, at_ms);
            *balance = next.as_ref().map_or(*balance, |(next, _)| *next);
            Asked {
                tenant: 0,
                replica: 0,
                sent: Duration::from_millis(at_ms.saturating_sub(2)),
                answered: Duration::from_millis(at_ms + 3),
                requests: 1,
                outcome: Ok(Outcome { is_granted: next.is_some(), is_degraded: false }),
            }
        };
        (0..10_000).step_by(5).map(ask).collect()
    }

    fn excess(guarantee: &Guarantee, history: &[Asked]) -> f64 {
        guarantee.worst_excess(&history.iter().collect::<Vec<_>>())
    }

    #[test]
    fn one_budget_holds_and_two_break_it() {
        assert!(excess(&GUARANTEE, &history(1)) <= 0.0);
        assert!(50.0 < excess(&GUARANTEE, &history(2)));
    }

    #[test]
    fn replicas_that_are_cut_off_have_their_shares_besides() {
        let broken = excess(&GUARANTEE, &history(2));
        let second = |s| Duration::from_secs(s);
        let away = |cut_off| Guarantee { cut_off, ..GUARANTEE };
        let later = excess(&away(vec![(second(20), second(30))]), &history(2));
        assert!((later - broken).abs() < 1e-6);
        let all = away(vec![(second(0), second(10)); 3]);
        assert!(excess(&all, &history(2)) < 3.0, "three shares are a second floor");
        let deny = Guarantee { has_local_share: false, ..all };
        assert!((excess(&deny, &history(2)) - broken).abs() < 1e-6);
    }

    #[test]
    fn what_one_budget_grants_is_what_callers_are_entitled_to() {
        let history = history(1);
        let granted = history.iter().filter(|asked| asked.is_granted()).count();
        let entitled = entitled(&LIMITS, &history.iter().collect::<Vec<_>>());
        assert!(granted.abs_diff(entitled.try_into().unwrap()) <= 1);
    }
}
