//! Retry budgets: who pays for a retry, and what is left.
//!
//! The balances ([`ratio`], [`throttle`], [`bucket`]) are pure: a step takes limits, a time and a
//! cost, and reads no clock. A [`Store`] keeps one balance for each budget and key.
mod account;
mod balance;
pub mod bucket;
mod grant;
mod kept;
mod key;
mod limits;
mod list;
mod memory;
mod once;
mod payer;
pub mod ratio;
mod recent;
mod room;
pub mod shared;
mod shelf;
mod store;
mod table;
pub mod throttle;
mod window;

pub use balance::Purpose;
pub use grant::Grant;
pub use limits::Limits;
pub use list::Listed;
pub use memory::{BALANCES_MAX, Memory};
pub use once::{AttemptName, GrantName, LEASE_VALID_MS_MAX, LeaseName, Once, ReportName, Turn};
pub use room::Occupancy;
pub use shared::{Sharing, StoreState};
pub use store::{Account, Ask, Payment, Receipt, Store};

use arrayvec::ArrayVec;

use crate::engine::Purse;

/// Budgets that one policy may name.
pub const PAYERS_MAX: usize = 8;

/// One budget of the policy file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Its name, unique in the file.
    pub name: Box<str>,
    /// Which calls share a balance.
    pub scope: Scope,
    /// How it grants.
    pub limits: Limits,
    /// What holds while a shared store is out of reach.
    pub on_store_loss: OnStoreLoss,
}

impl Budget {
    /// Whether `later` is the same budget, perhaps with other sizes: what is in it stays.
    pub(crate) fn continues_as(&self, later: &Budget) -> bool {
        let same_model = self.limits.is_same_model(&later.limits);
        self.name == later.name && self.scope == later.scope && same_model
    }
}

/// Which calls share a balance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// One balance for each tenant.
    Tenant,
    /// One balance for each pair of tenant and operation.
    TenantOperation,
    /// One balance for each operation.
    Operation,
    /// One balance.
    Global,
}

impl Scope {
    /// As in a policy file.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Scope::Tenant => "tenant",
            Scope::TenantOperation => "tenant_operation",
            Scope::Operation => "operation",
            Scope::Global => "global",
        }
    }

    /// Whether callers of many tenants share a balance. Such a balance bounds their sum; and it is
    /// contended, so it is locked last and shortest.
    pub(crate) fn has_few_keys(self) -> bool {
        match self {
            Scope::Operation | Scope::Global => true,
            Scope::Tenant | Scope::TenantOperation => false,
        }
    }
}

/// What a budget grants while a shared store is out of reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnStoreLoss {
    /// This replica's share of the size.
    #[default]
    LocalShare,
    /// Nothing more.
    Deny,
}

/// A budget's place in its policy file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BudgetId(pub usize);

/// The budgets of one policy, all of which pay for a retry, or none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Payers {
    ids: ArrayVec<BudgetId, PAYERS_MAX>,
}

impl Payers {
    /// The budgets named by `ids`, in the policy's order, each of them once.
    ///
    /// Returns `None` if there are more than [`PAYERS_MAX`], or one of them is not in `budgets`.
    pub fn new(ids: &[BudgetId], budgets: &[Budget]) -> Option<Payers> {
        let ids: ArrayVec<BudgetId, PAYERS_MAX> = ids.try_into().ok()?;
        ids.iter().all(|id| id.0 < budgets.len()).then_some(Payers { ids })
    }

    /// The budgets, in the policy's order.
    pub fn ids(&self) -> &[BudgetId] {
        &self.ids
    }
}

/// Whose balances: those of a policy's budgets, for one tenant and operation.
#[derive(Clone, Copy, Debug)]
pub struct Holder<'a> {
    /// The budgets that pay.
    pub payers: &'a Payers,
    /// Who calls.
    pub tenant: &'a str,
    /// What is called.
    pub operation: &'a str,
    /// The policy only observes: the twins of its balances pay.
    pub twins: bool,
}

/// What the callers did since their last report. Each count is at most [`Usage::COUNT_MAX`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// First attempts sent.
    pub requests: u64,
    /// Calls that succeeded on their first attempt.
    pub first_try_successes: u64,
    /// Calls that succeeded later.
    pub retried_successes: u64,
    /// Of those, by the class of the last failed attempt.
    pub retried_transient: u64,
    /// See [`retried_transient`](Usage::retried_transient).
    pub retried_throttling: u64,
    /// See [`retried_transient`](Usage::retried_transient).
    pub retried_timeout: u64,
    /// How long the counts were gathered. `None`: no longer than the budgets' interval.
    pub period_ms: Option<u64>,
}

impl Usage {
    /// The largest value of one count.
    pub const COUNT_MAX: u64 = 1_000_000_000;

    /// A report of nothing.
    pub const NOTHING: Usage = Usage {
        requests: 0,
        first_try_successes: 0,
        retried_successes: 0,
        retried_transient: 0,
        retried_throttling: 0,
        retried_timeout: 0,
        period_ms: None,
    };
}

/// What one budget would grant now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State<'a> {
    /// The budget's name.
    pub budget: &'a str,
    /// Whole retries that it would grant now.
    pub available: u32,
    /// What a fresh one would grant.
    pub capacity: u32,
}

impl<'a> State<'a> {
    /// The one with the fewest retries available, of several the first.
    pub fn scarcest(states: impl IntoIterator<Item = State<'a>>) -> Option<State<'a>> {
        states.into_iter().min_by_key(|state| state.available)
    }
}

impl<'a> From<State<'a>> for Purse<'a> {
    fn from(State { budget, available, .. }: State<'a>) -> Purse<'a> {
        Purse { budget, available }
    }
}

/// A level of one size, as the same part of another size, rounded down.
fn in_proportion(level: u64, old_size: u64, new_size: u64) -> u64 {
    let level = u128::from(level) * u128::from(new_size) / u128::from(old_size.max(1));
    u64::try_from(level).unwrap_or(u64::MAX)
}

fn saturated(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
