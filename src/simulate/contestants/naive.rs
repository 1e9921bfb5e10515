//! What most code does: three attempts, and a wait that grows, with jitter.
use super::{Contestant, Entry, Failed, full_jitter_us};

pub(super) const ENTRY: Entry = Entry {
    name: "naive",
    title: "3 attempts, backoff with jitter",
    source: "Common practice: every failure is repeated, up to 3 attempts, after a random wait up \
             to 100 ms, then 200 ms (\"full jitter\", \
             https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/).",
    enter: |_, _, _| Box::new(Naive),
};

const ATTEMPTS_MAX: u32 = 3;
const BASE_US: u64 = 100_000;
const MAX_US: u64 = 5_000_000;

struct Naive;

impl Contestant for Naive {
    fn failed(&mut self, failed: &Failed) -> Option<u64> {
        let wait_us = full_jitter_us(BASE_US, failed.attempts - 1, MAX_US, failed.draw);
        (failed.attempts < ATTEMPTS_MAX).then_some(wait_us)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Failure, tests::FAILED};
    use super::*;

    #[test]
    fn the_third_attempt_is_the_last_whatever_fails() {
        let waits = [1, 2, 3].map(|attempts| {
            Naive.failed(&Failed { attempts, failure: Failure::TimedOut, is_safe: false, ..FAILED })
        });
        assert_eq!(waits, [Some(99_999), Some(199_999), None]);
    }
}
