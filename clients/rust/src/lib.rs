//! A tower layer that brings failed calls to retryd, and repeats them when it says so.
//!
//! [`Client::new`] takes [`Settings`]; [`Client::layer`] goes around a tonic channel or any HTTP
//! client that is a tower service. What a call says about itself stands in a [`Call`]:
//!
//! - `layer`: the tower layer, and the loop over the attempts of a call
//! - `body`: what can be sent again, and what is read of an answer
//! - `attempt`, `transport`, `hints`: what is known about a failed attempt
//! - `call`: what is asked about it, and the waits
//! - `client`, `link`: questions, reports, leases and releases
//! - `usage`, `lease`, `throttle`, `unasked`: what is counted, and what holds without an answer
mod attempt;
mod body;
mod call;
mod client;
mod grpc_timeout;
mod hints;
mod layer;
mod lease;
mod link;
mod settings;
mod throttle;
mod transport;
mod unasked;
mod usage;

pub use attempt::TimedOut;
pub use body::{Begun, RequestBody};
pub use client::Client;
pub use layer::{Call, Retry, RetryLayer};
pub use settings::{Operation, OwnRules, Settings, SettingsError};

/// Any error that a service may end with.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The contract: messages and clients, generated from `retryd/v1/retryd.proto`.
pub mod pb {
    #![allow(
        missing_docs,
        unreachable_pub,
        unused_qualifications,
        clippy::pedantic,
        clippy::allow_attributes_without_reason,
        reason = "generated"
    )]
    tonic::include_proto!("retryd.v1");
}

#[cfg(test)]
mod testing;
