//! The two gRPC services: may the caller ask, parse, decide, answer.
mod allowed;
mod budgets;
mod decide_stream;
mod in_process;
mod questions;
mod retry_routes;
mod shown;
mod sizes;
mod traced;
mod until;
mod watch_budget;

use std::{pin::Pin, sync::Arc};

use futures_core::Stream;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, Streaming};

pub use self::decide_stream::DecideStream;
pub use self::retry_routes::RetryRoutes;
pub use self::sizes::{CONTEXT_BYTES_MAX, REPORT_BYTES_MAX, REPORT_ENTRIES_MAX, Sizes};
pub use self::watch_budget::WatchBudget;
use crate::admin::metrics::Metrics;
use crate::budget::Store;
use crate::clock::Now;
use crate::decider::{Answer, Decider, InForce, Question};
use crate::decision_log::DecisionLog;
use crate::server::{About, AtOnce, Deadline, Peer, deadline_exceeded};
use crate::shadow::Shadow;
use crate::wire::borrowed::Borrowed;
use crate::wire::context::{self, Oddities};
use crate::wire::pb::budget_service_server::BudgetServiceServer;
use crate::wire::pb::retry_service_server::{RetryService, RetryServiceServer};
use crate::wire::refusal::Refusal;
use crate::wire::{codec, decision, pb};

const DECIDE: &str = "/retryd.v1.RetryService/Decide";

/// Both services over one decider. Cheap to clone.
#[derive(Debug)]
pub struct Retryd<S> {
    decider: Arc<Decider<S>>,
    metrics: Arc<Metrics>,
    sizes: Sizes,
    stopping: CancellationToken,
    /// Whose turn it is to go over all balances.
    listing: Arc<Semaphore>,
    log: Option<DecisionLog>,
    shadow: Option<Arc<Shadow<S>>>,
}

impl<S> Clone for Retryd<S> {
    fn clone(&self) -> Self {
        Retryd {
            decider: Arc::clone(&self.decider),
            metrics: Arc::clone(&self.metrics),
            sizes: self.sizes,
            stopping: self.stopping.clone(),
            listing: Arc::clone(&self.listing),
            log: self.log.clone(),
            shadow: self.shadow.clone(),
        }
    }
}

impl<S: Store> Retryd<S> {
    /// The services over `decider`. Open streams end when `stopping` is cancelled.
    pub fn new(
        decider: Arc<Decider<S>>,
        metrics: Arc<Metrics>,
        stopping: CancellationToken,
    ) -> Retryd<S> {
        let (sizes, listing) = (Sizes::default(), Arc::new(Semaphore::new(1)));
        Retryd { decider, metrics, sizes, stopping, listing, log: None, shadow: None }
    }

    /// The same, with other limits of what one message may hold.
    pub fn with_sizes(self, sizes: Sizes) -> Retryd<S> {
        Retryd { sizes, ..self }
    }

    /// What one message may hold.
    pub fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// The same, and decisions are logged.
    pub fn logged(self, log: Option<DecisionLog>) -> Retryd<S> {
        Retryd { log, ..self }
    }

    /// The same, and other policies decide beside it.
    pub fn shadowed(self, shadow: Option<Shadow<S>>) -> Retryd<S> {
        Retryd { shadow: shadow.map(Arc::new), ..self }
    }

    /// The gRPC server of RetryService.
    pub fn retry_service(&self) -> RetryRoutes<S> {
        let generated = RetryServiceServer::new(self.clone())
            .max_decoding_message_size(self.sizes.context_bytes_max);
        RetryRoutes { retryd: self.clone(), generated }
    }

    /// The gRPC server of BudgetService.
    pub fn budget_service(&self) -> BudgetServiceServer<Retryd<S>> {
        BudgetServiceServer::new(self.clone())
            .max_decoding_message_size(self.sizes.report_bytes_max)
    }

    /// `Decide` from bytes to bytes: it waits for nothing.
    pub fn decide_at_once(&self) -> AtOnce {
        let retryd = self.clone();
        AtOnce::new(DECIDE, self.sizes.context_bytes_max, move |message, about| {
            let About { deadline, peer, span } = about;
            let context = codec::decode(message)?;
            let now = retryd.decider.now();
            retryd.in_time(deadline, now)?;
            let decided = retryd.decide_at(peer, &context, now, |answer, explain| {
                traced::tell(span, answer);
                codec::framed(&Borrowed::of(answer, explain))
            });
            Ok(decided?)
        })
    }

    /// Decides, and hands the answer to `tell`, with whether the caller wants an explanation.
    fn decide_at<R>(
        &self,
        peer: &Peer,
        context: &pb::RetryContext,
        now: Now,
        tell: impl FnOnce(&Answer<'_>, bool) -> R,
    ) -> Result<R, Refusal> {
        let in_force = self.allowed(peer, &context.tenant)?;
        self.decide_by(&in_force, context, now, tell)
    }

    fn decide_by<R>(
        &self,
        in_force: &InForce<S>,
        context: &pb::RetryContext,
        now: Now,
        tell: impl FnOnce(&Answer<'_>, bool) -> R,
    ) -> Result<R, Refusal> {
        let mut oddities = Oddities::default();
        let question = context::parse(context, now.unix_ms, &mut oddities);
        // Even an addition of nothing would take the counters from the other cores' caches.
        if oddities != Oddities::default() {
            self.metrics.unknown_enum_values.inc_by(oddities.unknown_enums);
            self.metrics.malformed_hints.inc_by(oddities.malformed_hints);
        }
        let question = self.counted(question)?;
        Ok(self.decider.decide(in_force, &question, now, |answer| {
            let told = tell(answer, question.explain);
            self.beside(context, &question, now, answer);
            told
        }))
    }

    /// What an answer sets off besides: it changes none. The shadow takes about as long as a decision, a
    /// line of the log is only handed over.
    fn beside(
        &self,
        context: &pb::RetryContext,
        question: &Question<'_>,
        now: Now,
        answer: &Answer<'_>,
    ) {
        let log = |shadow: Option<&Answer<'_>>| {
            if let Some(log) = &self.log {
                log.offer(context, now, answer, shadow);
            }
        };
        let shadow = self.shadow.as_ref();
        let decided = shadow.and_then(|it| it.decide(question, now, answer, |it| log(Some(it))));
        if decided.is_none() {
            log(None);
        }
    }

    /// Nobody waits for an answer after the deadline: it would charge a retry that is never sent.
    fn in_time(&self, deadline: Option<&Deadline>, now: Now) -> Result<(), Status> {
        match deadline {
            Some(deadline) if deadline.passed(now) => {
                self.metrics.deadlines_exceeded.inc();
                Err(deadline_exceeded())
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Counts a refusal where it is made, once for each refused question or entry.
    fn counted<T>(&self, parsed: Result<T, Refusal>) -> Result<T, Refusal> {
        parsed.inspect_err(|refusal| {
            self.metrics.refused(refusal.reason());
            refusal.violations().for_each(|violation| self.metrics.violated(violation.field));
        })
    }
}

type Answers = Pin<Box<dyn Stream<Item = Result<pb::StreamedDecision, Status>> + Send>>;

#[tonic::async_trait]
impl<S: Store> RetryService for Retryd<S> {
    async fn decide(
        &self,
        request: Request<pb::RetryContext>,
    ) -> Result<Response<pb::Decision>, Status> {
        let now = self.decider.now();
        self.in_time(request.extensions().get(), now)?;
        let peer = Peer::of(request.extensions());
        let decided = self.decide_at(peer, request.get_ref(), now, |answer, explain| {
            traced::tell(request.extensions().get(), answer);
            decision::write(answer, explain)
        });
        Ok(Response::new(decided?))
    }

    type DecideStreamStream = Answers;

    /// [`RetryRoutes`] answers it from bytes. Here come only calls that asked for an encoding, and
    /// the generated service refuses each of them before.
    async fn decide_stream(
        &self,
        _: Request<Streaming<pb::RetryContext>>,
    ) -> Result<Response<Answers>, Status> {
        Err(Status::unimplemented("no encoding is supported"))
    }
}
