//! Callers that ask at their own pace, whatever the answers, and remember all of it.
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use retryd::wire::pb::{self, retry_service_client::RetryServiceClient};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tonic::{Code, Request, transport::Channel};

use crate::support::{Process, context};

/// How long a caller waits. Whoever waited for a store that stands still would take longer.
const DEADLINE: Duration = Duration::from_secs(5);

/// One that asks, and how many calls it makes for each that fails.
#[derive(Clone, Debug)]
pub(crate) struct Tenant {
    pub(crate) name: String,
    pub(crate) asks_per_second: f64,
    pub(crate) requests_per_ask: u64,
}

impl Tenant {
    pub(crate) fn new(name: &str, asks_per_second: f64, requests_per_ask: u64) -> Tenant {
        Tenant { name: name.to_owned(), asks_per_second, requests_per_ask }
    }
}

/// One question, and what became of it. Times are since the load began.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) tenant: usize,
    pub(crate) replica: usize,
    pub(crate) sent: Duration,
    pub(crate) answered: Duration,
    /// Reported with the question.
    pub(crate) requests: u64,
    pub(crate) outcome: Result<Outcome, Code>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    pub(crate) is_granted: bool,
    pub(crate) is_degraded: bool,
}

impl Asked {
    pub(crate) fn is_granted(&self) -> bool {
        self.outcome.is_ok_and(|outcome| outcome.is_granted)
    }
}

pub(crate) struct Load {
    shared: Arc<Shared>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

struct Shared {
    tenants: Vec<Tenant>,
    start: Instant,
    lines: Vec<Line>,
    asked: Mutex<Vec<Asked>>,
}

/// A connection to one replica.
struct Line {
    replica: usize,
    is_taken_out: AtomicBool,
    client: RetryServiceClient<Channel>,
}

impl Load {
    pub(crate) async fn start(
        replicas: &[Process],
        connections: usize,
        tenants: Vec<Tenant>,
    ) -> Load {
        let mut lines = Vec::new();
        for replica in (0..replicas.len()).cycle().take(connections) {
            let client = replicas[replica].client().await;
            lines.push(Line { replica, is_taken_out: AtomicBool::new(false), client });
        }
        let shared =
            Arc::new(Shared { tenants, start: Instant::now(), lines, asked: Mutex::default() });
        let load = Load { shared, stop: CancellationToken::new(), tasks: TaskTracker::new() };
        for tenant in 0..load.shared.tenants.len() {
            let shared = Arc::clone(&load.shared);
            let asks = shared.keep_asking(tenant, load.tasks.clone());
            load.tasks.spawn(load.stop.clone().run_until_cancelled_owned(asks));
        }
        load
    }

    /// Since it began.
    pub(crate) fn now(&self) -> Duration {
        self.shared.start.elapsed()
    }

    pub(crate) fn since_start(&self, at: Instant) -> Duration {
        at.saturating_duration_since(self.shared.start)
    }

    /// Asks this replica no more, as a load balancer does once it has noticed.
    pub(crate) fn take_out(&self, replica: usize) {
        let its = self.shared.lines.iter().filter(|line| line.replica == replica);
        its.for_each(|line| line.is_taken_out.store(true, Ordering::Relaxed));
    }

    /// Stops, waits for every answer, and tells all of it in the order of sending.
    pub(crate) async fn end(self) -> Vec<Asked> {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        let mut asked = std::mem::take(&mut *self.shared.asked.lock().unwrap());
        asked.sort_by_key(|asked| asked.sent);
        asked
    }
}

impl Shared {
    async fn keep_asking(self: Arc<Shared>, tenant: usize, tasks: TaskTracker) {
        let period = Duration::from_secs_f64(1.0 / self.tenants[tenant].asks_per_second);
        tokio::time::sleep(period.mul_f64(fastrand::f64())).await;
        let mut pace = interval(period);
        pace.set_missed_tick_behavior(MissedTickBehavior::Burst);
        loop {
            pace.tick().await;
            tasks.spawn(Arc::clone(&self).ask(tenant));
        }
    }

    async fn ask(self: Arc<Shared>, tenant: usize) {
        let line = loop {
            let line = &self.lines[fastrand::usize(..self.lines.len())];
            if !line.is_taken_out.load(Ordering::Relaxed) {
                break line;
            }
        };
        let Tenant { name, requests_per_ask, .. } = &self.tenants[tenant];
        let usage = pb::Usage { requests: *requests_per_ask, ..Default::default() };
        let mut question = Request::new(pb::RetryContext { usage: Some(usage), ..context(name) });
        question.set_timeout(DEADLINE);
        let mut client = line.client.clone();
        let sent = self.start.elapsed();
        let answer = client.decide(question).await;
        let answered = self.start.elapsed();
        let outcome = match answer {
            Ok(decision) => Ok(Outcome {
                is_granted: decision.get_ref().verdict() == pb::Verdict::Retry,
                is_degraded: decision.get_ref().degraded,
            }),
            Err(status) => Err(status.code()),
        };
        let asked = Asked {
            tenant,
            replica: line.replica,
            sent,
            answered,
            requests: *requests_per_ask,
            outcome,
        };
        self.asked.lock().unwrap().push(asked);
    }
}
