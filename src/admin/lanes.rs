//! The limits of calls in flight, and what is counted of each.
use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

/// The limit that a call counts against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Every call without a limit of its own, while it waits.
    Calls,
    /// A call of BudgetService, while it waits.
    BudgetCalls,
    /// A stream, for as long as it is open.
    Streams,
    /// A question about health: its places are those of its connection.
    Health,
}

impl Lane {
    /// Every limit.
    pub const ALL: [Lane; 4] = [Lane::Calls, Lane::BudgetCalls, Lane::Streams, Lane::Health];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Lane::Calls => "calls",
            Lane::BudgetCalls => "budget_calls",
            Lane::Streams => "streams",
            Lane::Health => "health",
        }
    }
}

/// The calls of one limit.
#[derive(Clone, Debug)]
pub struct LaneCounts {
    /// Places taken now.
    pub in_flight: Gauge,
    /// Calls refused, since all places were taken.
    pub shed: Counter,
}

/// The counters of every limit.
#[derive(Debug)]
pub struct LaneMetrics([LaneCounts; Lane::ALL.len()]);

impl LaneMetrics {
    pub(super) fn register(registry: &mut Registry) -> LaneMetrics {
        let in_flight = Family::<[(&'static str, &'static str); 1], Gauge>::default();
        let help = "Calls that wait and streams that are open, by the limit they count against";
        registry.register("calls_in_flight", help, in_flight.clone());
        let shed = Family::<[(&'static str, &'static str); 1], Counter>::default();
        let help = "Calls refused as OVERLOADED, by the limit that was reached";
        registry.register("calls_shed", help, shed.clone());
        LaneMetrics(Lane::ALL.map(|lane| {
            let limit = [("limit", lane.name())];
            LaneCounts {
                in_flight: in_flight.get_or_create_owned(&limit),
                shed: shed.get_or_create_owned(&limit),
            }
        }))
    }

    /// The counters of one limit.
    pub fn of(&self, lane: Lane) -> &LaneCounts {
        let [calls, budget_calls, streams, health] = &self.0;
        match lane {
            Lane::Calls => calls,
            Lane::BudgetCalls => budget_calls,
            Lane::Streams => streams,
            Lane::Health => health,
        }
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text;

    use super::*;

    #[test]
    fn every_counter_has_the_name_of_its_limit() {
        let mut registry = Registry::default();
        let metrics = LaneMetrics::register(&mut registry);
        for (count, lane) in (1..).zip(Lane::ALL) {
            metrics.of(lane).in_flight.set(count);
            metrics.of(lane).shed.inc_by(10 + count.unsigned_abs());
        }
        let mut written = String::new();
        text::encode(&mut written, &registry).unwrap();
        for (count, lane) in (1..).zip(Lane::ALL) {
            let limit = format!("{{limit=\"{}\"}}", lane.name());
            assert!(written.contains(&format!("calls_in_flight{limit} {count}\n")), "{written}");
            assert!(written.contains(&format!("calls_shed_total{limit} {}\n", 10 + count)));
        }
    }
}
