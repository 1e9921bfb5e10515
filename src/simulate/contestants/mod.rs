//! What clients may do about a failed attempt, each from its own documents.
mod aws;
mod envoy;
mod grpc;
mod naive;
mod never;
mod retryd;

pub(super) use retryd::{OPERATION, TENANT, question};

use super::scenario::Scenario;
use crate::policy::Policies;

/// Decides for all clients whether a failed attempt is repeated, and learns what happens to them.
pub(super) trait Contestant {
    /// An attempt leaves a client.
    fn sent(&mut self, _sent: &Sent) {}

    /// An attempt has failed. How long to wait before the next one; `None`: there is none.
    fn failed(&mut self, failed: &Failed) -> Option<u64>;

    /// A call has ended well.
    fn succeeded(&mut self, _succeeded: &Succeeded) {}

    /// A wait that this contestant has asked for would not end before the call's deadline: the call
    /// has failed.
    fn cut_short(&mut self, _client: usize) {}

    /// Retries that one exact budget would have granted that heard what this contestant was told.
    /// `None`: it is told nothing.
    fn entitled(&self) -> Option<u64> {
        None
    }

    /// Does what is due by now. When it wants to be woken again.
    fn wake(&mut self, _now_us: u64) -> Option<u64> {
        None
    }
}

/// An attempt leaves a client.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    /// From 0.
    pub(super) client: usize,
    /// Attempts of its call, this one included.
    pub(super) attempts: u32,
}

/// An attempt has failed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Failed {
    pub(super) client: usize,
    /// Attempts of its call, this one included.
    pub(super) attempts: u32,
    pub(super) failure: Failure,
    /// The operation is idempotent, or has a key that makes it so.
    pub(super) is_safe: bool,
    /// What is left of the call's deadline.
    pub(super) remaining_us: u64,
    /// For the jitter of the wait.
    pub(super) draw: u32,
    pub(super) now_us: u64,
}

/// A call has ended well.
#[derive(Clone, Copy, Debug)]
pub(super) struct Succeeded {
    pub(super) client: usize,
    pub(super) attempts: u32,
    /// Why the attempt before the last one has failed.
    pub(super) last_failure: Option<Failure>,
}

/// How an attempt fails here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// The service answered UNAVAILABLE: it was broken, or its queue was full.
    Unavailable,
    /// The caller gave up. The service may still do it, or have done it.
    TimedOut,
}

/// A contestant before it plays.
pub(super) struct Entry {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) source: &'static str,
    /// Makes one for a run, from the scenario, its policies and a seed.
    pub(super) enter: fn(&Scenario, &Policies, u64) -> Box<dyn Contestant>,
}

/// Every contestant, in the order of the report.
pub(super) const ENTRIES: &[Entry] = &[
    never::ENTRY,
    naive::ENTRY,
    grpc::ENTRY,
    envoy::ENTRY,
    aws::ENTRY,
    retryd::ALONE,
    retryd::SHARED,
    retryd::STORE_LOST,
];

/// A wait from nothing to `step_us`, `growth` doublings after the first and never above `max_us`:
/// exponential backoff with full jitter.
fn full_jitter_us(base_us: u64, growth: u32, max_us: u64, draw: u32) -> u64 {
    super::chance::scaled(step_us(base_us, growth, max_us), u64::from(draw))
}

fn step_us(base_us: u64, growth: u32, max_us: u64) -> u64 {
    base_us.saturating_mul(1_u64.checked_shl(growth).unwrap_or(u64::MAX)).min(max_us)
}

fn clients(scenario: &Scenario) -> usize {
    usize::try_from(scenario.clients.count).unwrap_or(usize::MAX)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The first attempt of client 0 has failed, with all the time there is.
    pub(in crate::simulate) const FAILED: Failed = Failed {
        client: 0,
        attempts: 1,
        failure: Failure::Unavailable,
        is_safe: true,
        remaining_us: 60_000_000,
        draw: u32::MAX,
        now_us: 0,
    };

    pub(in crate::simulate) const SUCCEEDED: Succeeded =
        Succeeded { client: 0, attempts: 1, last_failure: None };

    #[test]
    fn waits_double_up_to_their_maximum() {
        let waits = [0, 1, 2, 3, 64].map(|growth| step_us(100, growth, 500));
        assert_eq!(waits, [100, 200, 400, 500, 500]);
        assert_eq!(full_jitter_us(100, 1, 500, 0), 0);
        assert_eq!(full_jitter_us(100, 1, 500, 1 << 31), 100);
        assert_eq!(full_jitter_us(100, 1, 500, u32::MAX), 199);
    }
}
