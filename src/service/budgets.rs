//! BudgetService: reports, retries taken ahead, and balances on show.
use std::sync::Arc;

use tonic::{Request, Response, Status};

use super::{Retryd, WatchBudget};
use crate::budget::{State, Store};
use crate::wire::budget::{self, Names};
use crate::wire::pb::budget_service_server::BudgetService;
use crate::wire::refusal::Refusal;
use crate::wire::{grant, list, pb};

impl<S: Store> Retryd<S> {
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
        self.counted(budget::report(request, self.sizes.report_entries_max))?;
        let is_new = self.decider.is_new_report(&request.report_id);
        let results = request.usage.iter().map(|entry| self.report_entry(entry, is_new)).collect();
        Ok(pb::ReportUsageResponse { results })
    }

    fn report_entry(&self, entry: &pb::TenantUsage, is_new: bool) -> pb::UsageResult {
        use pb::usage_result::Outcome;
        let outcome = match self.counted(budget::entry(entry)) {
            Ok((Names { tenant, operation }, usage)) => {
                let write = |state: Option<State<'_>>| state.map(|it| Outcome::Budget(it.into()));
                if is_new {
                    self.decider.deposit(tenant, operation, &usage, write)
                } else {
                    self.decider.look(tenant, operation, |states| {
                        write(State::scarcest(states.iter().copied()))
                    })
                }
            }
            Err(refusal) => Some(Outcome::Refusal(refusal.into())),
        };
        pb::UsageResult { outcome }
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
        let (Names { tenant, operation }, wanted) = self.counted(grant::acquire(request))?;
        Ok(self.decider.acquire(tenant, operation, wanted, |acquired| acquired.into()))
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
        let grant::Release { names, grant, unused } = self.counted(grant::release(request))?;
        let write = |released, state: Option<State<'_>>| {
            let budget = state.map(pb::BudgetState::from);
            pb::ReleaseRetriesResponse { budget, released }
        };
        Ok(self.decider.release(names.tenant, names.operation, grant, unused, write))
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
        let names = self.counted(Names::parse(&request.tenant, &request.operation))?;
        Ok(pb::GetBudgetResponse { budgets: self.states(names.tenant, names.operation) })
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
        let page = self.counted(list::page(request))?;
        let rows = self.decider.list(page.after.as_ref(), page.size);
        Ok(list::write(&page, rows))
    }

    pub(super) fn states(&self, tenant: &str, operation: &str) -> Vec<pb::BudgetState> {
        let write = |states: &[State<'_>]| states.iter().copied().map(Into::into).collect();
        self.decider.look(tenant, operation, write)
    }
}

#[tonic::async_trait]
impl<S: Store> BudgetService for Retryd<S> {
    async fn report_usage(
        &self,
        request: Request<pb::ReportUsageRequest>,
    ) -> Result<Response<pb::ReportUsageResponse>, Status> {
        Ok(Response::new(Retryd::report_usage(self, request.get_ref())?))
    }

    async fn acquire_retries(
        &self,
        request: Request<pb::AcquireRetriesRequest>,
    ) -> Result<Response<pb::AcquireRetriesResponse>, Status> {
        // Nobody would send what is taken too late.
        self.in_time(request.extensions().get(), self.decider.now())?;
        Ok(Response::new(Retryd::acquire_retries(self, request.get_ref())?))
    }

    async fn release_retries(
        &self,
        request: Request<pb::ReleaseRetriesRequest>,
    ) -> Result<Response<pb::ReleaseRetriesResponse>, Status> {
        Ok(Response::new(Retryd::release_retries(self, request.get_ref())?))
    }

    async fn get_budget(
        &self,
        request: Request<pb::GetBudgetRequest>,
    ) -> Result<Response<pb::GetBudgetResponse>, Status> {
        Ok(Response::new(Retryd::get_budget(self, request.get_ref())?))
    }

    async fn list_budgets(
        &self,
        request: Request<pb::ListBudgetsRequest>,
    ) -> Result<Response<pb::ListBudgetsResponse>, Status> {
        // One at a time, and not on a thread that decides: a million balances take a while.
        let turn = Arc::clone(&self.listing).acquire_owned().await;
        let deadline = request.extensions().get().copied();
        self.in_time(deadline.as_ref(), self.decider.now())?;
        let retryd = self.clone();
        let listed = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            Retryd::list_budgets(&retryd, request.get_ref())
        });
        match listed.await {
            Ok(listed) => Ok(Response::new(listed?)),
            Err(ended) => match ended.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The runtime ends, and has not begun it.
                Err(_) => Err(Refusal::Stopping.into()),
            },
        }
    }

    type WatchBudgetStream = WatchBudget<S>;

    async fn watch_budget(
        &self,
        request: Request<pb::WatchBudgetRequest>,
    ) -> Result<Response<WatchBudget<S>>, Status> {
        let deadline = request.extensions().get().copied();
        let pb::WatchBudgetRequest { tenant, operation } = request.into_inner();
        self.counted(Names::parse(&tenant, &operation))?;
        Ok(Response::new(WatchBudget::new(self.clone(), deadline, tenant, operation)))
    }
}
