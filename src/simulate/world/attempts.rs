//! What becomes of an attempt: at the service, and at its caller.
use super::{Attempt, Call, MS_US, World};
use crate::budget::Usage;
use crate::simulate::contestants::{Failed, Failure, Sent, Succeeded};
use crate::simulate::events::Event;
use crate::simulate::scenario::Scenario;
use crate::simulate::service::Arrival;

impl World<'_> {
    pub(super) fn send(&mut self, now_us: u64, place: usize) {
        let Some(call) = self.calls.get_mut(place) else { return };
        call.attempts += 1;
        let call = *call;
        let attempt = self.attempts.len();
        self.attempts.push(Attempt { call: place, is_awaited: true });
        self.meter.count(now_us, |second| second.attempts += 1);
        if 1 < call.attempts {
            self.meter.retry();
        }
        self.contestant.sent(&Sent { client: call.client, attempts: call.attempts });
        let Scenario { outage, service, .. } = self.scenario;
        let is_out = outage.holds_at_us(now_us);
        let failing_percent = if is_out { outage.failing_percent } else { service.failing_percent };
        if self.failing_chance.happens(failing_percent) {
            self.meter.count(now_us, |second| second.broken += 1);
            self.fail(now_us, attempt, Failure::Unavailable);
            return;
        }
        let arrival = self.service.arrive(attempt);
        if arrival == Arrival::Rejected {
            self.meter.count(now_us, |second| second.rejected += 1);
            self.fail(now_us, attempt, Failure::Unavailable);
            return;
        }
        let clients = &self.scenario.clients;
        let until_us = (now_us + clients.attempt_timeout_ms * MS_US)
            .min(call.begun_us + clients.deadline_ms * MS_US);
        self.events.put(until_us, Event::TimeOut { attempt });
        if arrival == Arrival::Begins {
            self.work(now_us, attempt);
        }
    }

    /// A worker begins an attempt.
    fn work(&mut self, now_us: u64, attempt: usize) {
        let service = &self.scenario.service;
        let mean_us = service.work_ms.saturating_mul(MS_US);
        let mut work_us = self.work_chance.spread(mean_us, service.spread);
        if self.scenario.outage.holds_at_us(now_us) {
            work_us = percent(work_us, self.scenario.outage.work_percent);
        }
        if !self.attempts.get(attempt).is_some_and(|attempt| attempt.is_awaited) {
            work_us = percent(work_us, service.given_up_work_percent);
        }
        self.events.put(now_us.saturating_add(work_us), Event::Finish { attempt });
    }

    pub(super) fn finish(&mut self, now_us: u64, attempt: usize) {
        let Some(Attempt { call: place, is_awaited }) = self.attempts.get(attempt).copied() else {
            return;
        };
        if let Some(call) = self.calls.get_mut(place) {
            call.processed += 1;
            if !call.is_safe && 1 < call.processed {
                self.meter.processed_again();
            }
        }
        if is_awaited {
            self.succeed(now_us, attempt);
        } else {
            self.meter.count(now_us, |second| second.for_nobody += 1);
        }
        self.service.leave();
        while let Some(next) = self.service.take() {
            let is_awaited = self.attempts.get(next).is_some_and(|attempt| attempt.is_awaited);
            if is_awaited || 0 < self.scenario.service.given_up_work_percent {
                self.work(now_us, next);
            } else {
                self.meter.count(now_us, |second| second.dropped += 1);
                self.service.leave();
            }
        }
    }

    fn succeed(&mut self, now_us: u64, attempt: usize) {
        let Some(call) = self.answered(attempt).and_then(|place| self.calls.get(place)) else {
            return;
        };
        let Call { client, attempts, last_failure, begun_us, .. } = *call;
        self.contestant.succeeded(&Succeeded { client, attempts, last_failure });
        self.meter.count(now_us, |second| second.goodput += 1);
        self.meter.count(begun_us, |second| second.succeeded += 1);
        self.open -= 1;
    }

    pub(super) fn time_out(&mut self, now_us: u64, attempt: usize) {
        if self.attempts.get(attempt).is_some_and(|attempt| attempt.is_awaited) {
            self.meter.count(now_us, |second| second.timed_out += 1);
            self.fail(now_us, attempt, Failure::TimedOut);
        }
    }

    /// The caller learns that an attempt has failed, and repeats it or not.
    fn fail(&mut self, now_us: u64, attempt: usize, failure: Failure) {
        let Some(place) = self.answered(attempt) else { return };
        let Some(call) = self.calls.get_mut(place) else { return };
        call.last_failure = Some(failure);
        let deadline_us = call.begun_us + self.scenario.clients.deadline_ms * MS_US;
        let failed = Failed {
            client: call.client,
            attempts: call.attempts,
            failure,
            is_safe: call.is_safe,
            remaining_us: deadline_us.saturating_sub(now_us),
            draw: self.waits_chance.draw(),
            now_us,
        };
        self.entitled.failed(&failed, Usage::NOTHING);
        match self.contestant.failed(&failed) {
            Some(wait_us) if wait_us < failed.remaining_us => {
                self.events.put(now_us + wait_us, Event::Send { call: place });
            }
            Some(_) => {
                self.contestant.cut_short(failed.client);
                self.open -= 1;
            }
            None => self.open -= 1,
        }
    }

    /// Nobody waits for this attempt any more. Tells whose it was.
    fn answered(&mut self, attempt: usize) -> Option<usize> {
        let attempt = self.attempts.get_mut(attempt)?;
        attempt.is_awaited = false;
        Some(attempt.call)
    }
}

fn percent(number: u64, percent: u32) -> u64 {
    number.saturating_mul(u64::from(percent)) / 100
}
