//! The emptiest balances, listed at most every two seconds, however many people look.
use std::{sync::Arc, time::Duration};

use tokio::{sync::Mutex, time::timeout};

use super::{Running, shown};
use crate::budget::{Listed, Store};

pub(super) const ROWS_MAX: usize = 100;
/// How long one list serves everybody.
const FRESH_MS: u64 = 2_000;
/// How long a page waits: other lists may have their turn first.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// The last list, and when it was made.
#[derive(Debug, Default)]
pub(super) struct Emptiest(Mutex<Option<(u64, Arc<[Balance]>)>>);

/// One balance, for people.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Balance {
    pub(super) budget: String,
    /// Empty where the budget's scope has none; so is `operation`.
    pub(super) tenant: String,
    pub(super) operation: String,
    pub(super) available: u32,
    pub(super) capacity: u32,
}

impl Emptiest {
    /// `None`: it takes too long, or nobody could make one.
    pub(super) async fn list<S: Store>(&self, running: &Running<S>) -> Option<Arc<[Balance]>> {
        timeout(WAIT_MAX, self.fresh(running)).await.ok().flatten()
    }

    async fn fresh<S: Store>(&self, running: &Running<S>) -> Option<Arc<[Balance]>> {
        // Whoever comes meanwhile waits, and then finds this list.
        let mut last = self.0.lock().await;
        let retryd = &running.console.retryd;
        let now_ms = retryd.decider().now().monotonic_ms;
        if let Some((at_ms, balances)) = &*last
            && now_ms < at_ms.saturating_add(FRESH_MS)
        {
            return Some(Arc::clone(balances));
        }
        let listed = retryd.emptiest(ROWS_MAX).await?;
        let balances: Arc<[Balance]> = listed.into_iter().map(Balance::from).collect();
        *last = Some((now_ms, Arc::clone(&balances)));
        Some(balances)
    }
}

impl From<Listed> for Balance {
    fn from(Listed { available, budget, tenant, operation, capacity }: Listed) -> Balance {
        Balance {
            budget: budget.into(),
            tenant: shown::name(&tenant),
            operation: shown::name(&operation),
            available,
            capacity,
        }
    }
}
