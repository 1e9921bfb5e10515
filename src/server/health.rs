//! `grpc.health.v1`: what the process says of itself.
use std::sync::Arc;

use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use tonic_health::{
    ServingStatus::{self, NotServing, Serving},
    pb::health_server::HealthServer,
    server::{HealthReporter, HealthService},
};

/// The name that tells only whether the process lives. It stays SERVING during a drain, so that
/// nobody restarts a process that is finishing its calls.
pub const LIVENESS: &str = "liveness";

/// Names that tell whether calls should be sent here.
pub const READINESS: [&str; 3] = ["", "retryd.v1.RetryService", "retryd.v1.BudgetService"];

/// The name that tells whether the shared store answers. Unknown without one. Readiness does not
/// depend on it: a lost store must not take the process away.
const STORE: &str = "retryd.store";

/// Bytes of a question about health. It holds one name.
const QUESTION_MAX: usize = 1 << 10;

/// The health of the process. Clones are the same health.
#[derive(Clone, Debug)]
pub struct Health {
    // A drain must not be undone by a start that was slower: both hold this lock.
    reporter: Arc<Mutex<HealthReporter>>,
    service: HealthServer<HealthService>,
    started: CancellationToken,
    draining: CancellationToken,
}

impl Health {
    /// A process that lives and is not ready.
    pub async fn new() -> Health {
        let reporter = HealthReporter::new();
        // tonic-health reports "" as SERVING from birth.
        set(&reporter, NotServing).await;
        reporter.set_service_status(LIVENESS, Serving).await;
        let service = HealthService::from_health_reporter(reporter.clone());
        Health {
            reporter: Arc::new(Mutex::new(reporter)),
            service: HealthServer::new(service).max_decoding_message_size(QUESTION_MAX),
            started: CancellationToken::new(),
            draining: CancellationToken::new(),
        }
    }

    /// The service to add to the routes.
    pub fn service(&self) -> HealthServer<HealthService> {
        self.service.clone()
    }

    /// Calls should be sent here from now on; without effect after the process was asked to stop.
    pub async fn ready(&self) {
        let reporter = self.reporter.lock().await;
        if !self.is_draining() {
            set(&reporter, Serving).await;
            self.started.cancel();
        }
    }

    /// The shared store answers, or does not; without effect after the process was asked to stop.
    pub async fn store(&self, answers: bool) {
        let reporter = self.reporter.lock().await;
        if !self.is_draining() {
            let status = if answers { Serving } else { NotServing };
            reporter.set_service_status(STORE, status).await;
        }
    }

    /// Calls should no longer be sent here.
    pub(super) async fn drain(&self) {
        let reporter = self.reporter.lock().await;
        self.draining.cancel();
        set(&reporter, NotServing).await;
    }

    /// Ends every Watch: a stream ends when its name goes. Liveness comes back for new questions.
    pub(super) async fn end_watches(&self) {
        let mut reporter = self.reporter.lock().await;
        for name in READINESS.into_iter().chain([LIVENESS, STORE]) {
            reporter.clear_service_status(name).await;
        }
        reporter.set_service_status(LIVENESS, Serving).await;
    }

    /// Whether the process has been ready once.
    pub fn is_started(&self) -> bool {
        self.started.is_cancelled()
    }

    /// Whether the process was asked to stop.
    pub fn is_draining(&self) -> bool {
        self.draining.is_cancelled()
    }
}

async fn set(reporter: &HealthReporter, status: ServingStatus) {
    for name in READINESS {
        reporter.set_service_status(name, status).await;
    }
}
