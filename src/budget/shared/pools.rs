//! The port to the store that holds the pools.
use std::{fmt, future::Future};

use super::exchange::{Call, Reply};

/// Reaches the pools, one call after the other. Each call must end within a bounded time, answered or
/// not: whoever exchanges waits for it.
pub trait Pools: Send + 'static {
    /// Tells the fleet that this replica lives, and learns of the others.
    fn attend(
        &mut self,
        attendance: Attendance,
    ) -> impl Future<Output = Result<Fleet, Failure>> + Send;

    /// Exchanges balances: one answer for each errand, in the same order.
    fn exchange(
        &mut self,
        errands: &[Errand],
    ) -> impl Future<Output = Vec<Result<Reply, Failure>>> + Send;

    /// Tells the fleet that this replica ends.
    fn leave(&mut self) -> impl Future<Output = Result<(), Failure>> + Send;
}

/// One call to one pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Errand {
    /// Names the pool. No two balances have the same.
    pub pool: Box<str>,
    /// The fleet's time as the replica knows it; 0 if it does not.
    pub now_ms: u64,
    /// What the replica says.
    pub call: Call,
}

/// What a replica tells of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attendance {
    /// The fleet's time as the replica knows it; 0 if it does not.
    pub now_ms: u64,
    /// When it attended last, in the fleet's time; 0: never. If the store's memory begins later, it
    /// has lost what it held.
    pub attended_ms: u64,
}

/// What the store tells of the fleet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fleet {
    /// The fleet's time at the store.
    pub now_ms: u64,
    /// Replicas seen in the last minute, this one included.
    pub replicas: u32,
    /// When the store was found empty, if it ever was.
    pub emptied_ms: Option<u64>,
}

/// Why a call has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The store has refused it: nothing of it was done.
    Refused(String),
    /// It may have been done, or not.
    Unknown(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Failure::Refused(text) | Failure::Unknown(text)) = self;
        f.write_str(text)
    }
}
