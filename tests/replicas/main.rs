//! Three processes that share their budgets over a real store, under load and while things fail.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may")]
#![allow(clippy::indexing_slicing, reason = "a test may")]
#![allow(clippy::disallowed_methods, reason = "a process runs on the real clock")]
mod accuracy;
mod bound;
mod budget_service;
mod commands;
mod failing_replicas;
mod failing_stores;
mod load;
mod names;
mod proxy;
mod refusing_stores;
mod scene;
#[allow(unused_imports, reason = "not every test uses everything")]
#[path = "../stores/servers/mod.rs"]
mod servers;
#[allow(dead_code, reason = "not every test uses everything")]
#[path = "../process/support.rs"]
mod support;
