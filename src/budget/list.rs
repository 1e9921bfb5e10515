//! Balances on show, the emptiest first, a page at a time.
use std::collections::BinaryHeap;

use super::shelf::Shelf;

/// One balance. In the order of the list: retries available, budget, tenant, operation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Listed {
    /// Whole retries that it would grant now.
    pub available: u32,
    /// The budget's name.
    pub budget: Box<str>,
    /// Empty where the budget's scope has none.
    pub tenant: Box<str>,
    /// Empty where the budget's scope has none.
    pub operation: Box<str>,
    /// What a fresh one would grant.
    pub capacity: u32,
}

/// The first rows after a place, kept while all balances go by.
pub(super) struct Page<'a> {
    after: Option<&'a Listed>,
    rows_max: usize,
    /// Tells by its tenant whether a balance may be shown.
    shows: &'a dyn Fn(&str) -> bool,
    /// The last row on top.
    rows: BinaryHeap<Listed>,
}

impl<'a> Page<'a> {
    pub(super) fn new(
        after: Option<&'a Listed>,
        rows_max: usize,
        shows: &'a dyn Fn(&str) -> bool,
    ) -> Page<'a> {
        Page { after, rows_max, shows, rows: BinaryHeap::new() }
    }

    pub(super) fn take_from(&mut self, shelf: &Shelf, now_ms: u64) {
        shelf.for_each(|names, kept| {
            let terms = shelf.bring_up(kept, now_ms);
            if kept.is_idle(&terms, now_ms) {
                return;
            }
            let limits = terms.limits;
            let available = kept.balance.shown(&limits, now_ms);
            let place = (available, &*shelf.name, names.tenant, names.operation);
            let is_new = self.after.is_none_or(|after| after.place() < place);
            let is_full = self.rows_max <= self.rows.len();
            // Only rows that stay get names of their own.
            let fits = !is_full || self.rows.peek().is_some_and(|last| place < last.place());
            if is_new && fits && (self.shows)(names.tenant) {
                if is_full {
                    self.rows.pop();
                }
                self.rows.push(Listed {
                    available,
                    budget: shelf.name.clone(),
                    tenant: names.tenant.into(),
                    operation: names.operation.into(),
                    capacity: limits.capacity(),
                });
            }
        });
    }

    pub(super) fn into_rows(self) -> Vec<Listed> {
        self.rows.into_sorted_vec()
    }
}

impl Listed {
    fn place(&self) -> (u32, &str, &str, &str) {
        (self.available, &self.budget, &self.tenant, &self.operation)
    }
}
