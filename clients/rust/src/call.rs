//! One call: its attempts, the questions about them, and the waits between them.
use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, sleep, sleep_until};

use crate::{
    Client, link,
    pb::{self, release_retries_request::Grant},
    throttle::Throttle,
    unasked,
    usage::Names,
};

/// The longest random wait where retryd was not asked, or did not answer.
const BACKOFF_MS: u64 = 100;

/// What a library makes of a failed attempt.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Failed {
    pub(crate) failure: pb::Failure,
    pub(crate) evidence: pb::Evidence,
    pub(crate) hint: Option<pb::ServerHint>,
}

/// A call on its way.
pub(crate) struct Tracked {
    client: Client,
    throttle: Arc<Throttle>,
    facts: Facts,
    /// The same for all attempts.
    id: String,
    attempts_made: u32,
    /// Of the last Decision.
    class: pb::FailureClass,
}

/// What holds for a call from its start.
pub(crate) struct Facts {
    pub(crate) names: Names,
    pub(crate) idempotency: pb::Idempotency,
    pub(crate) deadline: Option<Instant>,
    pub(crate) body_replayable: bool,
}

/// What ends an attempt.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Limit {
    Attempt(Instant),
    Call(Instant),
}

impl Tracked {
    pub(crate) fn start(client: Client, throttle: Arc<Throttle>, facts: Facts) -> Tracked {
        client.usage().request(&facts.names);
        client.take_ahead(&facts.names);
        let class = pb::FailureClass::Unspecified;
        Tracked { client, throttle, facts, id: link::id(), attempts_made: 0, class }
    }

    /// An attempt is sent now. Tells when it has to end.
    pub(crate) fn attempt(&mut self) -> Option<Limit> {
        self.attempts_made += 1;
        let timeout = self.client.settings().attempt_timeout;
        let attempt = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        match (attempt, self.facts.deadline) {
            (Some(attempt), Some(call)) if call <= attempt => Some(Limit::Call(call)),
            (Some(attempt), _) => Some(Limit::Attempt(attempt)),
            (None, call) => call.map(Limit::Call),
        }
    }

    pub(crate) fn succeeded(&self) {
        self.throttle.success();
        self.client.usage().success(&self.facts.names, self.attempts_made, self.class);
    }

    /// Brings a failed attempt to retryd, and waits as it says. `true`: send the next one.
    pub(crate) async fn failed(&mut self, failed: Failed) -> bool {
        let context = self.context(failed);
        if unasked::counts(&context) {
            self.throttle.failure();
        }
        if self.left() == Some(Duration::ZERO) {
            self.client.tell(context);
            return false;
        }
        if let Some((wait, lease)) = self.pay_from_lease(&context) {
            return self.wait(wait, Some(Grant::Lease(lease))).await;
        }
        match self.ask(&context).await {
            Ok(decision) => self.follow(&context, &decision).await,
            Err(ended) => match self.unasked(context, ended) {
                Some(wait) if self.client.settings().fallback => self.wait(wait, None).await,
                _ => false,
            },
        }
    }

    async fn ask(&self, context: &pb::RetryContext) -> Result<pb::Decision, tonic::Code> {
        // Who gives up while it asks sees no grant, but retryd may have made one.
        let mut unsent = Unsent { call: self, grant: Some(self.grant()) };
        let asked = self.client.ask(context.clone(), self.ask_limit()).await;
        unsent.grant = None;
        asked
    }

    /// What the last question was granted.
    fn grant(&self) -> Grant {
        let (call_id, attempts_made) = (self.id.clone(), self.attempts_made);
        Grant::Decided(pb::DecidedAttempt { call_id, attempts_made })
    }

    async fn follow(&mut self, context: &pb::RetryContext, decision: &pb::Decision) -> bool {
        self.class = decision.failure_class();
        let verdict = decision.verdict();
        // One that nobody knows is none.
        if verdict == pb::Verdict::Unspecified {
            return false;
        }
        if decision.shadow {
            let own_rules = self.client.settings().own_rules.as_ref();
            let own_rules = own_rules.filter(|_| context.body_replayable);
            return match own_rules.and_then(|rules| rules(context, decision)) {
                Some(wait) => self.wait(wait, None).await,
                None => false,
            };
        }
        if verdict == pb::Verdict::DoNotRetry {
            return false;
        }
        let wait = decision.delay.map_or(Duration::ZERO, |it| it.try_into().unwrap_or_default());
        self.wait(wait, Some(self.grant())).await
    }

    /// A first retry that needs no answer, out of a lease.
    fn pay_from_lease(&self, context: &pb::RetryContext) -> Option<(Duration, String)> {
        // As if retryd were silent.
        let wait = self.unasked(context.clone(), tonic::Code::Unavailable)?;
        let lease = self.client.leases().spend(&self.facts.names)?;
        self.client.take_ahead(&self.facts.names);
        Some((wait, lease))
    }

    fn unasked(&self, mut context: pb::RetryContext, ended: tonic::Code) -> Option<Duration> {
        // The question has taken its time.
        context.remaining_deadline = self.left().map(wire);
        let backoff = Duration::from_millis(fastrand::u64(1..=BACKOFF_MS));
        unasked::wait(&context, ended, self.throttle.grants(), backoff)
    }

    /// Waits, unless the deadline comes first. What was granted is given back if this ends early,
    /// also when the caller drops it.
    async fn wait(&self, wait: Duration, grant: Option<Grant>) -> bool {
        let mut unsent = Unsent { call: self, grant };
        if let Some(deadline) = self.facts.deadline
            && self.left().is_some_and(|left| left <= wait)
        {
            sleep_until(deadline).await;
            return false;
        }
        sleep(wait).await;
        unsent.grant = None;
        true
    }

    fn context(&self, failed: Failed) -> pb::RetryContext {
        let Facts { names, idempotency, deadline: _, body_replayable } = &self.facts;
        pb::RetryContext {
            tenant: names.tenant.clone(),
            operation: names.operation.clone(),
            attempts_made: self.attempts_made,
            remaining_deadline: self.left().map(wire),
            body_replayable: *body_replayable,
            // The layer returns as the first byte comes.
            first_byte_delivered: false,
            runtime_draining: self.client.is_draining(),
            idempotency: Some(*idempotency),
            failure: Some(failed.failure),
            evidence: failed.evidence.into(),
            hint: failed.hint,
            call_id: self.id.clone(),
            ..pb::RetryContext::default()
        }
    }

    fn left(&self) -> Option<Duration> {
        self.facts.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }

    /// At most a tenth of what is left.
    fn ask_limit(&self) -> Duration {
        let limit = self.client.settings().ask_timeout;
        self.left().map_or(limit, |left| limit.min(left / 10))
    }
}

/// A grant that no attempt has used yet.
struct Unsent<'a> {
    call: &'a Tracked,
    grant: Option<Grant>,
}

impl Drop for Unsent<'_> {
    fn drop(&mut self) {
        let (client, names) = (&self.call.client, &self.call.facts.names);
        match self.grant.take() {
            Some(Grant::Lease(lease)) if client.leases().give_back(names, &lease) => {}
            Some(grant) => client.release(names.clone(), grant),
            None => {}
        }
    }
}

fn wire(duration: Duration) -> prost_types::Duration {
    // A deadline further away than protobuf can tell is cut to what it can.
    const MAX: Duration = Duration::from_secs(315_576_000_000);
    prost_types::Duration::try_from(duration.min(MAX)).unwrap_or_default()
}
