//! skeleton
pub mod admin;
pub mod budget;
pub mod clock;
pub mod engine;
pub mod policy;
pub mod server;
pub mod telemetry;
