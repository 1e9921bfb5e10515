//! One budget of a policy, and the balance that it holds for one attempt.
use parking_lot::{ArcMutexGuard, RawMutex};

use super::balance::{Balance, Debit, Purpose};
use super::grant::{Paid, PaidBy};
use super::kept::Kept;
use super::shelf::{Found, Shelf};
use super::store::Ask;
use super::{Limits, State};

/// One budget of the policy, and what it holds for this attempt's key.
pub(super) struct Payer<'s> {
    pub(super) shelf: &'s Shelf,
    pub(super) limits: Limits,
    /// The same attempt was paid for before.
    pub(super) has_paid: bool,
    is_overflow: bool,
    pub(super) holding: Holding,
}

impl<'s> Payer<'s> {
    pub(super) fn new(shelf: &'s Shelf, has_paid: bool, now_ms: u64) -> Payer<'s> {
        let terms = shelf.terms();
        let holding = Holding::Copied(Kept::fresh(&terms, now_ms));
        Payer { shelf, limits: terms.limits, has_paid, is_overflow: false, holding }
    }

    pub(super) fn let_go(&mut self, now_ms: u64) {
        *self = Payer::new(self.shelf, self.has_paid, now_ms);
    }

    pub(super) fn hold(&mut self, found: &Found, ask: &Ask<'_>) {
        let mut kept = found.cell.lock_arc();
        let terms = self.shelf.terms();
        kept.bring_to(&terms);
        kept.renew_if_idle(&terms, ask.now_ms);
        if !ask.dry_run {
            kept.used(ask.now_ms);
            if found.is_overflow {
                self.shelf.room.overflowed();
            }
        }
        self.limits = terms.limits;
        self.is_overflow = found.is_overflow;
        self.holding = Holding::Locked(kept);
    }

    /// Whether a grant is charged to it.
    pub(super) fn is_due(&self, purpose: Purpose) -> bool {
        !self.has_paid && self.limits.charges(purpose)
    }

    pub(super) fn grants(&self, ask: &Ask<'_>) -> bool {
        self.has_paid || self.holding.get().balance.grants(&self.limits, ask.purpose, ask.now_ms)
    }

    pub(super) fn withdraw(&self, ask: &Ask<'_>, retries: u32) -> Option<(Balance, Debit)> {
        self.holding.get().balance.withdraw(&self.limits, ask.purpose, retries, ask.now_ms)
    }

    pub(super) fn paid(&self, ask: &Ask<'_>, debit: Debit) -> Paid {
        let (twin, overflow) = (ask.holder.twins, self.is_overflow);
        Paid { by: PaidBy { shelf: self.shelf.id, twin, overflow }, debit }
    }

    pub(super) fn state(&self, ask: &Ask<'_>) -> State<'s> {
        let available = self.holding.get().balance.available(&self.limits, ask.now_ms);
        State { budget: &self.shelf.name, available, capacity: self.limits.capacity() }
    }
}

/// A balance that others wait for, or a copy that nobody else sees.
pub(super) enum Holding {
    Locked(ArcMutexGuard<RawMutex, Kept>),
    Copied(Kept),
}

impl Holding {
    pub(super) fn is_copied(&self) -> bool {
        matches!(self, Holding::Copied(_))
    }

    pub(super) fn get(&self) -> &Kept {
        match self {
            Holding::Locked(kept) => kept,
            Holding::Copied(kept) => kept,
        }
    }

    pub(super) fn get_mut(&mut self) -> &mut Kept {
        match self {
            Holding::Locked(kept) => kept,
            Holding::Copied(kept) => kept,
        }
    }
}
