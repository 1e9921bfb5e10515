//! The port that every store of balances fulfils. Nothing on it waits: the path of a decision has
//! no IO, whatever stands behind.
use super::{Payers, State, Usage};
use crate::engine::{Class, Coverage};

/// Keeps one balance for each budget and key.
pub trait Store: Send + Sync + 'static {
    /// The balances of one attempt, held until dropped.
    type Account<'a>: Account<'a>
    where
        Self: 'a;

    /// Deposits the usage, counts the failure if it counts, and holds the balances that pay, so
    /// that nothing comes between looking and charging.
    fn open<'a>(&'a self, ask: &Ask<'a>) -> Self::Account<'a>;

    /// Deposits `usage`, and tells the budget with the fewest retries available afterwards.
    /// `None` if the policy names no budget.
    fn deposit<'a>(
        &'a self,
        payers: &'a Payers,
        tenant: &str,
        operation: &str,
        usage: &Usage,
        now_ms: u64,
    ) -> Option<State<'a>>;

    /// The state of every budget, in the policy's order. Looking creates no balance.
    fn look<'a>(
        &'a self,
        payers: &'a Payers,
        tenant: &str,
        operation: &str,
        now_ms: u64,
    ) -> Vec<State<'a>>;
}

/// One attempt, as far as budgets look at it.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// The budgets that pay.
    pub payers: &'a Payers,
    /// Whose attempt it is.
    pub tenant: &'a str,
    /// What was called.
    pub operation: &'a str,
    /// Deposited before anything is looked at.
    pub usage: &'a Usage,
    /// The failure takes a token from every throttle. See `Facts::counts`.
    pub counts: bool,
    /// What a token bucket charges for.
    pub class: Class,
    /// Answer as if everything was written, and write nothing.
    pub dry_run: bool,
    /// Now, on the monotonic clock.
    pub now_ms: u64,
}

/// The balances of one attempt, held while it is decided.
pub trait Account<'a> {
    /// What the budgets say to one more retry.
    fn coverage(&self) -> Coverage<'a>;

    /// Charges every budget, or none.
    ///
    /// # Errors
    ///
    /// A [`Coverage::Exhausted`] if a store that looks and takes in two steps finds that another
    /// caller was faster. Then nothing was charged.
    fn charge(&mut self) -> Result<Receipt, Coverage<'a>>;

    /// The budget with the fewest retries available, as things stand. `None` without budgets.
    fn scarcest(&self) -> Option<State<'a>>;

    /// The shared store was out of reach, and this rests on the local share.
    fn is_degraded(&self) -> bool;
}

/// Proof that a retry is paid for. The wire asks for one before it says RETRY.
#[derive(Debug, PartialEq, Eq)]
pub struct Receipt(Payment);

/// How a retry was paid for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payment {
    /// Every budget of the policy has paid.
    Paid,
    /// The caller asked for a dry run: nothing was written.
    DryRun,
    /// The policy names no budget.
    Unbudgeted,
}

impl Receipt {
    pub(super) fn of(payment: Payment) -> Receipt {
        Receipt(payment)
    }

    /// How the retry was paid for.
    pub fn payment(&self) -> Payment {
        self.0
    }
}
