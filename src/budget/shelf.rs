//! The balances of one budget, and their twins.
use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};

use super::balance::Balance;
use super::grant::{PaidBy, ShelfId};
use super::kept::{Kept, Terms};
use super::room::Room;
use super::shared::{Share, Sharing, Waiting};
use super::table::{Cell, Table};
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

/// A balance, found for a holder.
pub(super) struct Found {
    pub(super) cell: Cell,
    pub(super) is_overflow: bool,
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
        kept.bring_to(&terms);
        if let (Balance::Shared(share), Some(sharing)) = (&mut kept.balance, &self.sharing) {
            share.settle(&terms.limits, sharing.standing(terms.on_store_loss), now_ms);
        }
        terms
    }

    /// A share that was touched takes part in the exchange until it holds nothing any more.
    /// `pool` names where.
    pub(super) fn enqueue(
        self: &Arc<Shelf>,
        cell: &Cell,
        kept: &mut Kept,
        pool: impl FnOnce() -> Box<str>,
    ) {
        if let (Balance::Shared(share), Some(sharing)) = (&mut kept.balance, &self.sharing)
            && !share.is_queued
        {
            share.is_queued = true;
            let (shelf, cell) = (Arc::clone(self), Arc::clone(cell));
            sharing.arrives(Waiting { shelf, cell, pool: pool() });
        }
    }

    /// Names the pool of a holder's balance, the same in every replica.
    pub(super) fn pool(&self, holder: &Holder<'_>, is_overflow: bool) -> Box<str> {
        let model = self.terms().limits.model_name();
        key::pool(model, self.scope, &self.name, holder, is_overflow)
    }

    /// Brings every balance to the sizes of today.
    pub(super) fn settle(&self) {
        for table in [&self.real, &self.twins] {
            table.for_each(|_, kept| kept.bring_to(&self.terms()));
            table.for_overflow(|kept| kept.bring_to(&self.terms()));
        }
    }

    /// The balance of a holder, if it has one of its own.
    pub(super) fn find(&self, holder: &Holder<'_>) -> Option<Found> {
        let cell = self.with_key(holder, |key| self.table(holder.twins).find(key))?;
        Some(Found { cell, is_overflow: false })
    }

    /// Whether a holder has a balance of its own; also yes if that cannot be told without waiting.
    pub(super) fn may_have(&self, holder: &Holder<'_>) -> bool {
        self.with_key(holder, |key| self.table(holder.twins).may_have(key))
    }

    /// The balance of a holder, made fresh if there is none and there is room.
    pub(super) fn find_or_create(&self, holder: &Holder<'_>, now_ms: u64) -> Found {
        let created = self.with_key(holder, |key| {
            let is_idle = |kept: &Kept| kept.is_idle(&self.terms(), now_ms);
            let table = self.table(holder.twins);
            table.find_or_insert(key, &self.room, || self.fresh(holder, now_ms), is_idle)
        });
        match created {
            Some(cell) => Found { cell, is_overflow: false },
            None => self.overflow(holder, now_ms),
        }
    }

    /// The balance that all keys share for which there is no room.
    pub(super) fn overflow(&self, holder: &Holder<'_>, now_ms: u64) -> Found {
        let cell = self.table(holder.twins).overflow(|| self.fresh(holder, now_ms));
        Found { cell, is_overflow: true }
    }

    /// The balance that paid, if it is still there.
    pub(super) fn find_payer(
        &self,
        paid: PaidBy,
        holder: &Holder<'_>,
        now_ms: u64,
    ) -> Option<Cell> {
        let holder = Holder { twins: paid.twin, ..*holder };
        let found =
            if paid.overflow { Some(self.overflow(&holder, now_ms)) } else { self.find(&holder) };
        found.map(|found| found.cell)
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
            let limits = throttle::Limits { tokens_max: 10, token_ratio_thousandths: 1 };
            let limits = Limits::Throttle(limits);
            let on_store_loss = OnStoreLoss::Deny;
            Shelf::new(
                &Budget { name: "b".into(), scope, limits, on_store_loss },
                room.clone(),
                None,
            )
        };
        let [global, tenant, route, pair] =
            [Scope::Global, Scope::Tenant, Scope::Operation, Scope::TenantOperation].map(shelf);
        let in_order = [&tenant, &pair, &global, &route];
        assert!(in_order.is_sorted_by_key(|shelf| shelf.lock_rank()));
    }
}
