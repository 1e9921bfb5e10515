//! The built binary as its users meet it: started, asked, given bad bytes, flooded and stopped.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may")]
#![allow(clippy::indexing_slicing, reason = "a test may")]
#![allow(clippy::disallowed_methods, reason = "a process runs on the real clock")]
mod bad_bytes;
mod budget_service;
mod callers;
mod certificates;
mod closed_pipes;
mod command_line;
mod config_map;
mod console;
mod decision_log;
mod drain;
mod ended;
mod flood;
mod limits;
mod metrics;
mod once;
mod policy_tests;
mod ports;
mod reload;
mod reload_under_load;
mod replay;
mod shadow;
mod stream;
mod stuck_log;
mod support;
mod tenants;
mod tls;
mod traces;
mod watch;
mod wrong_policies;
