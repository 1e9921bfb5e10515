//! An outage, played on a virtual clock: what a service goes through under each way to retry.
//!
//! ```text
//! clients ──▶ queue ──▶ workers            one heap of events, in whole microseconds
//!    ▲  │ failed, or too late
//!    │  ▼
//! contestant: repeat it, and when?         retryd's are the real decider and the real budgets
//! ```
//!
//! Nothing here reads a clock, and one seed gives one report, on every machine.
mod chance;
mod check;
mod contestants;
mod entitled;
mod events;
mod file;
mod hand;
mod meter;
mod play;
pub mod pool;
mod replica;
pub mod report;
pub mod scenario;
mod service;
mod world;

pub use play::play;
pub use report::{Cell, Outcome, Played, Report, Second};
pub use scenario::Scenario;
