//! A second set of policies beside the one in force (`serve --shadow`): asked the same, and bound to
//! nothing.
//!
//! Its budgets, and its memory of attempts and leases, are its own and stay in this process. They see
//! what the real ones see: every question, report, lease and release. It decides after the real
//! answer, and nothing that goes wrong with it reaches anybody who asks.
use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use crate::admin::shadowed::Shadowed;
use crate::budget::{GrantName, Store, Usage};
use crate::clock::Now;
use crate::decider::{Answer, Decider, Question};

/// The second set of policies, with its budgets.
pub struct Shadow<S> {
    decider: Arc<Decider<S>>,
    counts: Shadowed,
    /// It has panicked: nobody knows what is left of it.
    is_off: AtomicBool,
}

impl<S: Store> Shadow<S> {
    /// Asks `decider`, which nobody else does.
    pub fn new(decider: Arc<Decider<S>>, counts: Shadowed) -> Shadow<S> {
        Shadow { decider, counts, is_off: AtomicBool::new(false) }
    }

    /// Decides what was decided for real, with the same clock and draw, and counts whether it says
    /// the same. Hands its own answer to `tell`. `None`: it has none.
    pub fn decide<R>(
        &self,
        question: &Question<'_>,
        now: Now,
        real: &Answer<'_>,
        tell: impl FnOnce(&Answer<'_>) -> R,
    ) -> Option<R> {
        self.guarded(|decider| {
            decider.decide_drawn(&decider.in_force(), question, now, real.draw, |answer| {
                let (real, shadow) = (real.said(), answer.said());
                if real == shadow {
                    self.counts.same();
                } else {
                    self.counts.differs(real.reason, shadow.reason);
                }
                tell(answer)
            })
        })
    }

    /// Deposits what was reported.
    pub fn deposit(&self, tenant: &str, operation: &str, usage: &Usage) {
        self.guarded(|decider| {
            decider.deposit(&decider.in_force(), tenant, operation, usage, |_| ())
        });
    }

    /// Takes as many retries as were wanted, under the name of the real lease.
    pub fn acquire(&self, tenant: &str, operation: &str, wanted: u32, lease: &str) {
        let name = || lease.to_owned();
        self.guarded(|decider| {
            decider.acquire_as(&decider.in_force(), tenant, operation, wanted, name, |_| ())
        });
    }

    /// Takes as many retries back as came back.
    pub fn release(&self, tenant: &str, operation: &str, grant: GrantName<'_>, unused: u32) {
        self.guarded(|decider| {
            decider.release(&decider.in_force(), tenant, operation, grant, unused, |_, _| ())
        });
    }

    /// The real answer is made already: a panic here must not take it away.
    fn guarded<R>(&self, ask: impl FnOnce(&Decider<S>) -> R) -> Option<R> {
        if self.is_off.load(Ordering::Relaxed) {
            return None;
        }
        // Nothing of it is looked at after a panic.
        let asked = catch_unwind(AssertUnwindSafe(|| ask(&self.decider)));
        if asked.is_err() && !self.is_off.swap(true, Ordering::Relaxed) {
            self.counts.panicked();
            tracing::error!("the shadow policies are off until the process starts anew");
        }
        asked.ok()
    }
}

impl<S> fmt::Debug for Shadow<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shadow").field("is_off", &self.is_off).finish_non_exhaustive()
    }
}
