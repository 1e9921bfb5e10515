//! The balances of one attempt, held together from looking to charging.
use arrayvec::ArrayVec;

use super::grant::Grant;
use super::memory::Memory;
use super::payer::Payer;
use super::store::{Account, Ask, Payment, Receipt};
use super::{PAYERS_MAX, State};
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
    pub(super) fn open(memory: &'s Memory, mut ask: Ask<'a>, paid: Option<&Grant>) -> Held<'s, 'a> {
        ask.now_ms = memory.time(ask.now_ms);
        let mut held = Held { memory, ask, payers: ArrayVec::new() };
        for id in ask.holder.payers.ids() {
            let shelf = memory.shelf(*id);
            let has_paid = paid.is_some_and(|paid| paid.is_paid_by(shelf.id, ask.holder.twins));
            held.payers.push(Payer::new(shelf, has_paid));
        }
        held.lock(|payer| payer.limits().is_fed(ask.usage, ask.counts));
        held.payers.iter_mut().for_each(|payer| payer.feed(&ask));
        held
    }

    /// Takes as many retries as every budget covers, at most `wanted`, out of each.
    pub(super) fn acquire(&mut self, wanted: u32) -> Grant {
        let mut grant = Grant::default();
        self.make_refusing();
        if 0 < self.covered(wanted) {
            self.make_due();
            // As things stand now: a lack of room lets the locks go for a moment.
            let retries = self.covered(wanted);
            // Every budget covers that many, so none refuses.
            self.pay(retries, Some(&mut grant)).ok();
        }
        let Held { ask, payers, .. } = self;
        payers
            .iter_mut()
            .for_each(|payer| payer.lacks(ask, wanted.saturating_sub(grant.retries())));
        grant
    }

    /// The state of every budget with what all replicas share, in the policy's order.
    pub(super) fn shown(&self) -> impl Iterator<Item = State<'s>> {
        self.payers.iter().map(|payer| payer.shown(&self.ask))
    }

    /// The state of every budget in this process, in the policy's order.
    fn states(&self) -> impl Iterator<Item = State<'s>> {
        self.payers.iter().map(|payer| payer.state(&self.ask))
    }

    fn is_remembered(&self) -> bool {
        self.payers.iter().any(|payer| payer.has_paid)
    }

    fn covered(&self, wanted: u32) -> u32 {
        self.states().map(|state| state.available).fold(wanted, u32::min)
    }

    /// Locks every balance there is, and makes those that are about to be written. The others read
    /// as fresh ones: looking never makes a balance, and a dry run makes none.
    fn lock(&mut self, is_written: impl Fn(&Payer<'s>) -> bool) {
        let Held { memory, ask, payers } = self;
        let lock = |payer: &mut Payer<'s>| {
            let is_written = is_written(payer);
            payer.lock(memory, ask, is_written);
        };
        match &mut payers[..] {
            [one] => lock(one),
            several => {
                // One order for every policy of every revision, so that two never wait for each other.
                let mut in_order: ArrayVec<_, PAYERS_MAX> = several.iter_mut().collect();
                in_order.sort_unstable_by_key(|payer| payer.shelf.lock_rank());
                in_order.into_iter().for_each(lock);
            }
        }
        if ask.dry_run {
            // Only now, so that all copies are of one instant.
            payers.iter_mut().for_each(|payer| payer.copy(ask));
        }
    }

    /// Makes the balances that are about to be written and are not there yet.
    fn make(&mut self, is_written: impl Fn(&Payer<'s>) -> bool) {
        let Held { ask, payers, .. } = self;
        let mut missing = payers.iter_mut().filter(|payer| payer.is_absent() && is_written(payer));
        if !missing.all(|payer| payer.make(ask)) {
            // The last room went to another caller. The balance that all share has its place in
            // the order of locking, so looking starts again.
            payers.iter_mut().for_each(Payer::let_go);
            self.lock(is_written);
        }
    }

    /// Makes the balances that a charge would write.
    fn make_due(&mut self) {
        let purpose = self.ask.purpose;
        self.make(|payer| payer.is_due(purpose));
    }

    /// Makes the shared balances that refuse a retry: the exchange brings what they lack, and
    /// exchanges only what is there.
    fn make_refusing(&mut self) {
        if self.memory.is_shared() {
            let ask = self.ask;
            self.make(|payer| !payer.grants(&ask));
        }
    }

    /// Every budget that has not paid yet pays for `retries`, or none does.
    fn pay(&mut self, retries: u32, grant: Option<&mut Grant>) -> Result<(), Coverage<'s>> {
        let Held { ask, payers, .. } = self;
        let mut due = payers.iter_mut().filter(|payer| payer.is_due(ask.purpose));
        if let Some(refusing) = due.find(|payer| !payer.covers(ask, retries)) {
            return Err(refusing.refuse(ask));
        }
        let due = payers.iter_mut().filter(|payer| payer.is_due(ask.purpose));
        let paid = due.filter_map(|payer| payer.pay(ask, retries));
        match grant {
            Some(grant) if !ask.dry_run => grant.note(retries, paid),
            _ => paid.for_each(drop),
        }
        Ok(())
    }
}

impl<'s> Account<'s> for Held<'s, '_> {
    fn coverage(&mut self) -> Coverage<'s> {
        self.make_refusing();
        let Held { ask, payers, .. } = self;
        if let Some(refusing) = payers.iter_mut().find(|payer| !payer.grants(ask)) {
            return refusing.refuse(ask);
        }
        match self.scarcest() {
            None => Coverage::Unbudgeted,
            Some(scarcest) if self.is_remembered() => Coverage::Remembered(scarcest.into()),
            Some(scarcest) => Coverage::Covered(scarcest.into()),
        }
    }

    fn charge(&mut self, grant: Option<&mut Grant>) -> Result<Receipt, Coverage<'s>> {
        let payment = if self.payers.is_empty() {
            Payment::Unbudgeted
        } else if self.ask.dry_run {
            Payment::DryRun
        } else if self.is_remembered() {
            Payment::Remembered
        } else {
            Payment::Paid
        };
        self.make_due();
        self.pay(1, grant)?;
        Ok(Receipt::of(payment))
    }

    fn scarcest(&self) -> Option<State<'s>> {
        State::scarcest(self.states())
    }

    fn is_degraded(&self) -> bool {
        self.memory.is_shared() && self.payers.iter().any(|payer| payer.is_degraded(&self.ask))
    }
}
