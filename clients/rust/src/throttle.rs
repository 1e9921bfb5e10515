//! The local throttle of a target, as gRFC A6 has it: what holds when retryd is silent.
use std::sync::{Mutex, PoisonError};

/// All in thousandths of a token.
const TOKENS_MAX: u32 = 10_000;
const FAILURE: u32 = 1_000;
const SUCCESS: u32 = 100;

/// Ten tokens: a failure takes one, a success brings a tenth, and it grants above half.
#[derive(Debug)]
pub(crate) struct Throttle(Mutex<u32>);

impl Default for Throttle {
    fn default() -> Throttle {
        Throttle(Mutex::new(TOKENS_MAX))
    }
}

impl Throttle {
    pub(crate) fn failure(&self) {
        self.change(|tokens| tokens.saturating_sub(FAILURE));
    }

    pub(crate) fn success(&self) {
        self.change(|tokens| tokens.saturating_add(SUCCESS).min(TOKENS_MAX));
    }

    pub(crate) fn grants(&self) -> bool {
        TOKENS_MAX < 2 * self.change(|tokens| tokens)
    }

    fn change(&self, change: impl FnOnce(u32) -> u32) -> u32 {
        let mut tokens = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *tokens = change(*tokens);
        *tokens
    }

    #[cfg(test)]
    #[expect(clippy::cast_possible_truncation, reason = "a test names at most three decimals")]
    pub(crate) fn with_tokens(tokens: f64) -> Throttle {
        Throttle(Mutex::new((tokens * 1000.0).round() as u32))
    }
}
