//! The server, shown over real sockets: every limit, every ending, every phase of a drain.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]
mod admin;
mod at_once;
mod calls;
mod connections;
mod drain;
mod durations;
mod limits;
mod listen;
mod support;
