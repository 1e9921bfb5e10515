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
    /// Calls a second, of all clients together.
    pub calls_per_second: u32,
    /// How the times between them are spread. `Random` makes a Poisson process.
    pub spread: Spread,
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
    /// How long one takes, on average.
    pub work_ms: u64,
    /// How that is spread.
    pub spread: Spread,
    /// Attempts that may wait. What finds the queue full is rejected as UNAVAILABLE.
    pub queue: u32,
    /// Attempts of a hundred that are answered with UNAVAILABLE when they arrive, also where all is
    /// well: a restart here, a lost connection there.
    pub failing_percent: u32,
    /// How much work is done for an attempt whose caller has given up before it began, in a hundredth of the usual:
    /// 100 where the service does not notice, 0 where it looks at deadlines.
    pub given_up_work_percent: u32,
}

/// How times are spread around their average.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Spread {
    /// Exponentially distributed.
    #[default]
    Random,
    /// All the same.
    Even,
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
    /// Attempts of a hundred that are answered with UNAVAILABLE when they arrive in it, instead of the
    /// service's own [`failing_percent`](Service::failing_percent).
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
    /// Instead of [`Outage::work_percent`].
    pub work_percent: Vec<u32>,
    /// Instead of [`Outage::length_ms`].
    pub outage_ms: Vec<u64>,
    /// Instead of [`Clients::calls_per_second`].
    pub calls_per_second: Vec<u32>,
    /// Instead of [`Clients::count`].
    pub clients: Vec<u32>,
    /// Instead of [`Clients::without_key_percent`].
    pub without_key_percent: Vec<u32>,
}

impl Outage {
    /// When it ends.
    pub fn to_ms(&self) -> u64 {
        self.from_ms.saturating_add(self.length_ms)
    }

    /// Whether it is at this time.
    pub(super) fn holds_at_us(&self, now_us: u64) -> bool {
        (self.from_ms..self.to_ms()).contains(&(now_us / 1_000))
    }
}

/// The policies of the default scenario, as in `default.yaml`.
const POLICY: &str = "\
version: 1
budgets:
  - name: retries
    scope: global
    ratio:
      percent: 20
      interval: 10s
      min_retry_rate: {count: 10, interval: 1s}
policies:
  - name: default
    budgets: [retries]
";

impl Default for Scenario {
    /// What `default.yaml` says.
    fn default() -> Scenario {
        Scenario {
            duration_ms: 120_000,
            clients: Clients {
                count: 100,
                calls_per_second: 350,
                spread: Spread::Random,
                attempt_timeout_ms: 1_000,
                deadline_ms: 5_000,
                without_key_percent: 10,
            },
            service: Service {
                workers: 20,
                work_ms: 40,
                spread: Spread::Random,
                queue: 800,
                failing_percent: 1,
                given_up_work_percent: 100,
            },
            outage: Outage {
                from_ms: 30_000,
                length_ms: 20_000,
                work_percent: 1_000,
                failing_percent: 20,
            },
            recovered: Recovered { success_percent: 95, for_ms: 5_000 },
            retryd: Retryd {
                policy: POLICY.to_owned(),
                question_ms: 1,
                replicas: 3,
                store_lost_from_ms: 40_000,
                store_lost_ms: 20_000,
            },
            grid: Grid {
                work_percent: vec![100, 1_000],
                outage_ms: vec![5_000, 40_000],
                calls_per_second: vec![250, 450],
                clients: vec![20, 500],
                without_key_percent: vec![0, 50],
            },
        }
    }
}
