//! The balances of one attempt, held together from looking to charging.
use arrayvec::ArrayVec;
use parking_lot::{ArcMutexGuard, RawMutex};

use super::balance::{Balance, Debit, Purpose};
use super::grant::{self, Grant, Paid};
use super::kept::Kept;
use super::memory::Memory;
use super::shelf::{Found, Shelf};
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
    pub(super) fn open(memory: &'s Memory, ask: Ask<'a>, paid: Option<&Grant>) -> Held<'s, 'a> {
        let mut held = Held { memory, ask, payers: ArrayVec::new() };
        for id in ask.holder.payers.ids() {
            let shelf = memory.shelf(*id);
            let has_paid = paid.is_some_and(|paid| paid.is_paid_by(shelf.id, ask.holder.twins));
            held.payers.push(Payer::new(shelf, has_paid, ask.now_ms));
        }
        held.lock(|payer| payer.limits.is_fed(ask.usage, ask.counts));
        for payer in &mut held.payers {
            let limits = payer.limits;
            let kept = payer.holding.get_mut();
            kept.balance = kept.balance.deposit(&limits, ask.usage, ask.now_ms);
            if ask.counts {
                kept.balance = kept.balance.count_failure();
            }
        }
        held
    }

    /// Takes as many retries as every budget covers, at most `wanted`, out of each.
    pub(super) fn acquire(&mut self, wanted: u32) -> Grant {
        let mut grant = Grant::default();
        if 0 < self.covered(wanted) {
            self.create_missing();
            // As things stand now: creating lets the locks go for a moment.
            let retries = self.covered(wanted);
            self.pay(retries, Some(&mut grant)).ok();
        }
        grant
    }

    /// The state of every budget, in the policy's order.
    pub(super) fn states(&self) -> impl Iterator<Item = State<'s>> {
        self.payers.iter().map(|payer| payer.state(&self.ask))
    }

    fn covered(&self, wanted: u32) -> u32 {
        self.states().map(|state| state.available).fold(wanted, u32::min)
    }

    /// Locks every balance there is, and creates those that are about to be written. The others
    /// are held as fresh copies: looking never creates a balance, and a dry run creates none.
    /// A thread that waits for a table must hold no balance, so none is locked yet.
    fn lock(&mut self, is_written: impl Fn(&Payer<'s>) -> bool) {
        let Held { memory, ask, payers } = self;
        let mut found = ArrayVec::<Option<Found>, PAYERS_MAX>::new();
        for payer in payers.iter() {
            found.push(if is_written(payer) && !ask.dry_run {
                Some(memory.find_or_create(payer.shelf, &ask.holder, ask.now_ms))
            } else {
                payer.shelf.find(&ask.holder, ask.now_ms)
            });
        }
        for place in ask.holder.payers.lock_order() {
            if let (Some(payer), Some(Some(found))) = (payers.get_mut(*place), found.get(*place)) {
                payer.hold(found, ask);
            }
        }
        if ask.dry_run {
            // Only now, so that all copies are of one instant.
            for payer in payers {
                payer.holding = Holding::Copied(*payer.holding.get());
            }
        }
    }

    /// Creates the balances that a charge would write and that are not there yet. That needs the
    /// tables, so the locks are let go, and looking starts again.
    fn create_missing(&mut self) {
        let (purpose, now_ms) = (self.ask.purpose, self.ask.now_ms);
        let is_missing = |payer: &Payer<'_>| payer.is_due(purpose) && payer.holding.is_copied();
        if !self.ask.dry_run && self.payers.iter().any(is_missing) {
            self.payers.iter_mut().for_each(|payer| payer.let_go(now_ms));
            self.lock(|payer| payer.is_due(purpose));
        }
    }

    /// Every budget that has not paid yet pays for `retries`, or none does.
    fn pay(&mut self, retries: u32, grant: Option<&mut Grant>) -> Result<(), Coverage<'s>> {
        let ask = self.ask;
        let mut bills = ArrayVec::<_, PAYERS_MAX>::new();
        for payer in &self.payers {
            let is_due = payer.is_due(ask.purpose);
            let bill = is_due.then(|| payer.withdraw(&ask, retries).ok_or(payer)).transpose();
            bills.push(bill.map_err(|refusing| self.exhausted(refusing))?);
        }
        let mut paid = ArrayVec::<Paid, PAYERS_MAX>::new();
        for (payer, bill) in self.payers.iter_mut().zip(bills) {
            if let Some((balance, debit)) = bill {
                payer.holding.get_mut().balance = balance;
                paid.push(payer.paid(&ask, debit));
            }
        }
        if let (Some(grant), false) = (grant, ask.dry_run) {
            grant.note(retries, paid);
        }
        Ok(())
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

    fn charge(&mut self, grant: Option<&mut Grant>) -> Result<Receipt, Coverage<'s>> {
        let payment = if self.payers.is_empty() {
            Payment::Unbudgeted
        } else if self.ask.dry_run {
            Payment::DryRun
        } else if self.payers.iter().any(|payer| payer.has_paid) {
            Payment::Remembered
        } else {
            Payment::Paid
        };
        self.create_missing();
        self.pay(1, grant)?;
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
    limits: Limits,
    /// The same attempt was paid for before.
    has_paid: bool,
    is_overflow: bool,
    holding: Holding,
}

impl<'s> Payer<'s> {
    fn new(shelf: &'s Shelf, has_paid: bool, now_ms: u64) -> Payer<'s> {
        let terms = shelf.terms();
        let holding = Holding::Copied(Kept::fresh(&terms, now_ms));
        Payer { shelf, limits: terms.limits, has_paid, is_overflow: false, holding }
    }

    fn let_go(&mut self, now_ms: u64) {
        *self = Payer::new(self.shelf, self.has_paid, now_ms);
    }

    fn hold(&mut self, found: &Found, ask: &Ask<'_>) {
        let mut kept = found.cell.lock_arc();
        let terms = self.shelf.terms();
        kept.bring_to(&terms);
        kept.renew_if_idle(&terms, ask.now_ms);
        if !ask.dry_run {
            kept.used(ask.now_ms);
        }
        self.limits = terms.limits;
        self.is_overflow = found.is_overflow;
        self.holding = Holding::Locked(kept);
    }

    /// Whether a grant is charged to it.
    fn is_due(&self, purpose: Purpose) -> bool {
        !self.has_paid && self.limits.charges(purpose)
    }

    fn grants(&self, ask: &Ask<'_>) -> bool {
        self.has_paid || self.holding.get().balance.grants(&self.limits, ask.purpose, ask.now_ms)
    }

    fn withdraw(&self, ask: &Ask<'_>, retries: u32) -> Option<(Balance, Debit)> {
        self.holding.get().balance.withdraw(&self.limits, ask.purpose, retries, ask.now_ms)
    }

    fn paid(&self, ask: &Ask<'_>, debit: Debit) -> Paid {
        let (twin, overflow) = (ask.holder.twins, self.is_overflow);
        Paid { by: grant::Payer { shelf: self.shelf.id, twin, overflow }, debit }
    }

    fn state(&self, ask: &Ask<'_>) -> State<'s> {
        let available = self.holding.get().balance.available(&self.limits, ask.now_ms);
        State { budget: &self.shelf.name, available, capacity: self.limits.capacity() }
    }
}

/// A balance that others wait for, or a copy that nobody else sees.
enum Holding {
    Locked(ArcMutexGuard<RawMutex, Kept>),
    Copied(Kept),
}

impl Holding {
    fn is_copied(&self) -> bool {
        matches!(self, Holding::Copied(_))
    }

    fn get(&self) -> &Kept {
        match self {
            Holding::Locked(kept) => kept,
            Holding::Copied(kept) => kept,
        }
    }

    fn get_mut(&mut self) -> &mut Kept {
        match self {
            Holding::Locked(kept) => kept,
            Holding::Copied(kept) => kept,
        }
    }
}
