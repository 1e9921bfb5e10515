//! The port that every store of balances fulfils. Nothing on it waits: the path of a decision has
//! no IO, whatever stands behind.
use super::{Budget, Grant, Holder, Listed, Occupancy, Purpose, State, Usage};
use crate::engine::Coverage;

/// Keeps one balance for each budget and key, for the budgets of one policy file.
pub trait Store: Send + Sync + Sized + 'static {
    /// The balances of one attempt, held until dropped.
    type Account<'a>: Account<'a>
    where
        Self: 'a;

    /// Deposits the usage, counts the failure if it counts, and holds the balances that pay, so
    /// that nothing comes between looking and charging. A budget that has `paid` already covers
    /// the attempt, and is not charged again.
    fn open<'a>(&'a self, ask: &Ask<'a>, paid: Option<&Grant>) -> Self::Account<'a>;

    /// Deposits `usage`, and tells the budget with the fewest retries available afterwards.
    /// `None` if the policy names no budget.
    fn deposit<'a>(
        &'a self,
        holder: Holder<'a>,
        usage: &'a Usage,
        now_ms: u64,
    ) -> Option<State<'a>>;

    /// Takes as many retries as every budget covers, at most `wanted`, out of each. Tells the
    /// budget with the fewest retries available afterwards.
    fn acquire<'a>(
        &'a self,
        holder: Holder<'a>,
        wanted: u32,
        now_ms: u64,
    ) -> (Grant, Option<State<'a>>);

    /// Takes at most `retries` off a grant of this tenant and operation, and gives each budget
    /// back what it paid for them. Tells how many were taken off.
    fn give_back(&self, holder: Holder<'_>, grant: &mut Grant, retries: u32, now_ms: u64) -> u32;

    /// The state of every budget, in the policy's order. Looking creates no balance.
    fn look<'a>(&'a self, holder: Holder<'a>, now_ms: u64) -> Vec<State<'a>>;

    /// The first `count` balances after a place in the list of all that `shows` lets through by
    /// their tenant, which is empty where a balance has none. Twins are left out.
    fn list(
        &self,
        after: Option<&Listed>,
        count: usize,
        now_ms: u64,
        shows: &dyn Fn(&str) -> bool,
    ) -> Vec<Listed>;

    /// The store of the policy file that is in force from `now_ms` on. What is in the balances of
    /// a budget stays if name, scope and model do.
    ///
    /// One at a time, and each followed by [`settle`](Store::settle).
    fn succeeded_by(&self, budgets: &[Budget], now_ms: u64) -> Self;

    /// Brings every balance to the sizes of today, also those that nobody asks for.
    fn settle(&self);

    /// How full it is.
    fn occupancy(&self) -> Occupancy;
}

/// One attempt, as far as budgets look at it.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// Whose attempt it is.
    pub holder: Holder<'a>,
    /// Deposited before anything is looked at.
    pub usage: &'a Usage,
    /// The failure takes a token from every throttle. See `Facts::counts`.
    pub counts: bool,
    /// What is paid for.
    pub purpose: Purpose,
    /// Answer as if everything was written, and write nothing.
    pub dry_run: bool,
    /// Now, on the monotonic clock.
    pub now_ms: u64,
}

impl<'a> Ask<'a> {
    /// About no attempt: nothing has failed, and nothing is reported.
    pub(super) fn ahead_of_failures(holder: Holder<'a>, now_ms: u64) -> Ask<'a> {
        let (usage, purpose) = (&Usage::NOTHING, Purpose::Lease);
        Ask { holder, usage, counts: false, purpose, dry_run: false, now_ms }
    }
}

/// The balances of one attempt, held while it is decided.
pub trait Account<'a> {
    /// What the budgets say to one more retry.
    fn coverage(&mut self) -> Coverage<'a>;

    /// Charges every budget that has not paid yet, or none, and adds what they paid to `grant`.
    ///
    /// # Errors
    ///
    /// A [`Coverage::Exhausted`] if a store that looks and takes in two steps finds that another
    /// caller was faster. Then nothing was charged.
    fn charge(&mut self, grant: Option<&mut Grant>) -> Result<Receipt, Coverage<'a>>;

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
    /// It was paid for when the same attempt was asked about before.
    Remembered,
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
