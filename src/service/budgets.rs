//! BudgetService: reports, retries taken ahead, and balances on show. Each first asks whether the
//! caller may, and goes by the revision that said so.
use std::sync::Arc;

use tonic::{Request, Response, Status};

use super::{Retryd, WatchBudget};
use crate::budget::{ReportName, State, Store};
use crate::decider::InForce;
use crate::server::Peer;
use crate::wire::budget::{self, Names};
use crate::wire::pb::budget_service_server::BudgetService;
use crate::wire::refusal::Refusal;
use crate::wire::{grant, list, pb};

impl<S: Store> Retryd<S> {
    pub(super) fn report_by(
        &self,
        peer: &Peer,
        request: &pb::ReportUsageRequest,
    ) -> Result<pb::ReportUsageResponse, Refusal> {
        let report = budget::report(request, self.sizes.report_entries_max);
        if report.is_err() {
            // Told before what is wrong besides, also where there is no tenant to ask about.
            self.known(peer)?;
        }
        self.counted(report)?;
        let name = ReportName { caller: peer.names(), id: &request.report_id };
        // Asked with the first entry that is counted: what is refused uses up no id.
        let mut is_new = None;
        let mut is_new = || *is_new.get_or_insert_with(|| self.decider.is_new_report(name));
        let result = |entry| {
            let outcome = self.report_entry(peer, entry, &mut is_new);
            let refusal =
                |refusal: Refusal| Some(pb::usage_result::Outcome::Refusal(refusal.into()));
            pb::UsageResult { outcome: outcome.unwrap_or_else(refusal) }
        };
        Ok(pb::ReportUsageResponse { results: request.usage.iter().map(result).collect() })
    }

    fn report_entry(
        &self,
        peer: &Peer,
        entry: &pb::TenantUsage,
        is_new: impl FnOnce() -> bool,
    ) -> Result<Option<pb::usage_result::Outcome>, Refusal> {
        let in_force = self.allowed(peer, &entry.tenant)?;
        let (Names { tenant, operation }, usage) = self.counted(budget::entry(entry))?;
        let is_new = is_new();
        let write = |state: Option<State<'_>>| {
            state.map(|state| pb::usage_result::Outcome::Budget(state.into()))
        };
        let told = if is_new {
            self.decider.deposit(&in_force, tenant, operation, &usage, write)
        } else {
            self.decider.look(&in_force, tenant, operation, |states| {
                write(State::scarcest(states.iter().copied()))
            })
        };
        if let (Some(shadow), true) = (&self.shadow, is_new) {
            shadow.deposit(tenant, operation, &usage);
        }
        Ok(told)
    }

    pub(super) fn acquire_by(
        &self,
        peer: &Peer,
        request: &pb::AcquireRetriesRequest,
    ) -> Result<pb::AcquireRetriesResponse, Refusal> {
        let in_force = self.allowed(peer, &request.tenant)?;
        let (Names { tenant, operation }, wanted) = self.counted(grant::acquire(request))?;
        let acquired: pb::AcquireRetriesResponse =
            self.decider.acquire(&in_force, tenant, operation, wanted, |acquired| acquired.into());
        if let Some(shadow) = &self.shadow {
            shadow.acquire(tenant, operation, wanted, &acquired.lease);
        }
        Ok(acquired)
    }

    pub(super) fn release_by(
        &self,
        peer: &Peer,
        request: &pb::ReleaseRetriesRequest,
    ) -> Result<pb::ReleaseRetriesResponse, Refusal> {
        let in_force = self.allowed(peer, &request.tenant)?;
        let grant::Release { names, grant, unused } = self.counted(grant::release(request))?;
        let write = |released, state: Option<State<'_>>| {
            let budget = state.map(pb::BudgetState::from);
            pb::ReleaseRetriesResponse { budget, released }
        };
        let Names { tenant, operation } = names;
        let released = self.decider.release(&in_force, tenant, operation, grant, unused, write);
        if let Some(shadow) = &self.shadow {
            shadow.release(tenant, operation, grant, unused);
        }
        Ok(released)
    }

    pub(super) fn get_by(
        &self,
        peer: &Peer,
        request: &pb::GetBudgetRequest,
    ) -> Result<pb::GetBudgetResponse, Refusal> {
        let in_force = self.allowed(peer, &request.tenant)?;
        let names = self.counted(Names::parse(&request.tenant, &request.operation))?;
        Ok(pb::GetBudgetResponse { budgets: self.states(&in_force, names.tenant, names.operation) })
    }

    /// A page of the balances of the caller's tenants. Those that belong to no tenant are shown to
    /// whoever may ask for every one.
    pub(super) fn list_by(
        &self,
        peer: &Peer,
        request: &pb::ListBudgetsRequest,
    ) -> Result<pb::ListBudgetsResponse, Refusal> {
        let in_force = self.known(peer)?;
        let page = self.counted(list::page(request))?;
        let shows = |tenant: &str| in_force.policies().allow(peer.names(), tenant);
        let rows = self.decider.list(&in_force, page.after.as_ref(), page.size, shows);
        Ok(list::write(&page, rows))
    }

    pub(super) fn states(
        &self,
        in_force: &InForce<S>,
        tenant: &str,
        operation: &str,
    ) -> Vec<pb::BudgetState> {
        let write = |states: &[State<'_>]| states.iter().copied().map(Into::into).collect();
        self.decider.look(in_force, tenant, operation, write)
    }
}

#[tonic::async_trait]
impl<S: Store> BudgetService for Retryd<S> {
    async fn report_usage(
        &self,
        request: Request<pb::ReportUsageRequest>,
    ) -> Result<Response<pb::ReportUsageResponse>, Status> {
        Ok(Response::new(self.report_by(Peer::of(request.extensions()), request.get_ref())?))
    }

    async fn acquire_retries(
        &self,
        request: Request<pb::AcquireRetriesRequest>,
    ) -> Result<Response<pb::AcquireRetriesResponse>, Status> {
        // Nobody would send what is taken too late.
        self.in_time(request.extensions().get(), self.decider.now())?;
        Ok(Response::new(self.acquire_by(Peer::of(request.extensions()), request.get_ref())?))
    }

    async fn release_retries(
        &self,
        request: Request<pb::ReleaseRetriesRequest>,
    ) -> Result<Response<pb::ReleaseRetriesResponse>, Status> {
        Ok(Response::new(self.release_by(Peer::of(request.extensions()), request.get_ref())?))
    }

    async fn get_budget(
        &self,
        request: Request<pb::GetBudgetRequest>,
    ) -> Result<Response<pb::GetBudgetResponse>, Status> {
        Ok(Response::new(self.get_by(Peer::of(request.extensions()), request.get_ref())?))
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
            retryd.list_by(Peer::of(request.extensions()), request.get_ref())
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
        let peer = Peer::of(request.extensions()).clone();
        let pb::WatchBudgetRequest { tenant, operation } = request.into_inner();
        self.allowed(&peer, &tenant)?;
        self.counted(Names::parse(&tenant, &operation))?;
        Ok(Response::new(WatchBudget::new(self.clone(), peer, deadline, tenant, operation)))
    }
}
