//! The policy file, read again while the service runs: taken whole, or not at all.
use std::{fmt, fs, io, path::PathBuf, sync::Arc};

use tokio::signal::unix::{SignalKind, signal};

use crate::admin::metrics::Metrics;
use crate::budget::{Budget, Store};
use crate::decider::Decider;
use crate::policy::{Policies, Rejected};

/// Puts the policies of a file in force, again and again.
#[derive(Debug)]
pub struct Reload<S> {
    path: PathBuf,
    decider: Arc<Decider<S>>,
    metrics: Arc<Metrics>,
}

impl<S: Store> Reload<S> {
    /// Reads the file at `path` for `decider`.
    pub fn new(path: PathBuf, decider: Arc<Decider<S>>, metrics: Arc<Metrics>) -> Reload<S> {
        Reload { path, decider, metrics }
    }

    /// Reads the file at each SIGHUP.
    ///
    /// # Errors
    ///
    /// If the system refuses a handler.
    pub fn on_hangup(self) -> io::Result<()> {
        let mut hangup = signal(SignalKind::hangup())?;
        let reload = Arc::new(self);
        tokio::spawn(async move {
            while hangup.recv().await.is_some() {
                let reload = Arc::clone(&reload);
                // A large file takes its time, and so does a million balances.
                let read = tokio::task::spawn_blocking(move || reload.read());
                if let Err(error) = read.await {
                    tracing::error!(%error, "reading the policy file again ended early");
                }
            }
        });
        Ok(())
    }

    /// Reads the file now. If anything is wrong with it, the policies in force stay, and the log
    /// and a counter say so.
    pub fn read(&self) {
        match self.load() {
            Ok(policies) => self.put_in_force(policies),
            Err(refused) => {
                self.metrics.reloads_refused.inc();
                let revision = self.decider.with_policies(|now| now.revision().to_owned());
                let error = refused.to_string();
                tracing::error!(error, revision, "the policy file is refused: the last one stays");
            }
        }
    }

    fn load(&self) -> Result<Policies, Refused> {
        // Whoever opens a pipe may wait for ever.
        if fs::metadata(&self.path).is_ok_and(|found| !found.is_file()) {
            return Err(Refused::NoFile);
        }
        let policies = Policies::load(&self.path).map_err(Refused::Rejected)?;
        match policies.not_yet_enforced().as_slice() {
            [] => Ok(policies),
            missing => Err(Refused::NotEnforced(missing.join("; "))),
        }
    }

    fn put_in_force(&self, policies: Policies) {
        for warning in policies.warnings() {
            tracing::warn!(%warning, "policy file");
        }
        for budget in self.decider.with_policies(|now| begun_anew(now, &policies)) {
            tracing::warn!(budget, "scope or model has changed: the budget starts anew");
        }
        let revision = policies.revision().to_owned();
        self.decider.reload(policies);
        self.metrics.reloads_applied.inc();
        tracing::info!(policy_revision = revision, "the policy file is in force");
    }
}

/// The names of the budgets that have another scope or model from now on.
fn begun_anew<'l>(now: &Policies, later: &'l Policies) -> Vec<&'l str> {
    let has_changed = |new: &&Budget| {
        let old = now.budgets().iter().find(|old| old.name == new.name);
        old.is_some_and(|old| !old.continues_as(new))
    };
    later.budgets().iter().filter(has_changed).map(|budget| &*budget.name).collect()
}

enum Refused {
    NoFile,
    Rejected(Rejected),
    NotEnforced(String),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::NoFile => f.write_str("the path is no file"),
            Refused::Rejected(rejected) => rejected.fmt(f),
            Refused::NotEnforced(missing) => {
                write!(f, "this version does not enforce all of the file: {missing}")
            }
        }
    }
}
