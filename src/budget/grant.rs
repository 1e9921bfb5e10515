//! What was granted, and who paid for it: enough to know a repeat, and to give it back.
use smallvec::SmallVec;

use super::balance::Debit;

/// Retries that were granted and not given back, and what each budget paid for them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grant {
    retries: u32,
    paid: SmallVec<[Paid; 1]>,
}

/// What one budget paid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Paid {
    pub(super) by: PaidBy,
    pub(super) debit: Debit,
}

/// Which balance of the grant's tenant and operation paid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PaidBy {
    pub(super) shelf: ShelfId,
    pub(super) twin: bool,
    pub(super) overflow: bool,
}

/// A budget of one store, the same over every reload that keeps it. Never given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ShelfId(pub(super) u32);

impl Grant {
    /// How many retries there still are to give back.
    pub fn retries(&self) -> u32 {
        self.retries
    }

    /// Whether this budget has paid for them, from its own balance or from its overflow.
    pub(super) fn is_paid_by(&self, shelf: ShelfId, twin: bool) -> bool {
        self.paid.iter().any(|paid| paid.by.shelf == shelf && paid.by.twin == twin)
    }

    /// `retries` are covered by every budget; `paid` are the ones that have paid just now.
    pub(super) fn note(&mut self, retries: u32, paid: impl IntoIterator<Item = Paid>) {
        self.retries = retries;
        self.paid.extend(paid);
    }

    /// Takes up to `retries` off, and tells how many. `take_back` puts what each budget paid for
    /// them back, and tells what is left of its debit.
    pub(super) fn take_off(
        &mut self,
        retries: u32,
        mut take_back: impl FnMut(&Paid, u32) -> Debit,
    ) -> u32 {
        let released = retries.min(self.retries);
        for paid in &mut self.paid {
            paid.debit = take_back(paid, released);
        }
        self.retries -= released;
        if self.retries == 0 {
            // What was released has not been paid: whoever asks again pays again.
            self.paid.clear();
        }
        released
    }
}
