//! One round of exchanges: what is sent, and what becomes of the answers.
use std::sync::{Arc, atomic::Ordering};

use super::Share;
use super::exchange::{Call, Reply};
use super::pools::{Errand, Failure};
use super::queue::{Queue, Waiting};
use super::sharing::Sharing;
use super::trade::Want;
use crate::budget::Limits;
use crate::budget::balance::Balance;
use crate::clock::Clock;

/// The shares of this process that take part in the exchange.
#[derive(Debug)]
pub(super) struct Rounds {
    pub(super) sharing: Arc<Sharing>,
    pub(super) clock: Clock,
    queue: Queue,
    /// Those that had their turn in this round.
    done: Vec<Waiting>,
    /// Exchanges answered in this round, and why one was not.
    answered: usize,
    failure: Option<Failure>,
}

/// A share that was sent, and what it said.
pub(super) struct Sent {
    waiting: Waiting,
    call: Call,
    sent_ms: u64,
}

impl Rounds {
    pub(super) fn new(sharing: Arc<Sharing>, clock: Clock) -> Rounds {
        Rounds {
            sharing,
            clock,
            queue: Queue::default(),
            done: Vec::new(),
            answered: 0,
            failure: None,
        }
    }

    /// Takes in what was touched since the last round, and what is due by now.
    pub(super) fn begin(&mut self) {
        let arrived = std::mem::take(&mut *self.sharing.arrived.lock());
        let done = std::mem::take(&mut self.done);
        (self.answered, self.failure) = (0, None);
        let due = self.queue.due(self.now_ms());
        for waiting in done.into_iter().chain(arrived).chain(due) {
            self.put(waiting);
        }
    }

    /// How many exchanges were answered since the round began, and why one of the others was not.
    pub(super) fn heard(&self) -> (usize, Option<&Failure>) {
        (self.answered, self.failure.as_ref())
    }

    /// What the neediest shares say, `count` of them at most.
    pub(super) fn next(&mut self, count: usize) -> Vec<Sent> {
        self.queue.take(count).into_iter().filter_map(|one| self.say(one, Share::call)).collect()
    }

    /// What shares say that were touched since the last round, `count` of them at most.
    pub(super) fn newcomers(&mut self, count: usize) -> Vec<Sent> {
        let arrived: Vec<Waiting> = {
            let mut arrived = self.sharing.arrived.lock();
            let count = count.min(arrived.len());
            arrived.drain(..count).collect()
        };
        let mut sent = Vec::with_capacity(arrived.len());
        for waiting in arrived {
            match self.want(&waiting) {
                Want::Now | Want::Soon => sent.extend(self.say(waiting, Share::call)),
                want => self.queue.put(waiting, want),
            }
        }
        sent
    }

    /// What every share says when the process ends.
    pub(super) fn farewells(&mut self) -> Vec<Sent> {
        self.begin();
        let all = self.queue.take_all();
        all.into_iter().filter_map(|one| self.say(one, Share::farewell)).collect()
    }

    pub(super) fn end(&self) {
        let waiting = self.queue.len().saturating_add(self.done.len());
        let waiting = u64::try_from(waiting).unwrap_or(u64::MAX);
        self.sharing.counts.waiting.store(waiting, Ordering::Relaxed);
    }

    fn say(&self, waiting: Waiting, say: fn(&mut Share, &Limits) -> Call) -> Option<Sent> {
        let sent_ms = self.now_ms();
        let call = {
            let mut kept = waiting.lock()?;
            let terms = waiting.shelf.bring_up(&mut kept, sent_ms);
            let Balance::Shared(share) = &mut kept.balance else { return None };
            say(share, &terms.limits)
        };
        Some(Sent { waiting, call, sent_ms })
    }

    pub(super) fn errands(&self, sent: &[Sent]) -> Vec<Errand> {
        let now_ms = self.claim();
        let errand = |sent: &Sent| Errand {
            pool: sent.waiting.pool.clone(),
            now_ms,
            call: sent.call.clone(),
        };
        sent.iter().map(errand).collect()
    }

    /// Hands every share its answer. `false` if one of them is unknown.
    pub(super) fn receive(
        &mut self,
        sent: Vec<Sent>,
        answers: Vec<Result<Reply, Failure>>,
    ) -> bool {
        let mut answers = answers.into_iter();
        let mut are_known = true;
        for sent in sent {
            let missing = || Err(Failure::Unknown("the answer is missing".to_owned()));
            let answer = answers.next().unwrap_or_else(missing);
            are_known &= !matches!(answer, Err(Failure::Unknown(_)));
            self.count(&answer);
            match &answer {
                Ok(reply) => {
                    self.learn_time(reply.now_ms);
                    self.answered = self.answered.saturating_add(1);
                }
                Err(failure) => self.failure = Some(failure.clone()),
            }
            self.settle(sent, &answer);
        }
        are_known
    }

    fn settle(&mut self, sent: Sent, answer: &Result<Reply, Failure>) {
        let Sent { waiting, call, sent_ms } = sent;
        {
            let Some(mut kept) = waiting.lock() else { return };
            // By the sizes of now: they may have changed while it was on its way.
            let terms = waiting.shelf.bring_up(&mut kept, self.now_ms());
            let limits = &terms.limits;
            let Balance::Shared(share) = &mut kept.balance else { return };
            match answer {
                Ok(reply) => share.answered(limits, &call, reply, sent_ms),
                Err(Failure::Refused(_)) => share.refused_call(limits, &call),
                Err(Failure::Unknown(_)) => share.unanswered(),
            }
        }
        // Once a round: whoever is asked meanwhile waits for the next one.
        self.done.push(waiting);
    }

    fn count(&self, answer: &Result<Reply, Failure>) {
        let counts = &self.sharing.counts;
        let count = match answer {
            Ok(reply) => {
                counts.leased.fetch_add(reply.granted, Ordering::Relaxed);
                &counts.answered
            }
            Err(Failure::Refused(_)) => &counts.refused,
            Err(Failure::Unknown(_)) => &counts.unknown,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// Puts a share into the queue, or lets it go.
    fn put(&mut self, waiting: Waiting) {
        let want = self.want(&waiting);
        self.queue.put(waiting, want);
    }

    /// How much a share wants to be exchanged. One that does not is let go.
    fn want(&self, waiting: &Waiting) -> Want {
        let Some(mut kept) = waiting.lock() else { return Want::Never };
        waiting.shelf.bring_up(&mut kept, self.now_ms());
        let Balance::Shared(share) = &mut kept.balance else { return Want::Never };
        let want = share.want();
        share.is_queued = want != Want::Never;
        want
    }

    pub(super) fn learn_time(&self, fleet_ms: u64) {
        self.sharing.learn_time(fleet_ms, self.clock.now().monotonic_ms);
    }

    /// The fleet's time as far as it is known here.
    pub(super) fn now_ms(&self) -> u64 {
        self.sharing.fleet_ms(self.clock.now().monotonic_ms)
    }

    /// The same, as the pools are told.
    pub(super) fn claim(&self) -> u64 {
        if self.sharing.knows_time() { self.now_ms() } else { 0 }
    }
}
