//! One budget of a policy, and the balance that it holds for one attempt.
use std::sync::Arc;

use arc_swap::Guard;

use super::balance::{Balance, Purpose};
use super::grant::{Paid, PaidBy};
use super::kept::Terms;
use super::memory::{Found, Memory};
use super::shelf::Shelf;
use super::store::Ask;
use super::table::{Locked, Vacancy};
use super::{Limits, State};
use crate::engine::Coverage;

/// One budget of the policy, and what it holds for this attempt's key.
pub(super) struct Payer<'s> {
    pub(super) shelf: &'s Arc<Shelf>,
    /// The sizes that its balance is counted in.
    terms: Guard<Arc<Terms>>,
    /// The same attempt was paid for before.
    pub(super) has_paid: bool,
    is_overflow: bool,
    holding: Holding<'s>,
}

/// What a decision reads, and perhaps writes. Small: there is room for eight on the stack.
enum Holding<'s> {
    /// Nothing yet: it reads as a fresh one, too.
    Nothing,
    /// There is no balance, and nobody makes one meanwhile: it reads as a fresh one.
    Vacancy(Vacancy<'s>),
    /// A balance that others wait for.
    Locked(Locked<'s>),
    /// A copy that nobody else sees.
    Copied(Box<Balance>),
}

impl<'s> Payer<'s> {
    pub(super) fn new(shelf: &'s Arc<Shelf>, has_paid: bool) -> Payer<'s> {
        let (terms, holding) = (shelf.terms(), Holding::Nothing);
        Payer { shelf, terms, has_paid, is_overflow: false, holding }
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.terms.limits
    }

    /// Locks its balance, or the place where it would be. One that `is_written` is made.
    pub(super) fn lock(&mut self, memory: &Memory, ask: &Ask<'_>, is_written: bool) {
        if !memory.knows(self.shelf) {
            // It stands for every budget that is not known, and nothing can be locked twice.
            return;
        }
        match memory.lock(self.shelf, ask, is_written) {
            Found::Own(kept) => self.hold(kept, false, ask),
            Found::Overflow(kept) => self.hold(kept, true, ask),
            Found::Nothing(vacancy) => self.holding = Holding::Vacancy(vacancy),
        }
    }

    /// Makes the balance that is absent. `false` if there is no room: then nothing is held.
    pub(super) fn make(&mut self, ask: &Ask<'_>) -> bool {
        let Holding::Vacancy(vacancy) = std::mem::replace(&mut self.holding, Holding::Nothing)
        else {
            return false;
        };
        let made = self.shelf.fill(vacancy, &ask.holder, ask.now_ms);
        made.map(|kept| self.hold(kept, false, ask)).is_some()
    }

    fn hold(&mut self, mut kept: Locked<'s>, is_overflow: bool, ask: &Ask<'_>) {
        if !kept.is_counted_in(&self.terms) {
            // A reload came between.
            self.terms = self.shelf.terms();
        }
        self.shelf.bring_to(&mut kept, &self.terms, ask.now_ms);
        kept.renew_if_idle(&self.terms, ask.now_ms);
        if !ask.dry_run {
            kept.used(ask.now_ms);
            self.shelf.enqueue(&mut kept, &ask.holder, is_overflow);
            if is_overflow {
                self.shelf.room.overflowed();
            }
        }
        self.is_overflow = is_overflow;
        self.holding = Holding::Locked(kept);
    }

    pub(super) fn let_go(&mut self) {
        self.holding = Holding::Nothing;
    }

    /// Goes on with a copy of what it holds.
    pub(super) fn copy(&mut self, ask: &Ask<'_>) {
        self.holding = Holding::Copied(Box::new(self.with_balance(ask, Balance::clone)));
    }

    pub(super) fn is_absent(&self) -> bool {
        matches!(self.holding, Holding::Vacancy(_))
    }

    /// Earns for what is reported, and counts the failure if it counts.
    pub(super) fn feed(&mut self, ask: &Ask<'_>) {
        let Payer { terms, holding, .. } = self;
        if let Some(balance) = holding.get_mut() {
            balance.deposit(&terms.limits, ask.usage, ask.now_ms);
            if ask.counts {
                balance.count_failure();
            }
        }
    }

    /// Whether a grant is charged to it.
    pub(super) fn is_due(&self, purpose: Purpose) -> bool {
        !self.has_paid && self.limits().charges(purpose)
    }

    pub(super) fn grants(&self, ask: &Ask<'_>) -> bool {
        self.has_paid
            || self
                .with_balance(ask, |balance| balance.grants(self.limits(), ask.purpose, ask.now_ms))
    }

    /// Whether it can be charged for `retries`.
    pub(super) fn covers(&self, ask: &Ask<'_>, retries: u32) -> bool {
        match retries {
            // The same answer without the arithmetic of paying: this is the path of a decision.
            1 if matches!(ask.purpose, Purpose::Attempt(_)) => self.grants(ask),
            _ => self.with_balance(ask, |balance| {
                let mut balance = balance.clone();
                balance.withdraw(self.limits(), ask.purpose, retries, ask.now_ms).is_some()
            }),
        }
    }

    /// Pays for `retries`.
    pub(super) fn pay(&mut self, ask: &Ask<'_>, retries: u32) -> Option<Paid> {
        let balance = self.holding.get_mut()?;
        let debit = balance.withdraw(&self.terms.limits, ask.purpose, retries, ask.now_ms)?;
        let (twin, overflow) = (ask.holder.twins, self.is_overflow);
        Some(Paid { by: PaidBy { shelf: self.shelf.id, twin, overflow }, debit })
    }

    /// What this process would grant.
    pub(super) fn state(&self, ask: &Ask<'_>) -> State<'s> {
        self.state_of(
            self.with_balance(ask, |balance| balance.available(self.limits(), ask.now_ms)),
        )
    }

    /// What the whole balance had, as far as this process knows.
    pub(super) fn shown(&self, ask: &Ask<'_>) -> State<'s> {
        self.state_of(self.with_balance(ask, |balance| balance.shown(self.limits(), ask.now_ms)))
    }

    fn state_of(&self, available: u32) -> State<'s> {
        State { budget: &self.shelf.name, available, capacity: self.limits().capacity() }
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
            Holding::Nothing | Holding::Vacancy(_) => {
                read(&self.shelf.fresh(&ask.holder, ask.now_ms).balance)
            }
            Holding::Locked(kept) => read(&kept.balance),
            Holding::Copied(balance) => read(balance),
        }
    }
}

impl Holding<'_> {
    fn get_mut(&mut self) -> Option<&mut Balance> {
        match self {
            Holding::Nothing | Holding::Vacancy(_) => None,
            Holding::Locked(kept) => Some(&mut kept.balance),
            Holding::Copied(balance) => Some(balance),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::store::Store as _;
    use super::super::{Budget, BudgetId, Holder, OnStoreLoss, Payers, Scope, Usage, ratio};
    use super::*;
    use crate::engine::Class;

    #[test]
    fn sizes_that_a_reload_has_changed_before_the_lock_are_read_anew() {
        let of = |count| {
            let floor = ratio::Floor { count, interval_ms: 1_000 };
            let limits = Limits::Ratio(ratio::Limits { percent: 20, interval_ms: 1_000, floor });
            let (name, on_store_loss) = ("b".into(), OnStoreLoss::Deny);
            [Budget { name, scope: Scope::Tenant, limits, on_store_loss }]
        };
        let (before, later) = (of(10), of(20));
        let payers = Payers::new(&[BudgetId(0)], &before).unwrap();
        let ask = Ask {
            holder: Holder { payers: &payers, tenant: "t", operation: "op", twins: false },
            usage: &Usage::NOTHING,
            counts: false,
            purpose: Purpose::Attempt(Class::Transient),
            dry_run: false,
            now_ms: 0,
        };
        let memory = Memory::new(&before);
        let payer = || Payer::new(memory.shelf(BudgetId(0)), false);
        payer().lock(&memory, &ask, true);

        let mut payer = payer();
        memory.succeeded_by(&later, 0).settle();
        payer.lock(&memory, &ask, false);
        assert_eq!(payer.limits(), &later[0].limits);
        assert_eq!(payer.state(&ask).available, 20);
    }
}
