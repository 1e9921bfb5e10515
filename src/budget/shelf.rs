//! The balances of one budget, and their twins.
use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};

use super::balance::Balance;
use super::grant::{PaidBy, ShelfId};
use super::kept::{Kept, Terms};
use super::room::Room;
use super::shared::{Share, Sharing, Waiting};
use super::table::{Locked, Place, Table, Vacancy};
use super::{Budget, Holder, Scope, key};

/// One budget, with a balance for each key. A reload that keeps the budget keeps its shelf.
pub(super) struct Shelf {
    pub(super) id: ShelfId,
    pub(super) name: Box<str>,
    scope: Scope,
    terms: ArcSwap<Terms>,
    /// What policies that bind charge and feed.
    real: Table,
    /// What policies that only observe charge and feed.
    twins: Table,
    pub(super) room: Arc<Room>,
    /// Other replicas have a part of each real balance.
    sharing: Option<Arc<Sharing>>,
}

impl Shelf {
    pub(super) fn new(budget: &Budget, room: Arc<Room>, sharing: Option<Arc<Sharing>>) -> Shelf {
        Shelf {
            id: room.shelf_id(),
            name: budget.name.clone(),
            scope: budget.scope,
            terms: ArcSwap::from_pointee(Terms::new(budget)),
            real: Table::new(),
            twins: Table::new(),
            room,
            sharing,
        }
    }

    /// The sizes of today. Read after a balance is locked, they are those that it is counted in,
    /// or newer.
    pub(super) fn terms(&self) -> Guard<Arc<Terms>> {
        self.terms.load()
    }

    /// Where its balances stand in the order of locking: those that many share last, so that they
    /// are held shortest. A reload changes nothing in it, whatever place the budget has in the file.
    pub(super) fn lock_rank(&self) -> (bool, ShelfId) {
        (self.scope.has_few_keys(), self.id)
    }

    /// Whether `budget` is this one, perhaps with other sizes.
    pub(super) fn is_for(&self, budget: &Budget) -> bool {
        let same_model = self.terms().limits.is_same_model(&budget.limits);
        *self.name == *budget.name && self.scope == budget.scope && same_model
    }

    /// Takes other sizes from `now_ms` on. Balances follow when they are used next.
    pub(super) fn resize(&self, budget: &Budget, now_ms: u64) {
        let terms = self.terms();
        if !terms.are_of(budget) {
            self.terms.store(Arc::new(terms.changed(budget, now_ms)));
        }
    }

    /// Brings a balance to the sizes and the time of now. Tells the sizes.
    pub(super) fn bring_up(&self, kept: &mut Kept, now_ms: u64) -> Guard<Arc<Terms>> {
        let terms = self.terms();
        self.bring_to(kept, &terms, now_ms);
        terms
    }

    /// The same with sizes that were read before.
    pub(super) fn bring_to(&self, kept: &mut Kept, terms: &Terms, now_ms: u64) {
        kept.bring_to(terms);
        if let (Balance::Shared(share), Some(sharing)) = (&mut kept.balance, &self.sharing) {
            share.settle(&terms.limits, sharing.standing(terms.on_store_loss), now_ms);
        }
    }

    /// A share that was touched takes part in the exchange until it holds nothing any more.
    pub(super) fn enqueue(
        self: &Arc<Shelf>,
        kept: &mut Kept,
        holder: &Holder<'_>,
        is_overflow: bool,
    ) {
        if let (Balance::Shared(share), Some(sharing)) = (&mut kept.balance, &self.sharing)
            && !share.is_queued
        {
            share.is_queued = true;
            let key = (!is_overflow).then(|| self.with_key(holder, |key| key.into()));
            let pool = self.pool(holder, is_overflow);
            sharing.arrives(Waiting { shelf: Arc::clone(self), key, pool });
        }
    }

    /// Names the pool of a holder's balance, the same in every replica.
    fn pool(&self, holder: &Holder<'_>, is_overflow: bool) -> Box<str> {
        let model = self.terms().limits.model_name();
        key::pool(model, self.scope, &self.name, holder, is_overflow)
    }

    /// Brings every balance to the sizes of today.
    pub(super) fn settle(&self) {
        for table in [&self.real, &self.twins] {
            table.for_each(|_, kept| kept.bring_to(&self.terms()));
            if let Some(mut kept) = table.overflow() {
                kept.bring_to(&self.terms());
            }
        }
    }

    /// Locks the balance of a holder's own, or the place where it would be.
    pub(super) fn lock(&self, holder: &Holder<'_>) -> Place<'_> {
        self.with_key(holder, |key| self.table(holder.twins).lock(key))
    }

    /// Makes the balance that a holder has not. `None` if there is no room.
    pub(super) fn fill<'s>(
        &'s self,
        vacancy: Vacancy<'s>,
        holder: &Holder<'_>,
        now_ms: u64,
    ) -> Option<Locked<'s>> {
        let fresh = || self.fresh(holder, now_ms);
        let is_idle = |kept: &Kept| kept.is_idle(&self.terms(), now_ms);
        self.with_key(holder, |key| vacancy.fill(key, &self.room, fresh, is_idle))
    }

    /// Locks the balance that all keys share for which there is no room.
    pub(super) fn lock_overflow(&self, holder: &Holder<'_>, now_ms: u64) -> Locked<'_> {
        self.table(holder.twins).lock_overflow(|| self.fresh(holder, now_ms))
    }

    /// Locks the balance that paid, if it is still there.
    pub(super) fn lock_payer(
        &self,
        paid: PaidBy,
        holder: &Holder<'_>,
        now_ms: u64,
    ) -> Option<Locked<'_>> {
        let holder = Holder { twins: paid.twin, ..*holder };
        if paid.overflow {
            return Some(self.lock_overflow(&holder, now_ms));
        }
        match self.lock(&holder) {
            Place::Taken(kept) => Some(kept),
            Place::Free(_) => None,
        }
    }

    /// Locks a share that takes part in the exchange.
    pub(super) fn lock_waiting(&self, key: Option<&[u8]>) -> Option<Locked<'_>> {
        match key.map(|key| self.real.lock(key)) {
            Some(Place::Taken(kept)) => Some(kept),
            Some(Place::Free(_)) => None,
            None => self.real.overflow(),
        }
    }

    /// Looks at a few balances, and drops those that nobody uses.
    pub(super) fn drop_idle(&self, turn: usize, now_ms: u64) {
        let table = self.table(turn.is_multiple_of(2));
        table.drop_idle(turn / 2, &self.room, |kept| kept.is_idle(&self.terms(), now_ms));
    }

    /// Every balance that binds, with the names that its key is made of.
    pub(super) fn for_each(&self, mut visit: impl FnMut(key::Names<'_>, &mut Kept)) {
        self.real.for_each(|key, kept| {
            visit(key::names(self.scope, key), kept);
        });
    }

    /// A balance that nobody has used before.
    pub(super) fn fresh(&self, holder: &Holder<'_>, now_ms: u64) -> Kept {
        let terms = self.terms();
        let balance = match &self.sharing {
            Some(sharing) if !holder.twins => {
                let standing = sharing.standing(terms.on_store_loss);
                Balance::Shared(Box::new(Share::fresh(&terms.limits, standing, now_ms)))
            }
            // Twins are local.
            _ => Balance::fresh(&terms.limits, now_ms),
        };
        Kept::new(balance, &terms, now_ms)
    }

    fn table(&self, twins: bool) -> &Table {
        if twins { &self.twins } else { &self.real }
    }

    fn with_key<R>(&self, holder: &Holder<'_>, read: impl FnOnce(&[u8]) -> R) -> R {
        key::with(self.scope, holder.tenant, holder.operation, read)
    }
}

impl Drop for Shelf {
    fn drop(&mut self) {
        self.room.give_back(self.real.len() + self.twins.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::{Limits, OnStoreLoss, bucket, throttle};

    /// The log tells of the one, and the store goes by the other.
    #[test]
    fn a_shelf_is_kept_for_what_its_budget_continues_as() {
        let throttle = |tokens_max| {
            Limits::Throttle(throttle::Limits { tokens_max, token_ratio_thousandths: 1 })
        };
        let costs = bucket::Costs::AWS_2026;
        let bucket = Limits::TokenBucket(bucket::Limits { capacity: 500, costs });
        let (scope, on_store_loss) = (Scope::Tenant, OnStoreLoss::LocalShare);
        let one = Budget { name: "b".into(), scope, limits: throttle(10), on_store_loss };
        let shelf = Shelf::new(&one, Arc::new(Room::new(1)), None);
        for (later, continues) in [
            (one.clone(), true),
            (Budget { limits: throttle(20), ..one.clone() }, true),
            (Budget { on_store_loss: OnStoreLoss::Deny, ..one.clone() }, true),
            (Budget { limits: bucket, ..one.clone() }, false),
            (Budget { name: "c".into(), ..one.clone() }, false),
            (Budget { scope: Scope::Global, ..one.clone() }, false),
        ] {
            assert_eq!(one.continues_as(&later), continues, "{later:?}");
            assert_eq!(shelf.is_for(&later), continues, "{later:?}");
        }
    }

    #[test]
    fn balances_that_many_share_are_locked_last() {
        let room = Arc::new(Room::new(10));
        let shelf = |scope| {
            let throttle = throttle::Limits { tokens_max: 10, token_ratio_thousandths: 1 };
            let limits = Limits::Throttle(throttle);
            let (name, on_store_loss) = ("b".into(), OnStoreLoss::Deny);
            Shelf::new(&Budget { name, scope, limits, on_store_loss }, room.clone(), None)
        };
        let [global, tenant, route, pair] =
            [Scope::Global, Scope::Tenant, Scope::Operation, Scope::TenantOperation].map(shelf);
        let in_order = [&tenant, &pair, &global, &route];
        assert!(in_order.is_sorted_by_key(|shelf| shelf.lock_rank()));
    }
}
