//! What was played, and what came of it.
use serde::{Deserialize, Serialize};

use super::scenario::Scenario;

/// Everything that one `retryd simulate` found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The parameters that were played.
    pub scenario: Scenario,
    /// The seeds that were played, each by every contestant. In one seed all of them meet the same
    /// calls at the same times.
    pub seeds: Vec<u64>,
    /// In the order in which they should be shown: from no retries to retryd with its store lost.
    pub contestants: Vec<Played>,
    /// The scenario with other parameters, played with the first seed: point by point, and of each
    /// point every contestant in the order of [`contestants`](Report::contestants).
    pub grid: Vec<Cell>,
}

/// One contestant, and how it fared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Played {
    /// Names it in data: a to z and `-`, such as `grpc-throttling`. Unique.
    pub name: String,
    /// Names it for people, in few words.
    pub title: String,
    /// Where its rules and its sizes come from, with the sizes: one or two sentences and an address.
    pub source: String,
    /// One a seed, in the order of [`Report::seeds`].
    pub outcomes: Vec<Outcome>,
}

/// One contestant in one seed, from the first call to the end of the last.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The seed.
    pub seed: u64,
    /// Calls that began. Every one has ended: `calls = succeeded + failed`.
    pub calls: u64,
    /// Calls that were answered well in time.
    pub succeeded: u64,
    /// Calls that the caller was told have failed.
    pub failed: u64,
    /// Attempts that were sent to the service: `attempts = calls + retries`.
    pub attempts: u64,
    /// Attempts beyond the first of each call.
    pub retries: u64,
    /// Retries that one exact budget, by the policy of the scenario, would have granted for the
    /// same failed attempts. It hears of calls when retryd does, with a question or a report; of
    /// contestants that report nothing, the moment a call begins.
    pub entitled: u64,
    /// The same, had it heard of every call the moment it began. What is heard of late counts as
    /// fresh: so retryd may grant a little more than this.
    pub entitled_at_once: u64,
    /// Attempts that a worker finished after their caller had given up.
    pub for_nobody: u64,
    /// Operations that are not idempotent and have no key, and that the service did more than once:
    /// how often beyond the first. Double charges.
    pub processed_again: u64,
    /// `attempts / calls`. 1 without retries.
    pub amplification: f64,
    /// `succeeded / calls`, from 0 to 1.
    pub success: f64,
    /// Seconds from the end of the outage until calls succeed as before, for as long as the scenario asks
    /// (`recovered`). `None`: it stays down to the end.
    pub recovery_s: Option<f64>,
    /// `retries / entitled`. `None` where nothing was to be granted.
    pub accuracy: Option<f64>,
    /// One row a second, from 0. It goes on after the last call has begun
    /// (`scenario.duration_ms`), until the last attempt has ended.
    pub curve: Vec<Second>,
}

/// What happened within one second. The sums over all seconds are those of the [`Outcome`], and
/// every attempt ends in one way: `attempts = goodput + for_nobody + rejected + broken + dropped`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Second {
    /// Calls that began.
    pub calls: u64,
    /// Of the calls that began in this second, those that succeeded in the end.
    pub succeeded: u64,
    /// Attempts that reached the service: its load. First attempts and retries.
    pub attempts: u64,
    /// Attempts that the service answered well, to a caller that still waited.
    pub goodput: u64,
    /// Attempts that a worker finished for nobody.
    pub for_nobody: u64,
    /// Attempts that were rejected, because the queue was full.
    pub rejected: u64,
    /// Attempts that were answered with an error at once, in the outage or by the service's own failing.
    pub broken: u64,
    /// Attempts that were taken from the queue and not worked on: nobody waited for them any more.
    pub dropped: u64,
    /// Attempts whose caller gave up, whatever becomes of them.
    pub timed_out: u64,
    /// Attempts in the queue at the end of the second, also those that nobody waits for.
    pub queued: u64,
}

/// One contestant at one point of the grid, with the first seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// [`Played::name`].
    pub contestant: String,
    /// How long work took in the outage, in a hundredth of the usual: at 100 it only failed.
    pub work_percent: u32,
    /// How long the outage was.
    pub outage_ms: u64,
    /// Calls a second, of all clients.
    pub calls_per_second: u32,
    /// How many clients there were.
    pub clients: u32,
    /// Calls of a hundred that are not idempotent and have no key.
    pub without_key_percent: u32,
    /// See [`Outcome::amplification`].
    pub amplification: f64,
    /// See [`Outcome::success`].
    pub success: f64,
    /// See [`Outcome::recovery_s`].
    pub recovery_s: Option<f64>,
    /// See [`Outcome::accuracy`].
    pub accuracy: Option<f64>,
    /// See [`Outcome::processed_again`].
    pub processed_again: u64,
}
