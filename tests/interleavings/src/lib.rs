//! The engine and the budgets of retryd as they are, with locks that a scheduler knows.
#![allow(dead_code, unused_imports, reason = "only the store is asked here")]
#[path = "../../../src/budget/mod.rs"]
pub mod budget;
#[path = "../../../src/clock.rs"]
pub mod clock;
#[path = "../../../src/engine/mod.rs"]
pub mod engine;
