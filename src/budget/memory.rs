//! Every balance in one process's memory.
use std::fmt;
use std::sync::Arc;

use super::account::Held;
use super::grant::Grant;
use super::list::{Listed, Page};
use super::room::{Occupancy, Room};
use super::shared::Sharing;
use super::shelf::Shelf;
use super::store::{Ask, Store};
use super::table::{Locked, Place, Vacancy};
use super::{Budget, BudgetId, Holder, Limits, OnStoreLoss, Scope, State, Usage, ratio};

/// Keeps all balances in memory: those of one process, gone with it.
///
/// An [`Account`](super::Account) holds its balances locked, so that nothing comes between looking
/// and charging: one place in the table of each of its budgets, locked in one order everywhere. A
/// thread must hold one account at most.
pub struct Memory {
    shelves: Box<[Arc<Shelf>]>,
    unknown: Arc<Shelf>,
    room: Arc<Room>,
    sharing: Option<Arc<Sharing>>,
}

/// What there is for whoever asks, locked.
pub(super) enum Found<'s> {
    Own(Locked<'s>),
    Overflow(Locked<'s>),
    Nothing(Vacancy<'s>),
}

/// Balances that a store keeps unless somebody says otherwise.
pub const BALANCES_MAX: usize = 1_000_000;

impl Memory {
    /// A store for these budgets, with every balance fresh and room for [`BALANCES_MAX`].
    pub fn new(budgets: &[Budget]) -> Memory {
        Memory::with_room(budgets, BALANCES_MAX)
    }

    /// A store with room for `balances_max` balances, over all budgets. When they are taken, keys
    /// that have none share one more balance of their budget: its overflow balance. So invented
    /// names cost bounded memory, and share one floor.
    pub fn with_room(budgets: &[Budget], balances_max: usize) -> Memory {
        Memory::build(budgets, balances_max, None)
    }

    /// A store that holds this replica's part of every balance, and gets more from the others as
    /// a [`Ticker`](super::shared::Ticker) of the same `sharing` runs.
    pub fn shared(budgets: &[Budget], balances_max: usize, sharing: Arc<Sharing>) -> Memory {
        Memory::build(budgets, balances_max, Some(sharing))
    }

    fn build(budgets: &[Budget], balances_max: usize, sharing: Option<Arc<Sharing>>) -> Memory {
        let room = Arc::new(Room::new(balances_max));
        let shelf =
            |budget: &Budget| Arc::new(Shelf::new(budget, Arc::clone(&room), sharing.clone()));
        Memory {
            shelves: budgets.iter().map(shelf).collect(),
            unknown: shelf(&never_granting()),
            room,
            sharing,
        }
    }

    /// The time that its balances go by: the fleet's, where they are shared.
    pub(super) fn time(&self, now_ms: u64) -> u64 {
        self.sharing.as_ref().map_or(now_ms, |sharing| sharing.fleet_ms(now_ms))
    }

    pub(super) fn is_shared(&self) -> bool {
        self.sharing.is_some()
    }

    /// The budget's balances. A budget that this store was not made for grants nothing.
    pub(super) fn shelf(&self, id: BudgetId) -> &Arc<Shelf> {
        self.shelves.get(id.0).unwrap_or(&self.unknown)
    }

    /// Whether this store was made for its budget.
    pub(super) fn knows(&self, shelf: &Shelf) -> bool {
        shelf.id != self.unknown.id
    }

    /// Locks the balance of whoever asks: its own, or the one that all share for which there is no
    /// room. One that `is_written` is made.
    pub(super) fn lock<'s>(&self, shelf: &'s Shelf, ask: &Ask<'_>, is_written: bool) -> Found<'s> {
        let vacancy = match shelf.lock(&ask.holder) {
            Place::Taken(kept) => return Found::Own(kept),
            Place::Free(vacancy) => vacancy,
        };
        if self.room.is_full() && !ask.dry_run {
            self.make_room(ask.now_ms);
        }
        let found = match (self.room.is_full(), is_written && !ask.dry_run) {
            (false, false) => return Found::Nothing(vacancy),
            (false, true) => shelf.fill(vacancy, &ask.holder, ask.now_ms),
            (true, _) => {
                drop(vacancy);
                None
            }
        };
        match found {
            Some(kept) => Found::Own(kept),
            None => Found::Overflow(shelf.lock_overflow(&ask.holder, ask.now_ms)),
        }
    }

    /// Looks at a few balances of some budget: its own may have nothing that is idle.
    fn make_room(&self, now_ms: u64) {
        let (turn, shelves) = (self.room.turn(), self.shelves.len().max(1));
        if let Some(shelf) = self.shelves.get(turn % shelves) {
            shelf.drop_idle(turn / shelves, now_ms);
        }
    }
}

impl Store for Memory {
    type Account<'a> = Held<'a, 'a>;

    fn open<'a>(&'a self, ask: &Ask<'a>, paid: Option<&Grant>) -> Held<'a, 'a> {
        Held::open(self, *ask, paid)
    }

    fn deposit<'a>(
        &'a self,
        holder: Holder<'a>,
        usage: &'a Usage,
        now_ms: u64,
    ) -> Option<State<'a>> {
        let ask = Ask { usage, ..Ask::ahead_of_failures(holder, now_ms) };
        State::scarcest(Held::open(self, ask, None).shown())
    }

    fn acquire<'a>(
        &'a self,
        holder: Holder<'a>,
        wanted: u32,
        now_ms: u64,
    ) -> (Grant, Option<State<'a>>) {
        let mut held = Held::open(self, Ask::ahead_of_failures(holder, now_ms), None);
        let grant = held.acquire(wanted);
        (grant, State::scarcest(held.shown()))
    }

    fn give_back(&self, holder: Holder<'_>, grant: &mut Grant, retries: u32, now_ms: u64) -> u32 {
        let now_ms = self.time(now_ms);
        grant.take_off(retries, |paid, retries| {
            let shelf = self.shelves.iter().find(|shelf| shelf.id == paid.by.shelf);
            let found =
                shelf.and_then(|shelf| Some((shelf, shelf.lock_payer(paid.by, &holder, now_ms)?)));
            let Some((shelf, mut kept)) = found else { return paid.debit };
            let terms = shelf.bring_up(&mut kept, now_ms);
            shelf.enqueue(&mut kept, &holder, paid.by.overflow);
            kept.balance.give_back(&terms.limits, paid.debit, retries, now_ms)
        })
    }

    fn look<'a>(&'a self, holder: Holder<'a>, now_ms: u64) -> Vec<State<'a>> {
        // What a dry run shows before it charges.
        let looking = Ask { dry_run: true, ..Ask::ahead_of_failures(holder, now_ms) };
        Held::open(self, looking, None).shown().collect()
    }

    fn list(
        &self,
        after: Option<&Listed>,
        count: usize,
        now_ms: u64,
        shows: &dyn Fn(&str) -> bool,
    ) -> Vec<Listed> {
        let now_ms = self.time(now_ms);
        let mut page = Page::new(after, count, shows);
        self.shelves.iter().for_each(|shelf| page.take_from(shelf, now_ms));
        page.into_rows()
    }

    fn succeeded_by(&self, budgets: &[Budget], now_ms: u64) -> Memory {
        // So that no balance is ever two sizes behind.
        self.settle();
        let now_ms = self.time(now_ms);
        let shelf = |budget: &Budget| match self.shelves.iter().find(|shelf| shelf.is_for(budget)) {
            Some(shelf) => {
                shelf.resize(budget, now_ms);
                Arc::clone(shelf)
            }
            None => {
                let (room, sharing) = (Arc::clone(&self.room), self.sharing.clone());
                Arc::new(Shelf::new(budget, room, sharing))
            }
        };
        Memory {
            shelves: budgets.iter().map(shelf).collect(),
            unknown: Arc::clone(&self.unknown),
            room: Arc::clone(&self.room),
            sharing: self.sharing.clone(),
        }
    }

    fn settle(&self) {
        self.shelves.iter().for_each(|shelf| shelf.settle());
    }

    fn occupancy(&self) -> Occupancy {
        self.room.occupancy()
    }
}

impl fmt::Debug for Memory {
    // The keys are names of callers: they do not belong into a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").field("occupancy", &self.occupancy()).finish_non_exhaustive()
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
