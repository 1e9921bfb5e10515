//! What the callers did since retryd was last told.
use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::{
    pb,
    settings::{OPERATION_BYTES_MAX, TENANT_BYTES_MAX, is_name},
};

/// Further names are not counted: a name made of ids would fill the memory.
const NAMES_MAX: usize = 10_000;

/// The contract's limit of a count.
const COUNT_MAX: u64 = 1_000_000_000;

/// Whose usage it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Names {
    pub(crate) tenant: String,
    pub(crate) operation: String,
}

impl Names {
    /// Those that retryd refuses would come back with every report, and large ones bring back all.
    fn are_taken(&self) -> bool {
        let is_taken = |name: &str, bytes_max| !name.is_empty() && is_name(name, bytes_max);
        is_taken(&self.tenant, TENANT_BYTES_MAX) && is_taken(&self.operation, OPERATION_BYTES_MAX)
    }
}

/// Counts by tenant and operation.
#[derive(Default)]
pub(crate) struct Usage {
    counts: Mutex<HashMap<Names, Counts>>,
}

/// What happened since `since`. Who takes it settles it: gives it back, or lets it go.
#[derive(Clone, Debug)]
pub(crate) struct Counts {
    usage: pb::Usage,
    since: Instant,
}

impl Usage {
    /// A first attempt is sent.
    pub(crate) fn request(&self, names: &Names) {
        self.count(names, |usage| usage.requests += 1);
    }

    /// A call succeeded: on its first try, or later, after a failure of `class`.
    pub(crate) fn success(&self, names: &Names, attempts_made: u32, class: pb::FailureClass) {
        self.count(names, |usage| {
            if attempts_made <= 1 {
                usage.first_try_successes += 1;
                return;
            }
            usage.retried_successes += 1;
            match class {
                pb::FailureClass::Unspecified => {}
                pb::FailureClass::Transient => usage.retried_transient += 1,
                pb::FailureClass::Throttling => usage.retried_throttling += 1,
                pb::FailureClass::Timeout => usage.retried_timeout += 1,
            }
        });
    }

    fn count(&self, names: &Names, count: impl FnOnce(&mut pb::Usage)) {
        let mut all = self.lock();
        if let Some(counts) = all.get_mut(names) {
            count(&mut counts.usage);
        } else if all.len() < NAMES_MAX && names.are_taken() {
            let mut counts = Counts { usage: pb::Usage::default(), since: Instant::now() };
            count(&mut counts.usage);
            all.insert(names.clone(), counts);
        }
    }

    /// Takes what was counted for one operation.
    pub(crate) fn take(&self, names: &Names) -> Option<Counts> {
        self.lock().remove(names)
    }

    /// Takes everything.
    pub(crate) fn take_all(&self) -> Vec<(Names, Counts)> {
        self.lock().drain().collect()
    }

    /// Puts back what was surely not counted by retryd.
    pub(crate) fn give_back(&self, names: &Names, counts: Counts) {
        let mut all = self.lock();
        if let Some(newer) = all.get_mut(names) {
            newer.merge(&counts);
        } else if all.len() < NAMES_MAX {
            all.insert(names.clone(), counts);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Names, Counts>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counts {
    /// As it is told now. A period of nothing would be refused.
    pub(crate) fn told(&self) -> pb::Usage {
        let period = self.since.elapsed().max(Duration::from_millis(1));
        pb::Usage { period: prost_types::Duration::try_from(period).ok(), ..self.usage }
    }

    fn merge(&mut self, older: &Counts) {
        let (usage, old) = (&mut self.usage, &older.usage);
        for (count, more) in [
            (&mut usage.requests, old.requests),
            (&mut usage.first_try_successes, old.first_try_successes),
            (&mut usage.retried_successes, old.retried_successes),
            (&mut usage.retried_transient, old.retried_transient),
            (&mut usage.retried_throttling, old.retried_throttling),
            (&mut usage.retried_timeout, old.retried_timeout),
        ] {
            *count = count.saturating_add(more).min(COUNT_MAX);
        }
        self.since = self.since.min(older.since);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(operation: &str) -> Names {
        Names { tenant: "t".into(), operation: operation.into() }
    }

    /// As if the counting had begun so long ago.
    fn began_ago(usage: &Usage, ago: Duration) {
        let mut all = usage.lock();
        all.get_mut(&names("op")).unwrap().since = Instant::now().checked_sub(ago).unwrap();
    }

    fn period(told: &pb::Usage) -> Duration {
        told.period.unwrap().try_into().unwrap()
    }

    #[test]
    fn what_is_taken_is_told_with_its_period() {
        let usage = Usage::default();
        usage.request(&names("op"));
        usage.success(&names("op"), 1, pb::FailureClass::Timeout);
        usage.success(&names("op"), 2, pb::FailureClass::Timeout);
        usage.success(&names("op"), 2, pb::FailureClass::Unspecified);
        began_ago(&usage, Duration::from_millis(1500));
        let told = usage.take(&names("op")).unwrap().told();
        let expected = pb::Usage {
            requests: 1,
            first_try_successes: 1,
            retried_successes: 2,
            retried_timeout: 1,
            period: told.period,
            ..pb::Usage::default()
        };
        assert_eq!(told, expected);
        assert!(Duration::from_millis(1500) <= period(&told));
        assert!(usage.take(&names("op")).is_none(), "taken twice");
    }

    #[test]
    fn what_is_given_back_keeps_its_start() {
        let usage = Usage::default();
        usage.request(&names("op"));
        began_ago(&usage, Duration::from_secs(2));
        let taken = usage.take(&names("op")).unwrap();
        usage.request(&names("op"));
        usage.give_back(&names("op"), taken);
        let told = usage.take(&names("op")).unwrap().told();
        assert_eq!(told.requests, 2);
        assert!(Duration::from_secs(2) <= period(&told));
    }

    #[test]
    fn a_name_that_retryd_refuses_is_not_counted() {
        let usage = Usage::default();
        for name in ["", "\n", "\u{9f}", &"n".repeat(257)] {
            usage.request(&names(name));
            usage.request(&Names { tenant: name.into(), operation: "op".into() });
        }
        assert!(usage.take_all().is_empty());
        usage.request(&Names { tenant: "t".repeat(128), operation: "ü".repeat(128) });
        assert_eq!(usage.take_all().len(), 1);
    }

    #[test]
    fn further_names_are_not_counted() {
        let usage = Usage::default();
        for place in 0..NAMES_MAX {
            usage.request(&names(&place.to_string()));
        }
        usage.request(&names("one more"));
        usage.request(&names("0"));
        assert!(usage.take(&names("one more")).is_none());
        assert_eq!(usage.take(&names("0")).unwrap().told().requests, 2);
        assert_eq!(usage.take_all().len(), NAMES_MAX - 1);
    }
}
