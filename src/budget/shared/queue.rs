//! Shares that take part in the exchange, the neediest first.
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use super::trade::Want;
use crate::budget::shelf::Shelf;
use crate::budget::table::Locked;

/// One share, from its first touch until it holds nothing any more.
pub(in crate::budget) struct Waiting {
    pub(in crate::budget) shelf: Arc<Shelf>,
    /// Of its balance; `None`: it is the overflow balance.
    pub(in crate::budget) key: Option<Box<[u8]>>,
    /// Names its pool.
    pub(in crate::budget) pool: Box<str>,
}

impl Waiting {
    /// The balance that the share is in. It is not dropped while it waits.
    pub(super) fn lock(&self) -> Option<Locked<'_>> {
        self.shelf.lock_waiting(self.key.as_deref())
    }
}

/// Every share that takes part, by how much it wants to.
#[derive(Debug, Default)]
pub(super) struct Queue {
    now: VecDeque<Waiting>,
    soon: VecDeque<Waiting>,
    later: BTreeMap<u64, Vec<Waiting>>,
}

impl Queue {
    /// Puts a share where it belongs. One that wants nothing is let go.
    pub(super) fn put(&mut self, waiting: Waiting, want: Want) {
        match want {
            Want::Now => self.now.push_back(waiting),
            Want::Soon => self.soon.push_back(waiting),
            Want::Later(due_ms) => self.later.entry(due_ms).or_default().push(waiting),
            Want::Never => {}
        }
    }

    /// Takes out whatever is due by now: meanwhile it may want something else.
    pub(super) fn due(&mut self, now_ms: u64) -> impl Iterator<Item = Waiting> + use<> {
        let later = self.later.split_off(&now_ms.saturating_add(1));
        std::mem::replace(&mut self.later, later).into_values().flatten()
    }

    /// The next ones, `count` at most. A quarter of the places is for those that are not the
    /// neediest: their leases would lapse.
    pub(super) fn take(&mut self, count: usize) -> Vec<Waiting> {
        let soon = self.soon.len().min(count.saturating_sub(self.now.len()).max(count / 4));
        let now = self.now.len().min(count.saturating_sub(soon));
        self.now.drain(..now).chain(self.soon.drain(..soon)).collect()
    }

    /// All of them, whatever they want.
    pub(super) fn take_all(&mut self) -> Vec<Waiting> {
        let Queue { now, soon, later } = std::mem::take(self);
        now.into_iter().chain(soon).chain(later.into_values().flatten()).collect()
    }

    pub(super) fn len(&self) -> usize {
        let later: usize = self.later.values().map(Vec::len).sum();
        self.now.len() + self.soon.len() + later
    }
}

impl fmt::Debug for Waiting {
    // The pool's name holds names of callers: they do not belong into a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiting").field("budget", &self.shelf.name).finish_non_exhaustive()
    }
}
