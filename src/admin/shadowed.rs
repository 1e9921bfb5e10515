//! What is counted of a second set of policies. Without one, nothing of it shows.
use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

use super::reloads::Outcomes;
use crate::engine::Rule;

type OneLabel = [(&'static str, &'static str); 1];
type TwoLabels = [(&'static str, &'static str); 2];

/// The decisions of a second set of policies, held against the real ones.
#[derive(Clone, Debug)]
pub struct Shadowed {
    same: Counter,
    differs: Counter,
    /// By both reasons, of which there are fifteen.
    differences: Family<TwoLabels, Counter>,
    panics: Counter,
}

/// The families of these metrics, empty until there is a second set.
#[derive(Debug, Default)]
pub(super) struct Families {
    decisions: Family<OneLabel, Counter>,
    differences: Family<TwoLabels, Counter>,
    panics: Family<[(&'static str, &'static str); 0], Counter>,
    pub(super) policy: Family<[(&'static str, String); 1], Gauge>,
    pub(super) reloads: Outcomes,
}

impl Families {
    pub(super) fn register(registry: &mut Registry) -> Families {
        let families = Families::default();
        let Families { decisions, differences, panics, policy, reloads } = &families;
        let help = "Decisions of the shadow policies, by whether they say what the real ones said";
        registry.register("shadow_decisions", help, decisions.clone());
        let help = "Decisions in which the shadow policies differ, by both reasons";
        registry.register("shadow_differences", help, differences.clone());
        registry.register("shadow_panics", "Ends of the shadow policies", panics.clone());
        registry.register("shadow_policy_info", "The revision of the shadow", policy.clone());
        let help = "Reloads of the shadow's policy file";
        registry.register("shadow_policy_reloads", help, reloads.clone());
        families
    }

    /// The counters. They show from now on.
    pub(super) fn shown(&self) -> Shadowed {
        let decided = |outcome| self.decisions.get_or_create_owned(&[("outcome", outcome)]);
        Shadowed {
            same: decided("same"),
            differs: decided("differs"),
            differences: self.differences.clone(),
            panics: self.panics.get_or_create_owned(&[]),
        }
    }
}

impl Shadowed {
    /// Counts a decision that says the same.
    pub(crate) fn same(&self) {
        self.same.inc();
    }

    /// Counts one that does not. Where both reasons are one, the delay differs, or whether it binds.
    pub(crate) fn differs(&self, active: Rule, shadow: Rule) {
        self.differs.inc();
        let reasons = [("active", active.name()), ("shadow", shadow.name())];
        self.differences.get_or_create(&reasons).inc();
    }

    pub(crate) fn panicked(&self) {
        self.panics.inc();
    }
}
