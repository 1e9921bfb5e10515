//! Counts by the second, and what they come to.
use super::report::{Outcome, Second};
use super::scenario::Scenario;

const SECOND_US: u64 = 1_000_000;
const SECOND_MS: u64 = 1_000;

/// The counts of one run.
#[derive(Debug, Default)]
pub(super) struct Meter {
    curve: Vec<Second>,
    /// Seconds whose queue is written down.
    ended: usize,
    retries: u64,
    processed_again: u64,
}

impl Meter {
    /// Counts something in the second that `at_us` is in.
    pub(super) fn count(&mut self, at_us: u64, count: impl FnOnce(&mut Second)) {
        let place = usize::try_from(at_us / SECOND_US).unwrap_or(usize::MAX);
        if self.curve.len() <= place {
            self.curve.resize(place.saturating_add(1), Second::default());
        }
        if let Some(second) = self.curve.get_mut(place) {
            count(second);
        }
    }

    pub(super) fn retry(&mut self) {
        self.retries += 1;
    }

    pub(super) fn processed_again(&mut self) {
        self.processed_again += 1;
    }

    /// The time is `now_us`, and until now so many attempts were queued.
    pub(super) fn pass(&mut self, now_us: u64, queued: usize) {
        let now = usize::try_from(now_us / SECOND_US).unwrap_or(usize::MAX);
        let queued = u64::try_from(queued).unwrap_or(u64::MAX);
        for second in self.ended..now {
            let end_us = u64::try_from(second).unwrap_or(u64::MAX).saturating_mul(SECOND_US);
            self.count(end_us, |second| second.queued = queued);
        }
        self.ended = self.ended.max(now);
    }

    /// `entitled`: what one exact budget grants, that hears what the contestant tells. `entitled_at_once`:
    /// one that hears of each call as it begins.
    pub(super) fn outcome(
        self,
        scenario: &Scenario,
        seed: u64,
        entitled: u64,
        entitled_at_once: u64,
    ) -> Outcome {
        let sum = |field: fn(&Second) -> u64| self.curve.iter().map(field).sum::<u64>();
        let (calls, succeeded) = (sum(|second| second.calls), sum(|second| second.succeeded));
        let attempts = sum(|second| second.attempts);
        Outcome {
            seed,
            calls,
            succeeded,
            failed: calls - succeeded,
            attempts,
            retries: self.retries,
            entitled,
            entitled_at_once,
            for_nobody: sum(|second| second.for_nobody),
            processed_again: self.processed_again,
            amplification: ratio(attempts, calls).unwrap_or(1.0),
            success: ratio(succeeded, calls).unwrap_or(1.0),
            recovery_s: recovery_s(scenario, &self.curve),
            accuracy: ratio(self.retries, entitled),
            curve: self.curve,
        }
    }
}

/// Both are far below 2^53, so the quotient is the same on every machine.
#[expect(clippy::cast_precision_loss, reason = "counts of a run are far below 2^53")]
fn ratio(number: u64, of: u64) -> Option<f64> {
    (of != 0).then(|| number as f64 / of as f64)
}

/// From the end of the outage to the first second from which on enough calls succeed for long
/// enough. Only whole seconds in which calls began are looked at.
fn recovery_s(scenario: &Scenario, curve: &[Second]) -> Option<f64> {
    let to_ms = scenario.outage.to_ms();
    let whole = usize::try_from(scenario.duration_ms / SECOND_MS).unwrap_or(usize::MAX);
    let first = usize::try_from(to_ms.div_ceil(SECOND_MS)).unwrap_or(usize::MAX);
    let long = usize::try_from(scenario.recovered.for_ms.div_ceil(SECOND_MS)).unwrap_or(usize::MAX);
    let is_well = |second: &Second| {
        second.calls * u64::from(scenario.recovered.success_percent) <= second.succeeded * 100
    };
    let whole = curve.get(..whole.min(curve.len())).unwrap_or_default();
    let after = whole.get(first..).unwrap_or_default();
    let from = after.windows(long.max(1)).position(|seconds| seconds.iter().all(is_well))?;
    let from_ms = u64::try_from(first + from).unwrap_or(u64::MAX).saturating_mul(SECOND_MS);
    ratio(from_ms.saturating_sub(to_ms), SECOND_MS)
}
