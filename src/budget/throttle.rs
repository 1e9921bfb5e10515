//! Failures counted against successes (gRFC A6).

/// Sizes of a throttle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Tokens of a full throttle, 3 to 1000.
    pub tokens_max: u32,
    /// What a success adds, in thousandths of a token, 1 to 1 000 000.
    pub token_ratio_thousandths: u32,
}
