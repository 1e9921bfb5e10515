//! Budgets that replicas share: the same replicas, exchange and pool under a network that fails,
//! and the guarantee checked in every window afterwards.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]
mod equality;
mod model;
mod server;
