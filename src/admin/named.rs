//! Counters by the names in the policy file: of the revision in force, and of no more than a constant.
use std::collections::BTreeSet;

use parking_lot::Mutex;
use prometheus_client::{
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

use crate::engine::Rule;

/// Policies, and budgets, that are counted by name. Where a file has more, the rest is [`OTHER`].
pub(super) const NAMES_MAX: usize = 200;

/// No name of a policy file: those have no underscore.
const OTHER: &str = "_other";

/// The counters of one revision of the policy file, looked up once: counting is one addition.
#[derive(Clone, Debug)]
pub struct NamedCounts {
    decisions: Box<[[Counter; Rule::ALL.len()]]>,
    denials: Box<[[Counter; 1]]>,
}

impl NamedCounts {
    /// Counts a decision of the policy at this place in the file, by the rule that made it.
    pub fn decided(&self, policy: usize, rule: Rule) {
        if let Some(counter) = self.decisions.get(policy).and_then(|rules| rules.get(rule as usize))
        {
            counter.inc();
        }
    }

    /// Counts a no of the budget at this place in the file.
    pub fn denied(&self, budget: usize) {
        if let Some([counter]) = self.denials.get(budget) {
            counter.inc();
        }
    }
}

/// The counters of whatever revision is in force.
#[derive(Debug)]
pub(super) struct Named {
    policies: ByName<{ Rule::ALL.len() }>,
    budgets: ByName<1>,
}

impl Named {
    pub(super) fn register(registry: &mut Registry) -> Named {
        let decisions = Family::default();
        let help = "Decisions, by verdict, reason and policy";
        registry.register("decisions", help, decisions.clone());
        let denials = Family::default();
        let help = "Decisions that a budget refused: the first of a policy that did";
        registry.register("budget_denials", help, denials.clone());
        Named {
            policies: ByName { family: decisions, labels: of_policy, shown: Mutex::default() },
            budgets: ByName { family: denials, labels: of_budget, shown: Mutex::default() },
        }
    }

    /// The counters of a revision, in the order of its file. A name that was there before goes on; one
    /// that is gone shows no longer.
    pub(super) fn of(&self, policies: &[&str], budgets: &[&str]) -> NamedCounts {
        NamedCounts { decisions: self.policies.of(policies), denials: self.budgets.of(budgets) }
    }

    /// Decisions by the rule that made them, in the order of [`Rule::ALL`], those of policies that are
    /// gone too.
    pub(super) fn decisions(&self) -> [u64; Rule::ALL.len()] {
        self.policies.sums()
    }
}

type Labels = Vec<(&'static str, String)>;

/// `N` counters for each name.
#[derive(Debug)]
struct ByName<const N: usize> {
    family: Family<Labels, Counter>,
    labels: fn(&str) -> [Labels; N],
    shown: Mutex<Shown<N>>,
}

#[derive(Debug)]
struct Shown<const N: usize> {
    names: BTreeSet<String>,
    /// What was counted for names that show no longer.
    gone: [u64; N],
}

impl<const N: usize> Default for Shown<N> {
    fn default() -> Shown<N> {
        Shown { names: BTreeSet::new(), gone: [0; N] }
    }
}

impl<const N: usize> ByName<N> {
    fn of(&self, names: &[&str]) -> Box<[[Counter; N]]> {
        // From the end: the last policy is the one that everybody else gets.
        let mut now: BTreeSet<String> =
            names.iter().rev().take(NAMES_MAX).map(|name| (*name).to_owned()).collect();
        let counters = |name: &&str| {
            let label = if now.contains(*name) { name } else { OTHER };
            (self.labels)(label).map(|labels| self.family.get_or_create_owned(&labels))
        };
        let counts = names.iter().map(counters).collect();
        if NAMES_MAX < names.len() {
            now.insert(OTHER.to_owned());
        }
        let mut shown = self.shown.lock();
        let Shown { names, gone } = &mut *shown;
        for name in names.difference(&now) {
            for (labels, gone) in (self.labels)(name).iter().zip(&mut *gone) {
                *gone += self.family.get_or_create(labels).get();
                self.family.remove(labels);
            }
        }
        *names = now;
        counts
    }

    /// The counters of all names, each place added up.
    fn sums(&self) -> [u64; N] {
        let shown = self.shown.lock();
        let mut sums = shown.gone;
        for name in &shown.names {
            for (labels, sum) in (self.labels)(name).iter().zip(&mut sums) {
                *sum += self.family.get_or_create(labels).get();
            }
        }
        sums
    }
}

fn of_policy(name: &str) -> [Labels; Rule::ALL.len()] {
    Rule::ALL.map(|rule| {
        let verdict = if rule == Rule::Retryable { "RETRY" } else { "DO_NOT_RETRY" };
        let reason = rule.name().to_owned();
        vec![("verdict", verdict.to_owned()), ("reason", reason), ("policy", name.to_owned())]
    })
}

fn of_budget(name: &str) -> [Labels; 1] {
    [vec![("budget", name.to_owned())]]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(registry: &Registry) -> String {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, registry).unwrap();
        text
    }

    fn series(registry: &Registry) -> usize {
        text(registry).lines().filter(|line| !line.starts_with('#')).count()
    }

    #[test]
    fn a_name_goes_on_over_a_reload_and_one_that_is_gone_shows_no_longer() {
        let mut registry = Registry::default();
        let named = Named::register(&mut registry);
        let before = named.of(&["stays", "goes"], &["paid"]);
        before.decided(0, Rule::MaybeProcessed);
        before.decided(1, Rule::Retryable);
        before.denied(0);
        let after = named.of(&["comes", "stays"], &["paid"]);
        after.decided(1, Rule::MaybeProcessed);
        after.denied(0);
        // One that has begun by the revision before.
        before.decided(0, Rule::MaybeProcessed);
        before.decided(1, Rule::Retryable);

        let sums = named.decisions();
        assert_eq!(sums[Rule::MaybeProcessed as usize], 3);
        assert_eq!(sums[Rule::Retryable as usize], 1, "that of the policy that is gone");

        let text = text(&registry);
        let of_policy = |verdict, reason, policy, count| {
            let labels = format!("verdict=\"{verdict}\",reason=\"{reason}\",policy=\"{policy}\"");
            let line = format!("decisions_total{{{labels}}} {count}\n");
            assert!(text.contains(&line), "{line}{text}");
        };
        of_policy("DO_NOT_RETRY", "MAYBE_PROCESSED", "stays", 3);
        of_policy("RETRY", "RETRYABLE", "comes", 0);
        assert!(text.contains("budget_denials_total{budget=\"paid\"} 2\n"), "{text}");
        assert!(!text.contains("goes"), "{text}");
    }

    #[test]
    fn there_are_no_more_series_than_allowed_whatever_is_reloaded() {
        let mut registry = Registry::default();
        let named = Named::register(&mut registry);
        for reload in 0..5 {
            let names: Vec<String> = (0..1_000).map(|name| format!("{reload}-{name}")).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let counts = named.of(&names, &names);
            for place in 0..names.len() {
                counts.decided(place, Rule::Retryable);
                counts.denied(place);
            }
        }
        let text = text(&registry);
        assert_eq!(series(&registry), (NAMES_MAX + 1) * (Rule::ALL.len() + 1), "{text}");
        assert!(
            text.contains("reason=\"RETRYABLE\",policy=\"4-999\"} 1\n"),
            "the last one: {text}"
        );
        assert!(text.contains("reason=\"RETRYABLE\",policy=\"_other\"} 4000\n"), "{text}");
        named.of(&["few"], &[]);
        assert_eq!(series(&registry), Rule::ALL.len());
    }

    #[test]
    fn a_policy_may_be_named_as_the_others_are() {
        let mut registry = Registry::default();
        let named = Named::register(&mut registry);
        named.of(&["other"], &["other"]).decided(0, Rule::Retryable);
        assert!(text(&registry).contains("policy=\"other\"} 1\n"));
    }
}
