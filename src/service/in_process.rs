//! The two services without a connection, for commands and tests. Nobody proves a name here: where
//! the policies have `callers`, all of it is refused.
use super::Retryd;
use crate::budget::Store;
use crate::server::Peer;
use crate::wire::refusal::Refusal;
use crate::wire::{decision, pb};

impl<S: Store> Retryd<S> {
    /// Decides about one failed attempt.
    ///
    /// # Errors
    ///
    /// Says why there is no decision. Then nothing was charged, counted or earned.
    pub fn decide(&self, context: &pb::RetryContext) -> Result<pb::Decision, Refusal> {
        self.decide_at(Peer::nobody(), context, self.decider.now(), decision::write)
    }

    /// Takes a report. A refused entry changes nothing and does not stop the others. A report that
    /// came before is answered, and not counted again.
    ///
    /// # Errors
    ///
    /// Says why the report as a whole was refused. Then nothing of it was counted.
    pub fn report_usage(
        &self,
        request: &pb::ReportUsageRequest,
    ) -> Result<pb::ReportUsageResponse, Refusal> {
        self.report_by(Peer::nobody(), request)
    }

    /// Takes retries out of every budget that would pay, ahead of the failures.
    ///
    /// # Errors
    ///
    /// Names every wrong field.
    pub fn acquire_retries(
        &self,
        request: &pb::AcquireRetriesRequest,
    ) -> Result<pb::AcquireRetriesResponse, Refusal> {
        self.acquire_by(Peer::nobody(), request)
    }

    /// Gives back retries that were granted and not sent.
    ///
    /// # Errors
    ///
    /// Names every wrong field.
    pub fn release_retries(
        &self,
        request: &pb::ReleaseRetriesRequest,
    ) -> Result<pb::ReleaseRetriesResponse, Refusal> {
        self.release_by(Peer::nobody(), request)
    }

    /// The state of every budget that would pay. Looking creates nothing.
    ///
    /// # Errors
    ///
    /// Names every wrong field.
    pub fn get_budget(
        &self,
        request: &pb::GetBudgetRequest,
    ) -> Result<pb::GetBudgetResponse, Refusal> {
        self.get_by(Peer::nobody(), request)
    }

    /// A page of all balances, the emptiest first. It goes over every balance, which takes as long
    /// as there are many.
    ///
    /// # Errors
    ///
    /// Names every wrong field.
    pub fn list_budgets(
        &self,
        request: &pb::ListBudgetsRequest,
    ) -> Result<pb::ListBudgetsResponse, Refusal> {
        self.list_by(Peer::nobody(), request)
    }
}
