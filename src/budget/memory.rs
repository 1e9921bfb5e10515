//! Every balance in one process's memory.
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use ahash::RandomState;
use dashmap::{DashMap, Entry};
use parking_lot::Mutex;

use super::account::Held;
use super::balance::Balance;
use super::store::{Account, Ask, Store};
use super::{Budget, BudgetId, Limits, OnStoreLoss, Payers, Scope, State, Usage, key, ratio};
use crate::engine::Class;

/// Keeps all balances in memory: those of one process, gone with it.
///
/// An [`Account`] holds its balances locked, so that nothing comes between looking and charging.
/// No guard of a map is held meanwhile: two of them at once could wait for each other.
pub struct Memory {
    shelves: Box<[Shelf]>,
    unknown: Shelf,
    room: Room,
}

/// Balances that a store keeps unless somebody says otherwise.
pub const BALANCES_MAX: usize = 1_000_000;

/// The balances of one budget.
pub(super) struct Shelf {
    pub(super) name: Box<str>,
    pub(super) limits: Limits,
    scope: Scope,
    balances: DashMap<Box<[u8]>, Cell, RandomState>,
    overflow: OnceLock<Cell>,
}

/// One balance. Whoever has cloned it out of the map may lock it and wait.
pub(super) type Cell = Arc<Mutex<Balance>>;

impl Memory {
    /// A store for these budgets, with every balance fresh and room for [`BALANCES_MAX`].
    pub fn new(budgets: &[Budget]) -> Memory {
        Memory::with_room(budgets, BALANCES_MAX)
    }

    /// A store with room for `balances_max` balances, over all budgets. When they are taken, keys
    /// that have none share one more balance of their budget: its overflow balance. So invented
    /// names cost bounded memory, and share one floor.
    pub fn with_room(budgets: &[Budget], balances_max: usize) -> Memory {
        Memory {
            shelves: budgets.iter().map(Shelf::new).collect(),
            unknown: Shelf::new(&never_granting()),
            room: Room { taken: AtomicUsize::new(0), balances_max },
        }
    }

    /// How many balances there are. Those that were only looked at are not among them.
    pub fn balances(&self) -> usize {
        self.shelves.iter().map(|shelf| shelf.balances.len()).sum()
    }

    /// The budget's balances. A budget that this store was not made for grants nothing.
    pub(super) fn shelf(&self, id: BudgetId) -> &Shelf {
        self.shelves.get(id.0).unwrap_or(&self.unknown)
    }

    /// The balance of a key, if it has one or could not get one of its own.
    pub(super) fn find(&self, shelf: &Shelf, ask: &Ask<'_>) -> Option<Cell> {
        let found = shelf.find(ask);
        if found.is_none() && self.room.is_full() { Some(shelf.overflow(ask)) } else { found }
    }

    /// The balance of a key, made fresh if there is none and there is room.
    pub(super) fn find_or_create(&self, shelf: &Shelf, ask: &Ask<'_>) -> Cell {
        match shelf.find(ask) {
            Some(cell) => cell,
            None => shelf.create(ask, &self.room).unwrap_or_else(|| shelf.overflow(ask)),
        }
    }
}

/// How many balances there may be.
struct Room {
    taken: AtomicUsize,
    balances_max: usize,
}

impl Room {
    fn is_full(&self) -> bool {
        self.balances_max <= self.taken.load(Ordering::Relaxed)
    }

    fn take(&self) -> bool {
        let one_more = |taken| (taken < self.balances_max).then_some(taken + 1);
        self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_ok()
    }

    fn give_back(&self) {
        self.taken.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Store for Memory {
    type Account<'a> = Held<'a, 'a>;

    fn open<'a>(&'a self, ask: &Ask<'a>) -> Held<'a, 'a> {
        Held::open(self, *ask)
    }

    fn deposit<'a>(
        &'a self,
        payers: &'a Payers,
        tenant: &str,
        operation: &str,
        usage: &Usage,
        now_ms: u64,
    ) -> Option<State<'a>> {
        let report = Ask { usage, dry_run: false, ..looking(payers, tenant, operation, now_ms) };
        Held::open(self, report).scarcest()
    }

    fn look<'a>(
        &'a self,
        payers: &'a Payers,
        tenant: &str,
        operation: &str,
        now_ms: u64,
    ) -> Vec<State<'a>> {
        Held::open(self, looking(payers, tenant, operation, now_ms)).states().collect()
    }
}

impl fmt::Debug for Memory {
    // The keys are names of callers: they do not belong into a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").field("balances", &self.balances()).finish_non_exhaustive()
    }
}

impl Shelf {
    fn new(budget: &Budget) -> Shelf {
        Shelf {
            name: budget.name.clone(),
            limits: budget.limits,
            scope: budget.scope,
            balances: DashMap::default(),
            overflow: OnceLock::new(),
        }
    }

    fn find(&self, ask: &Ask<'_>) -> Option<Cell> {
        key::with(self.scope, ask.tenant, ask.operation, |key| {
            self.balances.get(key).map(|cell| Arc::clone(&cell))
        })
    }

    /// `entry` wants a key of its own, which is an allocation: only a new balance pays for it.
    fn create(&self, ask: &Ask<'_>, room: &Room) -> Option<Cell> {
        if !room.take() {
            return None;
        }
        key::with(self.scope, ask.tenant, ask.operation, |key| {
            match self.balances.entry(key.into()) {
                Entry::Occupied(entry) => {
                    room.give_back();
                    Some(Arc::clone(entry.get()))
                }
                Entry::Vacant(entry) => Some(Arc::clone(&entry.insert(self.fresh(ask.now_ms)))),
            }
        })
    }

    /// The balance that all keys share for which there was no room.
    fn overflow(&self, ask: &Ask<'_>) -> Cell {
        Arc::clone(self.overflow.get_or_init(|| self.fresh(ask.now_ms)))
    }

    fn fresh(&self, now_ms: u64) -> Cell {
        Arc::new(Mutex::new(Balance::fresh(&self.limits, now_ms)))
    }
}

/// Looking is a dry run that reports nothing.
fn looking<'a>(payers: &'a Payers, tenant: &'a str, operation: &'a str, now_ms: u64) -> Ask<'a> {
    Ask {
        payers,
        tenant,
        operation,
        usage: &Usage::NOTHING,
        counts: false,
        class: Class::Transient,
        dry_run: true,
        now_ms,
    }
}

/// Nothing can be earned here, and there is no floor.
fn never_granting() -> Budget {
    let floor = ratio::Floor { count: 0, interval_ms: 1_000 };
    Budget {
        name: "unknown".into(),
        scope: Scope::Global,
        limits: Limits::Ratio(ratio::Limits { percent: 0, interval_ms: 1_000, floor }),
        on_store_loss: OnStoreLoss::Deny,
    }
}
