//! What a client says to retryd: questions, reports, leases and releases. Each is said once.
use std::{sync::atomic::AtomicBool, time::Duration};

use tokio::{
    runtime::Handle,
    time::{Instant, MissedTickBehavior, interval, timeout, timeout_at},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tonic::{Code, Request, Response, Status, transport::Channel};
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
        let until = Instant::now() + limit;
        let asked = timeout_at(until, written(|| self.decide(context.clone(), until))).await;
        let status = match asked {
            Ok(Ok(decision)) => return Ok(decision),
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

    async fn decide(
        &self,
        context: pb::RetryContext,
        until: Instant,
    ) -> Result<pb::Decision, Status> {
        let mut request = Request::new(context);
        request.set_timeout(until.saturating_duration_since(Instant::now()));
        Ok(self.retries.clone().decide(request).await?.into_inner())
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
            let answer = background(self.budgets.clone().report_usage(request)).await;
            match answer {
                Ok(pb::ReportUsageResponse { results }) => {
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
        match background(self.budgets.clone().acquire_retries(request)).await {
            Ok(answer) => {
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
        if let Err(status) = background(self.budgets.clone().release_retries(request)).await {
            tracing::debug!(?names, %status, "retries not given back");
        }
    }
}

/// By a clock of its own: a channel may wait for its connection longer than its time-outs tell.
async fn background<T>(
    answer: impl Future<Output = Result<Response<T>, Status>>,
) -> Result<T, Status> {
    match timeout(BACKGROUND_TIMEOUT, answer).await {
        Ok(answer) => answer.map(Response::into_inner),
        Err(_elapsed) => Err(Status::deadline_exceeded("no answer in time")),
    }
}

/// Asks once more, at once, if hyper has not begun to write the question: so it ends those that it
/// holds when retryd says GOAWAY. What other gRPC libraries call a transparent retry, tonic has not.
async fn written<T, F>(ask: impl Fn() -> F) -> Result<T, Status>
where
    F: Future<Output = Result<T, Status>>,
{
    match ask().await {
        Err(status) if is_unwritten(&status) => ask().await,
        asked => asked,
    }
}

fn is_unwritten(status: &Status) -> bool {
    let source = std::error::Error::source(status);
    std::iter::successors(source, |error| error.source())
        .any(|error| error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_canceled))
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use bytes::Bytes;
    use http_body_util::Empty;
    use hyper_util::rt::TokioIo;

    use super::*;

    /// As hyper ends a request that it never wrote, for tonic.
    async fn unwritten() -> Status {
        let io = TokioIo::new(tokio::io::duplex(1).0);
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake::<_, Empty<Bytes>>(io).await.unwrap();
        drop(connection);
        let error = sender.send_request(http::Request::new(Empty::new())).await.unwrap_err();
        assert!(error.is_canceled());
        Status::from_error(error.into())
    }

    async fn times_asked(ended: &[Status]) -> usize {
        let asked = AtomicUsize::new(0);
        let answer: Result<(), Status> = written(|| {
            let place = asked.fetch_add(1, Relaxed);
            std::future::ready(Err(ended[place].clone()))
        })
        .await;
        assert_eq!(answer.unwrap_err().code(), ended.last().unwrap().code());
        asked.load(Relaxed)
    }

    #[tokio::test]
    async fn a_question_that_was_never_written_is_asked_once_more() {
        let lost = Status::unavailable("operation was canceled");
        assert_eq!(times_asked(&[unwritten().await, lost.clone()]).await, 2);
        assert_eq!(times_asked(&[unwritten().await, unwritten().await]).await, 2);
        assert_eq!(times_asked(&[lost]).await, 1, "a text of the server's");
    }
}
