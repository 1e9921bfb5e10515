//! One outage under one contestant: the loop of events.
mod attempts;

use super::chance::{Chance, Stream};
use super::contestants::{Contestant, Failure};
use super::entitled::Entitled;
use super::events::{Event, Events};
use super::meter::Meter;
use super::report::Outcome;
use super::scenario::{Scenario, Spread};
use super::service::Service;
use crate::budget::Usage;

const MS_US: u64 = 1_000;
const SECOND_US: u64 = 1_000_000;

/// Plays `scenario` to the end of its last call.
pub(super) fn play(
    scenario: &Scenario,
    seed: u64,
    contestant: &mut dyn Contestant,
    entitled: Entitled,
) -> Outcome {
    let mut world = World {
        scenario,
        contestant,
        entitled,
        events: Events::default(),
        service: Service::new(&scenario.service),
        meter: Meter::default(),
        calls: Vec::new(),
        attempts: Vec::new(),
        open: 0,
        next_begin_us: Some(0),
        calls_chance: Chance::new(seed, Stream::Calls),
        work_chance: Chance::new(seed, Stream::Work),
        failing_chance: Chance::new(seed, Stream::Failing),
        waits_chance: Chance::new(seed, Stream::Waits),
    };
    world.events.put(0, Event::Wake);
    world.plan_next_call();
    while let Some((now_us, event)) = world.events.next() {
        world.meter.pass(now_us, world.service.queued());
        world.happen(now_us, event);
    }
    let at_once = world.entitled.retries();
    let entitled = world.contestant.entitled().unwrap_or(at_once);
    world.meter.outcome(scenario, seed, entitled, at_once)
}

struct World<'a> {
    scenario: &'a Scenario,
    contestant: &'a mut dyn Contestant,
    /// What a budget grants that hears of each call the moment it begins.
    entitled: Entitled,
    events: Events,
    service: Service,
    meter: Meter,
    calls: Vec<Call>,
    attempts: Vec<Attempt>,
    /// Calls that have not ended.
    open: u64,
    /// When the next call begins. `None`: no more do.
    next_begin_us: Option<u64>,
    calls_chance: Chance,
    work_chance: Chance,
    failing_chance: Chance,
    waits_chance: Chance,
}

#[derive(Clone, Copy)]
struct Call {
    client: usize,
    begun_us: u64,
    /// Idempotent, or with a key that makes it so.
    is_safe: bool,
    attempts: u32,
    /// How often the service has done the operation.
    processed: u32,
    last_failure: Option<Failure>,
}

#[derive(Clone, Copy)]
struct Attempt {
    call: usize,
    /// The caller has neither an answer nor given up.
    is_awaited: bool,
}

impl World<'_> {
    fn happen(&mut self, now_us: u64, event: Event) {
        match event {
            Event::Begin => self.begin(now_us),
            Event::Send { call } => self.send(now_us, call),
            Event::Finish { attempt } => self.finish(now_us, attempt),
            Event::TimeOut { attempt } => self.time_out(now_us, attempt),
            Event::Wake => self.wake(now_us),
        }
    }

    fn begin(&mut self, now_us: u64) {
        let clients = &self.scenario.clients;
        let client = self.calls_chance.below(clients.count);
        let call = Call {
            client: usize::try_from(client).unwrap_or(0),
            begun_us: now_us,
            is_safe: !self.calls_chance.happens(clients.without_key_percent),
            attempts: 0,
            processed: 0,
            last_failure: None,
        };
        let place = self.calls.len();
        self.calls.push(call);
        self.open += 1;
        self.meter.count(now_us, |second| second.calls += 1);
        self.entitled.deposit(now_us, &Usage { requests: 1, ..Usage::NOTHING });
        self.plan_next_call();
        self.send(now_us, place);
    }

    /// Calls begin while the scenario lasts.
    fn plan_next_call(&mut self) {
        let Some(begin_us) = self.next_begin_us else { return };
        let rate = u64::from(self.scenario.clients.calls_per_second.max(1));
        let number = u64::try_from(self.calls.len()).unwrap_or(u64::MAX);
        let begin_us = match self.scenario.clients.spread {
            Spread::Even => number.saturating_mul(SECOND_US) / rate,
            Spread::Random => {
                // Of a second's worth of time, so that a rate that does not divide it is kept.
                let gap_us = self.calls_chance.spread(SECOND_US * SECOND_US / rate, Spread::Random);
                begin_us.saturating_add(gap_us / SECOND_US)
            }
        };
        let is_within = begin_us < self.scenario.duration_ms.saturating_mul(MS_US);
        self.next_begin_us = is_within.then_some(begin_us);
        if is_within {
            self.events.put(begin_us, Event::Begin);
        }
    }

    fn wake(&mut self, now_us: u64) {
        let next_us = self.contestant.wake(now_us);
        let goes_on = self.next_begin_us.is_some() || 0 < self.open;
        if let Some(next_us) = next_us.filter(|_| goes_on) {
            self.events.put(next_us.max(now_us + 1), Event::Wake);
        }
    }
}
