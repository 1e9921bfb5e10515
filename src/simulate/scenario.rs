//! The parameters of an outage.
use serde::{Deserialize, Serialize};

/// Everything that a scenario file says, with the defaults for what it does not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scenario {
    /// Calls begin for so long. What has begun is played to its end.
    pub duration_ms: u64,
    /// Who calls.
    pub clients: Clients,
    /// What is called.
    pub service: Service,
    /// What goes wrong.
    pub outage: Outage,
    /// When all is well again.
    pub recovered: Recovered,
    /// How retryd is set up, for the contestants that ask it.
    pub retryd: Retryd,
    /// Other values to play, each with each.
    pub grid: Grid,
}

/// Who calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clients {
    /// Processes that call, each with its own state of retries where a contestant has one.
    pub count: u32,
    /// Calls a second, of all clients together. They begin at random moments (Poisson).
    pub calls_per_second: u32,
    /// An attempt is given up after so long.
    pub attempt_timeout_ms: u64,
    /// No attempt of a call is waited for longer than this after the call began.
    pub deadline_ms: u64,
    /// Calls of a hundred that are neither idempotent nor have a key that makes them so.
    pub without_key_percent: u32,
}

/// What is called: workers behind one queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Service {
    /// Attempts that are worked on at once.
    pub workers: u32,
    /// How long one takes, on average (exponentially distributed).
    pub work_ms: u64,
    /// Attempts that may wait. What finds the queue full is rejected as UNAVAILABLE.
    pub queue: u32,
    /// How much work is done for an attempt whose caller has given up before it began, in a hundredth of the usual:
    /// 100 where the service does not notice, 0 where it looks at deadlines.
    pub given_up_work_percent: u32,
}

/// What goes wrong. Both may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outage {
    /// When it begins.
    pub from_ms: u64,
    /// How long it lasts.
    pub length_ms: u64,
    /// Work that begins in it takes so long, in a hundredth of the usual: 100 changes nothing.
    pub work_percent: u32,
    /// Attempts of a hundred that are answered with UNAVAILABLE when they arrive in it.
    pub failing_percent: u32,
}

/// When all is well again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recovered {
    /// Of the calls that begin in one second, so many of a hundred succeed,
    pub success_percent: u32,
    /// in every second of so long.
    pub for_ms: u64,
}

/// How retryd is set up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retryd {
    /// A policy file, as text.
    pub policy: String,
    /// How long a question takes, there and back.
    pub question_ms: u64,
    /// Processes that share the budgets, where they are shared.
    pub replicas: u32,
    /// When the store is lost with all that it holds, where it is.
    pub store_lost_from_ms: u64,
    /// How long it is away.
    pub store_lost_ms: u64,
}

/// Other values, each played with each. An empty list stands for the scenario's own value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grid {
    /// Instead of [`Clients::calls_per_second`].
    pub calls_per_second: Vec<u32>,
    /// Instead of [`Outage::length_ms`].
    pub outage_ms: Vec<u64>,
    /// Instead of [`Clients::without_key_percent`].
    pub without_key_percent: Vec<u32>,
}

impl Outage {
    /// When it ends.
    pub fn to_ms(&self) -> u64 {
        self.from_ms.saturating_add(self.length_ms)
    }
}
