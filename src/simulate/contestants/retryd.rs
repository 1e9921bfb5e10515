//! Clients that ask retryd, as the kits do: every failed attempt is brought to it, with the usage
//! gathered so far.
use std::sync::Arc;

use parking_lot::Mutex;

use super::{Contestant, Entry, Failed, Failure, Sent, Succeeded, clients};
use crate::budget::Usage;
use crate::decider::Question;
use crate::engine::{self, Category, Delay, GrpcCode, Hint, Idempotency};
use crate::policy::Policies;
use crate::simulate::chance::{Chance, Stream};
use crate::simulate::entitled::Entitled;
use crate::simulate::hand::Hand;
use crate::simulate::pool;
use crate::simulate::replica::{Replica, SharedStore};
use crate::simulate::scenario::Scenario;

pub(super) const ALONE: Entry = Entry {
    name: "retryd",
    title: "retryd, one process",
    source: "The real decider and the real balances by the policy of the scenario. A failed attempt \
             brings the usage of its client along, and it is reported every 5 s, as the kits do \
             (clients/README.md).",
    enter: |scenario, policies, seed| {
        let hand = Hand::new();
        let replicas = vec![Replica::alone(policies, &hand.clock())];
        Box::new(Retryd::new(scenario, policies, hand, replicas, seed))
    },
};

pub(super) const SHARED: Entry = Entry {
    name: "retryd-shared",
    title: "retryd, replicas that share",
    source: "As retryd, in as many processes as the scenario says, any of which is asked: the real \
             exchange of balances, every 100 ms, with a model of the store that is tested to answer \
             as Redis and Valkey do (ARCHITECTURE.md, \"How budgets are shared\").",
    enter: |scenario, policies, seed| Box::new(fleet(scenario, policies, seed, false)),
};

pub(super) const STORE_LOST: Entry = Entry {
    name: "retryd-store-lost",
    title: "retryd, replicas whose store is lost",
    source: "As retryd-shared, and the store is away for a time with all that it held: each replica \
             goes on by its part (`on_store_loss`), and the balances begin at nothing when it is back.",
    enter: |scenario, policies, seed| Box::new(fleet(scenario, policies, seed, true)),
};

/// Who asks.
pub(in crate::simulate) const TENANT: &str = "shop";
/// What is called.
pub(in crate::simulate) const OPERATION: &str = "shop.Orders/Place";

/// Between two reports of one client, whatever its questions have brought along meanwhile.
const REPORT_US: u64 = 5_000_000;
/// Between two rounds of exchanges: the `Ticker`'s 100 ms, 10 % more or less.
const ROUND_US_MIN: u64 = 90_000;
const ROUND_US_SPREAD: u32 = 20_000;
/// How long balances that are touched for the first time are gathered.
const GATHER_US: u64 = 10_000;

struct Retryd {
    replicas: Vec<Replica>,
    /// When each begins its next round.
    rounds_us: Vec<u64>,
    clients: Vec<Client>,
    /// Hears and is asked what all replicas together are.
    exact: Entitled,
    hand: Hand,
    chance: Chance,
    question_us: u64,
    /// Clients take turns to report: the next one, and when.
    reporter: usize,
    report_us: u64,
}

/// What one client has not told yet.
#[derive(Clone, Copy)]
struct Client {
    usage: Usage,
    since_ms: u64,
}

fn fleet(scenario: &Scenario, policies: &Policies, seed: u64, is_lost: bool) -> Retryd {
    let retryd = &scenario.retryd;
    let lost_to_ms = retryd.store_lost_from_ms.saturating_add(retryd.store_lost_ms);
    let lost_ms = if is_lost { retryd.store_lost_from_ms..lost_to_ms } else { 0..0 };
    let shared = SharedStore { store: Arc::new(Mutex::new(pool::Store::default())), lost_ms };
    let (hand, count) = (Hand::new(), retryd.replicas);
    let replica = |number| Replica::of_fleet(policies, &hand.clock(), &shared, number, count);
    let replicas = (0..count).map(replica).collect();
    Retryd::new(scenario, policies, hand, replicas, seed)
}

impl Retryd {
    fn new(
        scenario: &Scenario,
        policies: &Policies,
        hand: Hand,
        replicas: Vec<Replica>,
        seed: u64,
    ) -> Retryd {
        Retryd {
            rounds_us: vec![0; replicas.len()],
            replicas,
            clients: vec![Client { usage: Usage::NOTHING, since_ms: 0 }; clients(scenario)],
            exact: Entitled::new(policies),
            hand,
            chance: Chance::new(seed, Stream::Replicas),
            question_us: scenario.retryd.question_ms.saturating_mul(1_000),
            reporter: 0,
            report_us: REPORT_US,
        }
    }

    /// Any replica: calls are balanced over all of them.
    fn any(&mut self) -> Option<&Replica> {
        let count = u32::try_from(self.replicas.len()).unwrap_or(u32::MAX);
        let place = self.chance.below(count);
        self.replicas.get(usize::try_from(place).unwrap_or(0))
    }

    /// What a client has gathered, which is told now.
    fn gathered(&mut self, client: usize, now_ms: u64) -> Usage {
        let Some(client) = self.clients.get_mut(client) else { return Usage::NOTHING };
        let period_ms = now_ms.saturating_sub(client.since_ms).max(1);
        client.since_ms = now_ms;
        let usage = std::mem::replace(&mut client.usage, Usage::NOTHING);
        Usage { period_ms: Some(period_ms), ..usage }
    }

    /// The clients whose turn it is to report, spread evenly over the time between two reports.
    fn report(&mut self, now_us: u64) {
        let gap_us = (REPORT_US / u64::try_from(self.clients.len()).unwrap_or(1).max(1)).max(1);
        while self.report_us <= now_us {
            self.report_us += gap_us;
            let client = self.reporter;
            self.reporter = (client + 1) % self.clients.len().max(1);
            let usage = self.gathered(client, now_us / 1_000);
            self.exact.deposit(now_us, &usage);
            if let Some(Replica { decider, .. }) = self.any() {
                decider.deposit(&decider.in_force(), TENANT, OPERATION, &usage, |_| ());
            }
        }
    }

    fn exchange(&mut self, now_us: u64) {
        for (replica, round_us) in self.replicas.iter_mut().zip(&mut self.rounds_us) {
            if *round_us <= now_us {
                *round_us = now_us + ROUND_US_MIN + u64::from(self.chance.below(ROUND_US_SPREAD));
                replica.begin_round();
            } else {
                replica.greet_newcomers();
            }
        }
    }
}

impl Contestant for Retryd {
    fn sent(&mut self, sent: &Sent) {
        if let (1, Some(client)) = (sent.attempts, self.clients.get_mut(sent.client)) {
            client.usage.requests += 1;
        }
    }

    fn failed(&mut self, failed: &Failed) -> Option<u64> {
        let now = self.hand.move_to(failed.now_us);
        let usage = self.gathered(failed.client, now.monotonic_ms);
        self.exact.failed(failed, usage);
        let question_us = self.question_us;
        let Replica { decider, .. } = self.any()?;
        let (question, in_force) = (question(failed, usage), decider.in_force());
        let said =
            decider.decide_drawn(&in_force, &question, now, failed.draw, |answer| answer.said());
        // What only observes binds nobody, and these clients have no rules of their own.
        let delay = said.delay.filter(|_| !said.shadow)?;
        Some(question_us + Delay::ms(delay).saturating_mul(1_000))
    }

    fn succeeded(&mut self, succeeded: &Succeeded) {
        let Some(Client { usage, .. }) = self.clients.get_mut(succeeded.client) else { return };
        match succeeded.last_failure {
            None => usage.first_try_successes += 1,
            Some(failure) => {
                usage.retried_successes += 1;
                match failure {
                    Failure::Unavailable => usage.retried_transient += 1,
                    Failure::TimedOut => usage.retried_timeout += 1,
                }
            }
        }
    }

    fn entitled(&self) -> Option<u64> {
        Some(self.exact.retries())
    }

    fn wake(&mut self, now_us: u64) -> Option<u64> {
        self.hand.move_to(now_us);
        self.report(now_us);
        if self.replicas.iter().any(Replica::is_of_fleet) {
            self.exchange(now_us);
            return Some(now_us + GATHER_US);
        }
        Some(self.report_us)
    }
}

/// The facts of a failed attempt, as the kits tell them.
pub(in crate::simulate) fn question(failed: &Failed, usage: Usage) -> Question<'static> {
    Question {
        tenant: TENANT,
        operation: OPERATION,
        attempts_made: failed.attempts,
        remaining_ms: Some(failed.remaining_us / 1_000),
        body_replayable: true,
        first_byte_delivered: false,
        runtime_draining: false,
        idempotency: Idempotency {
            declared: failed.is_safe,
            key_registered: false,
            key_sent: false,
        },
        failure: match failed.failure {
            Failure::Unavailable => engine::Failure::Grpc(GrpcCode::Unavailable),
            Failure::TimedOut => engine::Failure::Category(Category::AttemptTimeout),
        },
        evidence: None,
        hint: Hint::default(),
        usage,
        call_id: "",
        explain: false,
        dry_run: false,
    }
}
