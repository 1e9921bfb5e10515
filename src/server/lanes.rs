//! Calls in flight, and when one more is too much.
//!
//! A call counts from the moment it waits: for the rest of its request, or for something that its
//! service does. One whose message is there is answered in the turn in which it is seen, which costs
//! less than to refuse it; so it takes no place, and no number of calls that wait shuts it out. For
//! that, a call for which there is no place is refused only when its message is late: many clients
//! send it a moment after the head. A stream counts for as long as it is open, against a limit of its own.
use std::sync::Arc;

use tonic::Status;

use super::{
    endings,
    limits::{HEALTH_CALLS_MAX, Limits},
    slots::{Slot, Slots},
};
use crate::{
    admin::{
        lanes::Lane,
        metrics::{Metrics, Refused},
    },
    clock::Now,
    telemetry::Seldom,
};

/// The methods that stay open as long as their caller likes.
const STREAMS: [&str; 2] =
    ["/retryd.v1.RetryService/DecideStream", "/retryd.v1.BudgetService/WatchBudget"];
const REFLECTION: &str = "/grpc.reflection.";
const BUDGETS: &str = "/retryd.v1.BudgetService/";
const HEALTH: &str = "/grpc.health.v1.Health/";

/// The limit that a call of `path` counts against.
pub(super) fn lane_of(path: &str) -> Lane {
    if path.starts_with(HEALTH) {
        Lane::Health
    } else if STREAMS.contains(&path) || path.starts_with(REFLECTION) {
        Lane::Streams
    } else if path.starts_with(BUDGETS) {
        Lane::BudgetCalls
    } else {
        Lane::Calls
    }
}

/// Whether a call of it takes its place at its head, and not when it waits for the first time.
pub(super) fn is_long(lane: Lane) -> bool {
    match lane {
        Lane::Streams | Lane::Health => true,
        Lane::Calls | Lane::BudgetCalls => false,
    }
}

/// The places of the whole process.
#[derive(Debug)]
pub(super) struct Lanes {
    calls: Arc<Slots>,
    budget_calls: Arc<Slots>,
    streams: Arc<Slots>,
    metrics: Arc<Metrics>,
    /// In the order of [`Lane::ALL`].
    told: [Seldom; Lane::ALL.len()],
}

impl Lanes {
    pub(super) fn new(limits: &Limits, metrics: &Arc<Metrics>) -> Arc<Lanes> {
        let slots = |max, lane| Slots::new(max, metrics.lanes.of(lane).in_flight.clone());
        Arc::new(Lanes {
            calls: slots(limits.calls_max, Lane::Calls),
            budget_calls: slots(limits.budget_calls_max, Lane::BudgetCalls),
            streams: slots(limits.streams_max, Lane::Streams),
            metrics: Arc::clone(metrics),
            told: Lane::ALL.map(|_| Seldom::default()),
        })
    }

    fn shed(&self, lane: Lane, now: Now) -> Status {
        self.metrics.lanes.of(lane).shed.inc();
        self.metrics.refused(Refused::Overloaded);
        if self.told.get(lane as usize).is_some_and(|told| told.is_due(now)) {
            tracing::warn!(limit = lane.name(), "limit of calls in flight reached: refusing more");
        }
        endings::overloaded()
    }
}

/// The places that the calls of one connection take: those of the process, and for questions about
/// health its own, so that nobody can take them from the one who asks whether this process lives.
#[derive(Debug)]
pub(super) struct Places {
    lanes: Arc<Lanes>,
    health: Arc<Slots>,
}

impl Places {
    pub(super) fn of_connection(lanes: &Arc<Lanes>) -> Places {
        let health = lanes.metrics.lanes.of(Lane::Health).in_flight.clone();
        Places { lanes: Arc::clone(lanes), health: Slots::new(HEALTH_CALLS_MAX, health) }
    }

    /// A place for one more call, if there is one.
    pub(super) fn free(&self, lane: Lane) -> Option<Slot> {
        let slots = match lane {
            Lane::Calls => &self.lanes.calls,
            Lane::BudgetCalls => &self.lanes.budget_calls,
            Lane::Streams => &self.lanes.streams,
            Lane::Health => &self.health,
        };
        slots.take()
    }

    /// How a call ends for which there is none.
    pub(super) fn shed(&self, lane: Lane, now: Now) -> Status {
        self.lanes.shed(lane, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A method that is added to the contract has its limit without a thought: here is the thought.
    #[test]
    fn every_method_of_the_contract_counts_against_the_right_limit() {
        let contract = include_str!("../../proto/retryd/v1/retryd.proto");
        let (mut service, mut methods) = ("", 0);
        for line in contract.lines().map(str::trim) {
            if let Some(name) = line.strip_prefix("service ") {
                service = name.trim_end_matches([' ', '{']);
            }
            let Some(method) = line.strip_prefix("rpc ") else { continue };
            let name = method.split('(').next().unwrap();
            let expected = match service {
                _ if method.contains("stream ") => Lane::Streams,
                "BudgetService" => Lane::BudgetCalls,
                _ => Lane::Calls,
            };
            let path = format!("/retryd.v1.{service}/{name}");
            assert_eq!(lane_of(&path), expected, "{path}");
            methods += 1;
        }
        assert!(8 <= methods, "{methods}");
        for (path, expected) in [
            ("/grpc.health.v1.Health/Check", Lane::Health),
            ("/grpc.health.v1.Health/Watch", Lane::Health),
            ("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", Lane::Streams),
            ("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", Lane::Streams),
            ("/nobody.knows/This", Lane::Calls),
        ] {
            assert_eq!(lane_of(path), expected, "{path}");
        }
    }
}
