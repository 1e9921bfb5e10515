//! The console: pages for people at the admin address. They show what is there, and change nothing.
//!
//! ```text
//! request ──guard──┬──> now       policy, store, refusals, budgets
//!                  ├──> ask       a context in, the rules that were asked out
//!                  ├──> policies  what is in force
//!                  └──> assets    the style, the script, the icon
//! ```
//!
//! A page is whole without JavaScript. The templates in `pages/` escape whatever is put into them:
//! names are chosen by callers. The port knows no passwords, so `guard` keeps other sites from
//! getting there by way of a browser.
mod answer;
mod ask;
mod assets;
mod context;
mod emptiest;
mod fields;
mod guard;
mod lately;
mod now;
mod page;
mod policies;
mod recent;
mod shown;

use std::{fmt, sync::Arc};

use axum::{
    Router, middleware,
    response::Redirect,
    routing::{get, post},
};
use parking_lot::Mutex;

pub(crate) use self::assets::STYLE;
use self::{emptiest::Emptiest, guard::Hosts, recent::Recent};
use crate::budget::{Sharing, Store};
use crate::service::Retryd;

/// What the console shows, and whom it asks.
pub struct Console<S> {
    /// Answers the questions, and knows policies, budgets and counters.
    pub retryd: Retryd<S>,
    /// The store that is shared with other processes, if there is one.
    pub sharing: Option<Arc<Sharing>>,
    /// How the policy file fares.
    pub policy_file: Arc<dyn Fn() -> PolicyFile + Send + Sync>,
    /// Names by which a browser may ask, besides IP addresses and `localhost`.
    pub hosts: Vec<String>,
}

/// How the policy file fares.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyFile {
    /// Its path. `None`: the embedded policy is in force.
    pub path: Option<String>,
    /// Reloads that took hold since the start.
    pub applied: u64,
    /// Reloads that were refused since the start.
    pub refused: u64,
    /// Why the file as it is now is refused. `None`: it is in force, or the log alone knows.
    pub error: Option<String>,
}

/// A console that runs: what it shows, and what it remembers.
struct Running<S> {
    console: Console<S>,
    recent: Mutex<Recent>,
    emptiest: Emptiest,
}

impl<S: Store> Console<S> {
    /// Its pages, under `/console`. From now on, and as long as they are there, it takes samples
    /// of the counters.
    pub fn start(self) -> Router {
        let hosts = Arc::new(Hosts::new(self.hosts.clone()));
        let running = Arc::new(Running {
            console: self,
            recent: Mutex::new(Recent::default()),
            emptiest: Emptiest::default(),
        });
        tokio::spawn(lately::sample(Arc::downgrade(&running)));
        Router::new()
            .route("/", get(|| async { Redirect::to("/console") }))
            .route("/console", get(now::page::<S>))
            .route("/console/ask", get(ask::form::<S>))
            .route("/console/ask", post(ask::text::<S>))
            .route("/console/policies", get(policies::page::<S>))
            .with_state(running)
            .merge(assets::router())
            .layer(middleware::from_fn_with_state(hosts, guard::guard))
    }
}

impl<S> fmt::Debug for Console<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Console").finish_non_exhaustive()
    }
}
