//! Answers one question the same way for every language: *may this failed attempt be repeated,
//! when, and why (not)?*
//!
//! | in reading order | |
//! |---|---|
//! | [`engine`] | the decision: pure, in four typed stages |
//! | [`budget`] | who pays for a retry: pure balances, and the store that keeps them |
//! | [`remote`] | the pools of shared budgets in Redis or Valkey |
//! | [`policy`] | the policy file, read and checked |
//! | [`decider`] | policy, budgets and engine together |
//! | [`reload`] | the policy file, read again when it changes |
//! | [`wire`] | messages in and out, parsed once |
//! | [`decision_log`] | decisions as JSON lines, and decided anew |
//! | [`shadow`] | a second set of policies, asked beside the one in force |
//! | [`simulate`] | an outage, played with and without the budgets |
//! | [`service`] | the two gRPC services |
//! | [`server`] | sockets, connections, health, and the end of the process |
//! | [`admin`] | metrics and readiness over HTTP |
//! | [`console`] | pages that ask and show, for people |
//! | [`telemetry`] | logs |
//! | [`traces`] | spans of calls, for a collector |
//! | [`clock`] | the only place that reads the clock or rolls dice |
//! | `watched` | files that are looked at again and again: is this news? |
//! | [`cli`] | the command line |
pub mod admin;
pub mod budget;
pub mod cli;
pub mod clock;
pub mod console;
pub mod decider;
pub mod decision_log;
pub mod engine;
pub mod policy;
pub mod reload;
pub mod remote;
pub mod server;
pub mod service;
pub mod shadow;
pub mod simulate;
pub mod telemetry;
pub mod traces;
mod watched;
pub mod wire;
