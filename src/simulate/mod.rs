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
pub mod report;
pub mod scenario;

pub use report::{Cell, Outcome, Played, Report, Second};
pub use scenario::Scenario;
