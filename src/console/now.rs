//! What happens now: the policy, the store, refusals and budgets.
use std::sync::Arc;

use askama::Template;
use axum::{extract::State, http::StatusCode, response::Response};

use super::emptiest::Balance;
use super::lately::Lately;
use super::page;
use super::recent::Counts;
use super::{PolicyFile, Running};
use crate::budget::{Occupancy, Store, StoreState};

#[derive(Template)]
#[template(path = "now.html")]
struct Page {
    date: String,
    revision: String,
    policies: usize,
    budgets: usize,
    warnings: Vec<String>,
    file: PolicyFile,
    store: Option<StoreState>,
    lately: Lately,
    occupancy: Occupancy,
    balances: Option<Arc<[Balance]>>,
}

impl Page {
    /// Which link at the top leads here.
    fn tab(&self) -> &'static str {
        "now"
    }
}

pub(super) async fn page<S: Store>(State(running): State<Arc<Running<S>>>) -> Response {
    let balances = running.emptiest.list(&running).await;
    let console = &running.console;
    let decider = console.retryd.decider();
    let now = decider.now();
    let counts = Counts::of(console.retryd.metrics());
    let lately = Lately::read(&running.recent.lock(), now.monotonic_ms, &counts);
    let page = decider.with_policies(|policies| Page {
        date: page::date(now.unix_ms),
        revision: policies.revision().to_owned(),
        policies: policies.policies().count(),
        budgets: policies.budgets().len(),
        warnings: policies.warnings().iter().map(ToString::to_string).collect(),
        file: (console.policy_file)(),
        store: console.sharing.as_ref().map(|sharing| sharing.state()),
        lately,
        occupancy: decider.occupancy(),
        balances,
    });
    page::show(StatusCode::OK, &page)
}
