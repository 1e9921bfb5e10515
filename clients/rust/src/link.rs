//! What a client says to retryd: questions, reports, leases and releases. Each is said once.
use std::{sync::atomic::AtomicBool, time::Duration};

use tokio::{
    runtime::Handle,
    time::{Instant, MissedTickBehavior, interval, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tonic::{Code, Request, Status, transport::Channel};
use tonic_types::StatusExt as _;

use crate::{
    Settings,
    lease::{Lease, Leases},
    pb::{
        self, budget_service_client::BudgetServiceClient, release_retries_request::Grant,
        retry_service_client::RetryServiceClient,
    },
    usage::{Counts, Names, Usage},
};

/// Of everything that nobody waits for: reports, leases, releases.
const BACKGROUND_TIMEOUT: Duration = Duration::from_secs(1);

/// The contract's limit of one report.
const ENTRIES_MAX: usize = 1000;

/// The contract's longest `valid_for`.
const LEASE_MAX: Duration = Duration::from_secs(10);

/// What outlives the client for as long as something runs in the background.
pub(crate) struct Link {
    pub(crate) settings: Settings,
    pub(crate) usage: Usage,
    pub(crate) leases: Leases,
    pub(crate) draining: AtomicBool,
    pub(crate) stop: CancellationToken,
    pub(crate) tasks: TaskTracker,
    retries: RetryServiceClient<Channel>,
    budgets: BudgetServiceClient<Channel>,
    /// For a call that is dropped outside of the runtime.
    runtime: Handle,
}

impl Link {
    pub(crate) fn new(settings: Settings, channel: Channel) -> Link {
        Link {
            settings,
            usage: Usage::default(),
            leases: Leases::default(),
            draining: AtomicBool::new(false),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
            retries: RetryServiceClient::new(channel.clone()),
            budgets: BudgetServiceClient::new(channel),
            runtime: Handle::current(),
        }
    }

    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        drop(self.tasks.spawn_on(task, &self.runtime));
    }

    pub(crate) async fn ask(
        &self,
        mut context: pb::RetryContext,
        limit: Duration,
    ) -> Result<pb::Decision, Code> {
        let names = Names { tenant: context.tenant.clone(), operation: context.operation.clone() };
        // Taken for good: it is given back only where it surely was not counted.
        let counts = self.usage.take(&names);
        context.usage = counts.as_ref().map(Counts::told);
        let mut request = Request::new(context);
        request.set_timeout(limit);
        let mut retries = self.retries.clone();
        let status = match timeout(limit, retries.decide(request)).await {
            Ok(Ok(response)) => return Ok(response.into_inner()),
            Ok(Err(status)) => status,
            Err(_elapsed) => return Err(Code::DeadlineExceeded),
        };
        if let Some(counts) = counts.filter(|_| is_retryds(&status)) {
            self.usage.give_back(&names, counts);
        }
        let code = ending(&status);
        if matches!(code, Code::InvalidArgument | Code::PermissionDenied) {
            let details = status.get_error_details();
            tracing::warn!(?names, %status, ?details, "retryd refuses the question");
        }
        Err(code)
    }

    pub(crate) async fn report_on_time(self: std::sync::Arc<Link>) {
        let mut ticks = interval(self.settings.report_every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks.tick().await;
        while self.stop.run_until_cancelled(ticks.tick()).await.is_some() {
            self.report().await;
        }
    }

    pub(crate) async fn report(&self) {
        let mut all = self.usage.take_all();
        while !all.is_empty() {
            let entries = all.split_off(all.len().saturating_sub(ENTRIES_MAX));
            let usage = entries.iter().map(|(names, counts)| pb::TenantUsage {
                tenant: names.tenant.clone(),
                operation: names.operation.clone(),
                usage: Some(counts.told()),
            });
            let request = pb::ReportUsageRequest { usage: usage.collect(), report_id: id() };
            let answer = self.budgets.clone().report_usage(background(request)).await;
            match answer {
                Ok(answer) => {
                    let results = answer.into_inner().results;
                    for ((names, counts), result) in entries.into_iter().zip(results) {
                        if let Some(pb::usage_result::Outcome::Refusal(refusal)) = result.outcome {
                            tracing::warn!(?names, ?refusal, "retryd refuses a report");
                            // What is wrong with the others would be refused again.
                            if Code::from(refusal.grpc_code.cast_signed()) == Code::Unavailable {
                                self.usage.give_back(&names, counts);
                            }
                        }
                    }
                }
                Err(status) if is_retryds(&status) => {
                    entries.into_iter().for_each(|(names, it)| self.usage.give_back(&names, it));
                }
                Err(status) => tracing::debug!(%status, "a report of unknown fate is dropped"),
            }
        }
    }

    pub(crate) async fn acquire(&self, names: Names, wanted: u32) {
        let request = pb::AcquireRetriesRequest {
            tenant: names.tenant.clone(),
            operation: names.operation.clone(),
            wanted,
        };
        // From before it was sent, so that it never lasts longer here than at retryd.
        let sent_at = Instant::now();
        match self.budgets.clone().acquire_retries(background(request)).await {
            Ok(answer) => {
                let answer = answer.into_inner();
                let valid_for = answer.valid_for.and_then(|it| it.try_into().ok());
                // Those of a policy that only observes are nobody's to spend.
                if let Some(valid_for) = valid_for.filter(|_| !answer.shadow) {
                    let (left, until) =
                        (answer.granted, sent_at + Duration::min(valid_for, LEASE_MAX));
                    self.leases.hold(&names, Lease { name: answer.lease, left, until });
                }
            }
            Err(status) => tracing::debug!(?names, %status, "no retries taken ahead"),
        }
    }

    pub(crate) async fn release(&self, names: &Names, unused: u32, grant: Grant) {
        let request = pb::ReleaseRetriesRequest {
            tenant: names.tenant.clone(),
            operation: names.operation.clone(),
            unused,
            grant: Some(grant),
        };
        if let Err(status) = self.budgets.clone().release_retries(background(request)).await {
            tracing::debug!(?names, %status, "retries not given back");
        }
    }
}

fn background<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(BACKGROUND_TIMEOUT);
    request
}

/// Retryd itself said so: nothing was charged, counted or earned.
fn is_retryds(status: &Status) -> bool {
    status.get_details_error_info().is_some_and(|info| info.domain == "retryd")
}

/// What a question ended with. What tonic makes of a lost connection is UNKNOWN or CANCELLED; only
/// such a status, which came from no server, has a source.
fn ending(status: &Status) -> Code {
    let source = std::error::Error::source(status);
    let mut chain = std::iter::successors(source, |error| error.source());
    if source.is_none() {
        status.code()
    } else if chain.any(|error| error.is::<tonic::TimeoutExpired>()) {
        Code::DeadlineExceeded
    } else {
        Code::Unavailable
    }
}

/// A name that nobody else has.
pub(crate) fn id() -> String {
    uuid::Uuid::new_v4().to_string()
}
