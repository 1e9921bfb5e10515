//! One balance as it is kept: with the sizes that it is counted in, and when it was last used.
use super::balance::Balance;
use super::{Budget, Limits, OnStoreLoss};

/// A balance that nobody has asked or fed for so long is dropped.
const IDLE_S: u32 = 600;

/// The sizes of a budget, and what they were before the last reload.
#[derive(Clone, Debug)]
pub(super) struct Terms {
    pub(super) limits: Limits,
    pub(super) on_store_loss: OnStoreLoss,
    /// Counts the changes.
    edition: u32,
    /// The sizes before the last change, and when that was, in milliseconds.
    before: Option<(Limits, u64)>,
}

impl Terms {
    pub(super) fn new(budget: &Budget) -> Terms {
        let Budget { limits, on_store_loss, .. } = *budget;
        Terms { limits, on_store_loss, edition: 0, before: None }
    }

    /// What holds from `now_ms` on. Every balance must have been brought to these terms before.
    pub(super) fn changed(&self, budget: &Budget, now_ms: u64) -> Terms {
        let before = Some((self.limits, now_ms));
        Terms { edition: self.edition.wrapping_add(1), before, ..Terms::new(budget) }
    }

    /// Whether they are those of `budget`.
    pub(super) fn are_of(&self, budget: &Budget) -> bool {
        self.limits == budget.limits && self.on_store_loss == budget.on_store_loss
    }
}

/// A balance in memory.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    pub(super) balance: Balance,
    /// Which terms it is counted in: see [`Terms`].
    edition: u32,
    /// When it was last used, rounded up, so that it is never idle too early.
    used_s: u32,
}

// A million of them are kept.
const _: () = assert!(size_of::<Kept>() <= 72);

impl Kept {
    /// A balance that nobody has used before.
    pub(super) fn new(balance: Balance, terms: &Terms, now_ms: u64) -> Kept {
        Kept { balance, edition: terms.edition, used_s: seconds_ceil(now_ms) }
    }

    /// Somebody asks or feeds it.
    pub(super) fn used(&mut self, now_ms: u64) {
        self.used_s = self.used_s.max(seconds_ceil(now_ms));
    }

    pub(super) fn is_counted_in(&self, terms: &Terms) -> bool {
        self.edition == terms.edition
    }

    /// Counts it in the sizes of today.
    pub(super) fn bring_to(&mut self, terms: &Terms) {
        if self.is_counted_in(terms) {
            return;
        }
        if let Some((old, changed_ms)) = &terms.before {
            self.balance.rescale(old, &terms.limits, *changed_ms);
        }
        self.edition = terms.edition;
    }

    /// Nobody sees whether an idle balance was dropped already: it is as good as a fresh one.
    pub(super) fn renew_if_idle(&mut self, terms: &Terms, now_ms: u64) {
        if self.is_idle(terms, now_ms) {
            self.bring_to(terms);
            self.balance.renew(&terms.limits, now_ms);
        }
    }

    pub(super) fn is_idle(&self, terms: &Terms, now_ms: u64) -> bool {
        if seconds(now_ms).saturating_sub(self.used_s) < IDLE_S {
            return false;
        }
        if self.is_counted_in(terms) {
            return self.balance.may_be_dropped(&terms.limits, now_ms);
        }
        let mut kept = self.clone();
        kept.bring_to(terms);
        kept.balance.may_be_dropped(&terms.limits, now_ms)
    }
}

fn seconds_ceil(ms: u64) -> u32 {
    seconds(ms.saturating_add(999))
}

fn seconds(ms: u64) -> u32 {
    u32::try_from(ms / 1_000).unwrap_or(u32::MAX)
}
