//! The kit against a real retryd: the vectors, the scenarios, and what those do not reach.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at what it does not expect"
)]

mod calls;
mod failures;
mod json;
mod layer;
mod play;
#[path = "../../../../tests/vectors/subset.rs"]
mod subset;
mod testbed;
mod vectors;
