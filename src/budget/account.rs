//! The balances of one attempt, held together from looking to charging.
use arrayvec::ArrayVec;
use parking_lot::{ArcMutexGuard, RawMutex};

use super::balance::{Balance, Purpose};
use super::memory::{Cell, Memory, Shelf};
use super::store::{Account, Ask, Payment, Receipt};
use super::{Limits, PAYERS_MAX, State};
use crate::engine::Coverage;

/// The balances of one attempt in a [`Memory`], locked until this is dropped.
pub struct Held<'s, 'a> {
    memory: &'s Memory,
    ask: Ask<'a>,
    /// In the policy's order.
    payers: ArrayVec<Payer<'s>, PAYERS_MAX>,
}

impl<'s, 'a> Held<'s, 'a> {
    /// Deposits the usage, counts the failure if it counts, and keeps the balances locked.
    pub(super) fn open(memory: &'s Memory, ask: Ask<'a>) -> Held<'s, 'a> {
        let mut held = Held { memory, ask, payers: ArrayVec::new() };
        held.lock(|limits| limits.earns(ask.usage) || (ask.counts && !limits.charges()));
        for Payer { shelf, holding } in &mut held.payers {
            let balance = holding.balance().deposit(&shelf.limits, ask.usage, ask.now_ms);
            holding.put(if ask.counts { balance.count_failure() } else { balance });
        }
        held
    }

    /// The state of every budget, in the policy's order.
    pub(super) fn states(&self) -> impl Iterator<Item = State<'s>> {
        self.payers.iter().map(|payer| payer.state(&self.ask))
    }

    /// Locks every balance there is, and creates those that are about to be written. The others
    /// are held as fresh copies: looking never creates a balance, and a dry run creates none.
    fn lock(&mut self, is_written: impl Fn(&Limits) -> bool) {
        let Held { memory, ask, payers } = self;
        // Before any lock is taken: a thread that waits for a map must hold no balance.
        payers.clear();
        let mut cells = ArrayVec::<Option<Cell>, PAYERS_MAX>::new();
        for id in ask.payers.ids() {
            let shelf = memory.shelf(*id);
            cells.push(if is_written(&shelf.limits) && !ask.dry_run {
                Some(memory.find_or_create(shelf, ask))
            } else {
                memory.find(shelf, ask)
            });
            let holding = Holding::Copied(Balance::fresh(&shelf.limits, ask.now_ms));
            payers.push(Payer { shelf, holding });
        }
        for place in ask.payers.lock_order() {
            if let (Some(payer), Some(Some(cell))) = (payers.get_mut(*place), cells.get(*place)) {
                payer.holding = Holding::Locked(cell.lock_arc());
            }
        }
        if ask.dry_run {
            // Only now, so that all copies are of one instant.
            for payer in payers {
                payer.holding = Holding::Copied(payer.holding.balance());
            }
        }
    }

    fn exhausted(&self, refusing: &Payer<'s>) -> Coverage<'s> {
        Coverage::Exhausted(refusing.state(&self.ask).into())
    }
}

impl<'s> Account<'s> for Held<'s, '_> {
    fn coverage(&self) -> Coverage<'s> {
        match self.payers.iter().find(|payer| !payer.grants(&self.ask)) {
            Some(refusing) => self.exhausted(refusing),
            None => self
                .scarcest()
                .map_or(Coverage::Unbudgeted, |scarcest| Coverage::Covered(scarcest.into())),
        }
    }

    fn charge(&mut self) -> Result<Receipt, Coverage<'s>> {
        if self.payers.is_empty() {
            return Ok(Receipt::of(Payment::Unbudgeted));
        }
        let payment = if self.ask.dry_run { Payment::DryRun } else { Payment::Paid };
        if payment == Payment::Paid && self.payers.iter().any(Payer::must_be_created) {
            // Creating needs the map, so the locks are let go, and looking starts again.
            self.lock(Limits::charges);
        }
        let mut left = ArrayVec::<Balance, PAYERS_MAX>::new();
        for payer in &self.payers {
            left.push(payer.withdraw(&self.ask).ok_or_else(|| self.exhausted(payer))?);
        }
        for (payer, left) in self.payers.iter_mut().zip(left) {
            payer.holding.put(left);
        }
        Ok(Receipt::of(payment))
    }

    fn scarcest(&self) -> Option<State<'s>> {
        self.states().min_by_key(|state| state.available)
    }

    fn is_degraded(&self) -> bool {
        false
    }
}

/// One budget of the policy, and what it holds for this attempt's key.
struct Payer<'s> {
    shelf: &'s Shelf,
    holding: Holding,
}

impl<'s> Payer<'s> {
    fn grants(&self, ask: &Ask<'_>) -> bool {
        self.holding.balance().grants(&self.shelf.limits, Purpose::Attempt(ask.class), ask.now_ms)
    }

    fn withdraw(&self, ask: &Ask<'_>) -> Option<Balance> {
        let balance = self.holding.balance();
        let purpose = Purpose::Attempt(ask.class);
        balance.withdraw(&self.shelf.limits, purpose, 1, ask.now_ms).map(|(left, _)| left)
    }

    fn state(&self, ask: &Ask<'_>) -> State<'s> {
        let Shelf { name, limits, .. } = self.shelf;
        let available = self.holding.balance().available(limits, ask.now_ms);
        State { budget: name, available, capacity: limits.capacity() }
    }

    /// A charge would write it, and there is nothing to write to yet.
    fn must_be_created(&self) -> bool {
        self.shelf.limits.charges() && matches!(self.holding, Holding::Copied(_))
    }
}

/// A balance that others wait for, or a copy that nobody else sees.
enum Holding {
    Locked(ArcMutexGuard<RawMutex, Balance>),
    Copied(Balance),
}

impl Holding {
    fn balance(&self) -> Balance {
        match self {
            Holding::Locked(balance) => **balance,
            Holding::Copied(balance) => *balance,
        }
    }

    fn put(&mut self, next: Balance) {
        match self {
            Holding::Locked(balance) => **balance = next,
            Holding::Copied(balance) => *balance = next,
        }
    }
}
