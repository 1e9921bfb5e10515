//! Budgets that replicas share: the same replicas, exchange and pool under a network that fails,
//! and the guarantee checked in every window afterwards.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]
mod accuracy;
mod callers;
mod equality;
mod guarantee;
mod histories;
mod network;
mod plan;
mod rounds;
mod seeds;
#[path = "../stores/servers/mod.rs"]
#[allow(unused_imports, reason = "one kind of server is enough")]
#[allow(clippy::disallowed_methods, reason = "a server runs on the real clock")]
mod servers;
mod simulation;
