//! One budget of a policy, and the balance that it holds for one attempt.
use std::sync::Arc;

use parking_lot::{ArcMutexGuard, RawMutex};

use super::balance::{Balance, Purpose};
use super::grant::{Paid, PaidBy};
use super::kept::Kept;
use super::shelf::{Found, Shelf};
use super::store::Ask;
use super::{Limits, State};
use crate::engine::Coverage;

/// One budget of the policy, and what it holds for this attempt's key.
pub(super) struct Payer<'s> {
    pub(super) shelf: &'s Arc<Shelf>,
    pub(super) limits: Limits,
    /// The same attempt was paid for before.
    pub(super) has_paid: bool,
    is_overflow: bool,
    holding: Holding,
}

/// What a decision reads, and perhaps writes. Small: there is room for eight on the stack.
enum Holding {
    /// There is none: it reads as a fresh one.
    Absent,
    /// A balance that others wait for.
    Locked(ArcMutexGuard<RawMutex, Kept>),
    /// A copy that nobody else sees.
    Copied(Box<Balance>),
}

impl<'s> Payer<'s> {
    pub(super) fn new(shelf: &'s Arc<Shelf>, has_paid: bool) -> Payer<'s> {
        let limits = shelf.terms().limits;
        Payer { shelf, limits, has_paid, is_overflow: false, holding: Holding::Absent }
    }

    pub(super) fn hold(&mut self, found: &Found, ask: &Ask<'_>) {
        let mut kept = found.cell.lock_arc();
        let terms = self.shelf.bring_up(&mut kept, ask.now_ms);
        kept.renew_if_idle(&terms, ask.now_ms);
        if !ask.dry_run {
            kept.used(ask.now_ms);
            let pool = || self.shelf.pool(&ask.holder, found.is_overflow);
            self.shelf.enqueue(&found.cell, &mut kept, pool);
            if found.is_overflow {
                self.shelf.room.overflowed();
            }
        }
        self.limits = terms.limits;
        self.is_overflow = found.is_overflow;
        self.holding = Holding::Locked(kept);
    }

    pub(super) fn let_go(&mut self) {
        self.holding = Holding::Absent;
    }

    /// Goes on with a copy of what it holds.
    pub(super) fn copy(&mut self, ask: &Ask<'_>) {
        self.holding = Holding::Copied(Box::new(self.with_balance(ask, Balance::clone)));
    }

    pub(super) fn is_absent(&self) -> bool {
        matches!(self.holding, Holding::Absent)
    }

    /// Whether there is a balance now where there was none, or may be.
    pub(super) fn was_missed(&self, ask: &Ask<'_>) -> bool {
        self.is_absent() && self.shelf.may_have(&ask.holder)
    }

    /// Earns for what is reported, and counts the failure if it counts.
    pub(super) fn feed(&mut self, ask: &Ask<'_>) {
        let Payer { limits, holding, .. } = self;
        if let Some(balance) = holding.get_mut() {
            balance.deposit(limits, ask.usage, ask.now_ms);
            if ask.counts {
                balance.count_failure();
            }
        }
    }

    /// Whether a grant is charged to it.
    pub(super) fn is_due(&self, purpose: Purpose) -> bool {
        !self.has_paid && self.limits.charges(purpose)
    }

    pub(super) fn grants(&self, ask: &Ask<'_>) -> bool {
        self.has_paid
            || self
                .with_balance(ask, |balance| balance.grants(&self.limits, ask.purpose, ask.now_ms))
    }

    /// Whether it can be charged for `retries`.
    pub(super) fn covers(&self, ask: &Ask<'_>, retries: u32) -> bool {
        match retries {
            // The same answer without the arithmetic of paying: this is the path of a decision.
            1 if matches!(ask.purpose, Purpose::Attempt(_)) => self.grants(ask),
            _ => self.with_balance(ask, |balance| {
                let mut balance = balance.clone();
                balance.withdraw(&self.limits, ask.purpose, retries, ask.now_ms).is_some()
            }),
        }
    }

    /// Pays for `retries`.
    pub(super) fn pay(&mut self, ask: &Ask<'_>, retries: u32) -> Option<Paid> {
        let balance = self.holding.get_mut()?;
        let debit = balance.withdraw(&self.limits, ask.purpose, retries, ask.now_ms)?;
        let (twin, overflow) = (ask.holder.twins, self.is_overflow);
        Some(Paid { by: PaidBy { shelf: self.shelf.id, twin, overflow }, debit })
    }

    /// What this process would grant.
    pub(super) fn state(&self, ask: &Ask<'_>) -> State<'s> {
        self.state_of(self.with_balance(ask, |balance| balance.available(&self.limits, ask.now_ms)))
    }

    /// What the whole balance had, as far as this process knows.
    pub(super) fn shown(&self, ask: &Ask<'_>) -> State<'s> {
        self.state_of(self.with_balance(ask, |balance| balance.shown(&self.limits, ask.now_ms)))
    }

    fn state_of(&self, available: u32) -> State<'s> {
        State { budget: &self.shelf.name, available, capacity: self.limits.capacity() }
    }

    /// It refuses a retry.
    pub(super) fn refuse(&mut self, ask: &Ask<'_>) -> Coverage<'s> {
        self.lacks(ask, 1);
        Coverage::Exhausted(self.state(ask).into())
    }

    /// So many retries are refused.
    pub(super) fn lacks(&mut self, ask: &Ask<'_>, retries: u32) {
        if let (Some(balance), 1.., false) = (self.holding.get_mut(), retries, ask.dry_run) {
            balance.refused(retries);
        }
    }

    pub(super) fn is_degraded(&self, ask: &Ask<'_>) -> bool {
        self.with_balance(ask, |balance| match balance {
            Balance::Shared(share) => share.is_degraded(),
            Balance::Ratio(_) | Balance::Throttle(_) | Balance::TokenBucket(_) => false,
        })
    }

    fn with_balance<R>(&self, ask: &Ask<'_>, read: impl FnOnce(&Balance) -> R) -> R {
        match &self.holding {
            Holding::Absent => read(&self.shelf.fresh(&ask.holder, ask.now_ms).balance),
            Holding::Locked(kept) => read(&kept.balance),
            Holding::Copied(balance) => read(balance),
        }
    }
}

impl Holding {
    fn get_mut(&mut self) -> Option<&mut Balance> {
        match self {
            Holding::Absent => None,
            Holding::Locked(kept) => Some(&mut kept.balance),
            Holding::Copied(balance) => Some(balance),
        }
    }
}
