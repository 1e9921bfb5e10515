//! skeleton
pub mod budget;
pub mod clock;
pub mod engine;
pub mod policy;
