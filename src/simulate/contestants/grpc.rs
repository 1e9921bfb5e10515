//! gRPC's own retries with its retry throttling (gRFC A6).
use super::{Contestant, Entry, Failed, Failure, Succeeded, clients, step_us};
use crate::simulate::chance::scaled;

pub(super) const ENTRY: Entry = Entry {
    name: "grpc-throttling",
    title: "gRPC retryThrottling, per client",
    source: "gRFC A6 with the values of its examples: maxAttempts 4, initialBackoff 0.1s, \
             maxBackoff 1s, backoffMultiplier 2, jitter 0.8 to 1.2, UNAVAILABLE; maxTokens 10, \
             tokenRatio 0.1. A6 knows no time limit of an attempt: one that times out has ended its \
             call with DEADLINE_EXCEEDED (https://github.com/grpc/proposal/blob/master/A6-client-retries.md).",
    enter: |scenario, _, _| Box::new(Grpc { tokens: vec![TOKENS_MAX; clients(scenario)] }),
};

const ATTEMPTS_MAX: u32 = 4;
const BASE_US: u64 = 100_000;
const MAX_US: u64 = 1_000_000;
/// Thousandths of a token.
const TOKENS_MAX: u32 = 10_000;
const TOKEN: u32 = 1_000;
const TOKEN_RATIO: u32 = 100;

/// One `token_count` a client: all calls go to one server name.
struct Grpc {
    tokens: Vec<u32>,
}

impl Contestant for Grpc {
    fn failed(&mut self, failed: &Failed) -> Option<u64> {
        if failed.failure == Failure::TimedOut {
            return None;
        }
        let tokens = self.tokens.get_mut(failed.client)?;
        *tokens = tokens.saturating_sub(TOKEN);
        let step_us = step_us(BASE_US, failed.attempts - 1, MAX_US);
        let wait_us = step_us * 8 / 10 + scaled(step_us * 4 / 10, u64::from(failed.draw));
        (failed.attempts < ATTEMPTS_MAX && TOKENS_MAX / 2 < *tokens).then_some(wait_us)
    }

    fn succeeded(&mut self, succeeded: &Succeeded) {
        if let Some(tokens) = self.tokens.get_mut(succeeded.client) {
            *tokens = (*tokens + TOKEN_RATIO).min(TOKENS_MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{FAILED, SUCCEEDED};
    use super::*;

    #[test]
    fn half_of_the_tokens_is_too_few() {
        let mut grpc = Grpc { tokens: vec![TOKENS_MAX; 2] };
        let granted = [(); 5].map(|()| grpc.failed(&FAILED).is_some());
        assert_eq!(granted, [true, true, true, true, false], "9, 8, 7, 6 and 5 are left of 10");
        assert!(grpc.failed(&Failed { client: 1, ..FAILED }).is_some(), "each client has its own");
        // One more failure leaves 4, and 21 successes make 6.1 of them.
        assert!(grpc.failed(&FAILED).is_none());
        (0..21).for_each(|_| grpc.succeeded(&SUCCEEDED));
        assert!(grpc.failed(&FAILED).is_some(), "5.1 are left");
        assert!(grpc.failed(&FAILED).is_none(), "4.1 are left");
    }

    #[test]
    fn the_fourth_attempt_is_the_last_and_a_timeout_ends_the_call() {
        let mut grpc = Grpc { tokens: vec![TOKENS_MAX] };
        let waits = [1, 2, 3, 4].map(|attempts| grpc.failed(&Failed { attempts, ..FAILED }));
        assert_eq!(waits, [Some(119_999), Some(239_999), Some(479_999), None]);
        let timed_out = Failed { failure: Failure::TimedOut, ..FAILED };
        assert_eq!(grpc.failed(&timed_out), None);
        assert_eq!(grpc.tokens, [6_000], "which no token counts");
        let mut grpc = Grpc { tokens: vec![TOKENS_MAX] };
        assert_eq!(grpc.failed(&Failed { draw: 0, ..FAILED }), Some(80_000));
    }
}
