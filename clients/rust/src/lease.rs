//! Retries that were taken ahead.
use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::usage::Names;

/// How often retries are asked for at most.
const PAUSE: Duration = Duration::from_secs(1);

/// Further names get no lease: one made of ids would fill the memory.
const NAMES_MAX: usize = 10_000;

/// The leases of a client, by whose they are.
#[derive(Default)]
pub(crate) struct Leases {
    held: Mutex<HashMap<Names, Held>>,
}

struct Held {
    asked_at: Instant,
    lease: Option<Lease>,
}

/// Retries that were granted together, to be sent before `until`.
#[derive(Clone, Debug)]
pub(crate) struct Lease {
    pub(crate) name: String,
    pub(crate) left: u32,
    pub(crate) until: Instant,
}

impl Leases {
    /// Spends one retry, and tells out of which lease.
    pub(crate) fn spend(&self, names: &Names) -> Option<String> {
        let mut held = self.lock();
        let lease = held.get_mut(names)?.lease.as_mut().filter(|lease| 0 < lease.usable())?;
        lease.left -= 1;
        Some(lease.name.clone())
    }

    /// Takes back a retry that was not sent. `false`: its lease is no longer here.
    pub(crate) fn give_back(&self, names: &Names, name: &str) -> bool {
        let mut held = self.lock();
        let lease = held.get_mut(names).and_then(|held| held.lease.as_mut());
        let Some(lease) = lease.filter(|lease| lease.name == name) else { return false };
        lease.left += 1;
        true
    }

    /// Whether it is time to ask for more; if so, whoever asked this has to.
    pub(crate) fn is_due(&self, names: &Names) -> bool {
        let (mut held, now) = (self.lock(), Instant::now());
        if let Some(held) = held.get_mut(names) {
            let is_spent = held.lease.as_ref().is_none_or(|lease| lease.usable() == 0);
            let is_due = is_spent && held.asked_at + PAUSE <= now;
            if is_due {
                held.asked_at = now;
            }
            return is_due;
        }
        let is_new = held.len() < NAMES_MAX;
        if is_new {
            held.insert(names.clone(), Held { asked_at: now, lease: None });
        }
        is_new
    }

    /// What was granted. What it replaces was spent, or over.
    pub(crate) fn hold(&self, names: &Names, lease: Lease) {
        if let Some(held) = self.lock().get_mut(names) {
            held.lease = Some(lease);
        }
    }

    /// Retries that can be sent now.
    pub(crate) fn left(&self, names: &Names) -> u32 {
        let held = self.lock();
        let lease = held.get(names).and_then(|held| held.lease.as_ref());
        lease.map_or(0, Lease::usable)
    }

    /// Takes all that is left.
    pub(crate) fn take_all(&self) -> Vec<(Names, Lease)> {
        let all = std::mem::take(&mut *self.lock()).into_iter();
        let left = all.filter_map(|(names, held)| Some((names, held.lease?)));
        left.filter(|(_, lease)| 0 < lease.usable()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Names, Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lease {
    fn usable(&self) -> u32 {
        if Instant::now() < self.until { self.left } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names {
        Names { tenant: "t".into(), operation: "op".into() }
    }

    /// Leases with these retries, held for an hour.
    fn leases(left: u32) -> Leases {
        let leases = Leases::default();
        assert!(leases.is_due(&names()), "the first time");
        let until = Instant::now() + Duration::from_secs(3600);
        leases.hold(&names(), Lease { name: "first".into(), left, until });
        leases
    }

    /// As if the question for them had been put so long ago.
    fn asked_ago(leases: &Leases, ago: Duration) {
        let mut held = leases.lock();
        held.get_mut(&names()).unwrap().asked_at = Instant::now().checked_sub(ago).unwrap();
    }

    #[test]
    fn each_retry_is_spent_once() {
        let leases = leases(2);
        let spent = [(); 3].map(|()| leases.spend(&names()));
        assert_eq!(spent, [Some("first".into()), Some("first".into()), None]);
    }

    #[test]
    fn nothing_is_spent_when_its_time_is_over() {
        let leases = leases(2);
        leases.hold(&names(), Lease { name: "over".into(), left: 2, until: Instant::now() });
        assert_eq!((leases.spend(&names()), leases.left(&names())), (None, 0));
        assert!(leases.take_all().is_empty());
    }

    #[test]
    fn more_is_asked_for_when_it_is_spent_and_once_a_second() {
        let leases = leases(1);
        asked_ago(&leases, PAUSE);
        assert!(!leases.is_due(&names()), "one is left");
        leases.spend(&names()).unwrap();
        assert!(leases.is_due(&names()));
        // Within a second even of a busy machine: as if it had been asked later than now.
        leases.lock().get_mut(&names()).unwrap().asked_at += PAUSE * 60;
        assert!(!leases.is_due(&names()), "asked just now");
        asked_ago(&leases, PAUSE);
        assert!(leases.is_due(&names()));
    }

    #[test]
    fn what_was_not_sent_comes_back_to_its_own_lease() {
        let leases = leases(1);
        let name = leases.spend(&names()).unwrap();
        assert!(leases.give_back(&names(), &name));
        assert_eq!(leases.left(&names()), 1);
        assert!(!leases.give_back(&names(), "another"));
        assert_eq!(leases.take_all().pop().unwrap().1.left, 1);
    }
}
