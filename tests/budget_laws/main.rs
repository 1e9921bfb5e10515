//! Each model of a budget held against a slow one, which was written from the contract's text over
//! lists of events; and the guarantee of a ratio against adversaries.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]
mod bucket;
mod guarantee;
mod histories;
mod moments;
mod ratio;
mod slow_bucket;
mod slow_ratio;
mod slow_throttle;
mod throttle;
mod windows;
