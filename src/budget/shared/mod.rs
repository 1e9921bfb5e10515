//! Budgets that several replicas share, by a store that all of them reach.
//!
//! ```text
//! Decide ── Share ── units and tokens of this replica, in memory
//!             │  every 100 ms: Call ──> pool: one key of the store
//!             │               <── Reply
//! ```
//!
//! Nothing on the path of a decision waits for the store. Units and tokens move between the
//! replicas and the pool, they are never copied: so what all replicas grant together is bounded by
//! what was earned, whatever is lost on the way.
mod demand;
pub mod exchange;
#[cfg(test)]
mod laws;
mod local;
pub mod pools;
mod price;
mod queue;
mod reach;
mod rounds;
mod share;
mod sharing;
mod ticker;
mod trade;

pub(in crate::budget) use queue::Waiting;
pub(in crate::budget) use share::Share;
pub use sharing::{Sharing, StoreState};
pub use ticker::Ticker;
