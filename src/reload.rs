//! The policy file, read again while the service runs: taken whole, or not at all.
//!
//! ```text
//! each second ──> look ──> as before: nothing
//!                      ├─> another one: look again in a moment, it may be half written
//!                      └─> the same one again ──┐
//! SIGHUP ───────> look ────────────────────────┴──> check ──> in force, or refused
//! ```
//!
//! What is compared is what the path leads to in the end, and not its time or its links: so an edit
//! in place, a file renamed over the old one and a ConfigMap whose link was swapped are all one.
use std::{fs, io, path::PathBuf, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    signal::unix::{SignalKind, signal},
    task::JoinError,
    time::{sleep, timeout},
};

use crate::admin::{metrics::Metrics, reloads::ReloadError};
use crate::budget::{Budget, Store};
use crate::decider::Decider;
use crate::policy::{Policies, Rejected, Source};
use crate::watched::{Then, Watched};

/// What stood at the path, or why it cannot be read.
type Found = Result<Source, Rejected>;

/// Time between two looks. With [`SETTLE`], a change is in force within two seconds.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// A file that has changed must stay the same for this long, so that one that is being written is
/// not taken for a broken or, worse, for a whole one.
const SETTLE: Duration = Duration::from_millis(100);
/// After this long a look is told of: the disk may be lost.
const LOOK_MAX: Duration = Duration::from_secs(10);

/// Puts the policies at a path in force, again and again.
#[derive(Debug)]
pub struct Reload<S> {
    path: PathBuf,
    /// What the log calls it.
    name: &'static str,
    decider: Arc<Decider<S>>,
    metrics: Arc<Metrics>,
    certificates: bool,
    watched: Mutex<Watched<Found>>,
}

/// Why the path is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    /// It was time.
    Time,
    /// Somebody wants to have it read, changed or not.
    Asked,
}

impl<S: Store> Reload<S> {
    /// Reads what is at `path`, a file or a directory with one, for `decider`.
    pub fn new(path: PathBuf, decider: Arc<Decider<S>>, metrics: Arc<Metrics>) -> Reload<S> {
        let watched = Mutex::new(Watched::new());
        let name = "policy file";
        Reload { path, name, decider, metrics, certificates: false, watched }
    }

    /// The same, under another name in the log.
    #[must_use]
    pub fn named(self, name: &'static str) -> Reload<S> {
        Reload { name, ..self }
    }

    /// Whether callers have to show certificates: then the file must say what for, or else not.
    #[must_use]
    pub fn with_certificates(self, certificates: bool) -> Reload<S> {
        Reload { certificates, ..self }
    }

    /// Follows the path from now on, and reads it at each SIGHUP.
    ///
    /// # Errors
    ///
    /// If the system refuses a handler.
    pub fn follow(self) -> io::Result<()> {
        let mut hangup = signal(SignalKind::hangup())?;
        // The start may have read a pipe. It has nothing more to say.
        let follows = fs::metadata(&self.path).map_or(true, |at| at.is_file() || at.is_dir());
        if !follows {
            tracing::warn!("the policy is in no file: changes take hold at SIGHUP only");
        }
        let reload = Arc::new(self);
        tokio::spawn(async move {
            let mut pause = LOOK_EVERY;
            loop {
                let why = tokio::select! {
                    Some(()) = hangup.recv() => Why::Asked,
                    () = sleep(pause), if follows => Why::Time,
                    else => return,
                };
                pause = Arc::clone(&reload).look_in_time(why).await;
            }
        });
        Ok(())
    }

    /// Looks at the path, on a thread that may wait, and tells when to look again. There is one such
    /// look at a time: a lost disk holds it up, and nothing else.
    async fn look_in_time(self: Arc<Self>, why: Why) -> Duration {
        // A large file takes its time, and so does a million balances.
        let looking = |why| {
            let reload = Arc::clone(&self);
            tokio::task::spawn_blocking(move || reload.look(why))
        };
        let mut look = looking(why);
        if let Ok(ended) = timeout(LOOK_MAX, &mut look).await {
            return or_told(ended);
        }
        let late = format!("no answer from the disk for {} s", LOOK_MAX.as_secs());
        self.refused(&late, &late);
        or_told(look.await);
        // To be right about what holds now.
        or_told(looking(Why::Asked).await)
    }

    fn look(&self, why: Why) -> Duration {
        let found = Source::read_regular(&self.path);
        let then = {
            // Only the start has read the file so far.
            let in_force = |found: &Found| {
                found.as_ref().is_ok_and(|source| {
                    self.decider.with_policies(|now| now.revision() == &*source.revision())
                })
            };
            let mut watched = self.watched.lock();
            if why == Why::Asked {
                watched.take(&found);
                Then::Take
            } else {
                if !watched.has_taken() && in_force(&found) {
                    watched.take(&found);
                }
                watched.notice(&found)
            }
        };
        match then {
            Then::Nothing => LOOK_EVERY,
            Then::LookAgain => SETTLE,
            Then::Take => {
                self.take(found);
                LOOK_EVERY
            }
        }
    }

    /// If anything is wrong with what was found, the policies in force stay, and the log, a counter
    /// and the admin pages say so.
    fn take(&self, found: Found) {
        let loaded = found.and_then(|Source { name, bytes }| Policies::parse(&name, &bytes));
        match loaded {
            Ok(policies) => match policies.fit(self.certificates) {
                Ok(()) => self.put_in_force(policies),
                Err(error) => self.refused(&error.to_string(), &error.to_string()),
            },
            Err(rejected) => self.refused(&rejected.to_string(), &rejected.brief()),
        }
    }

    /// `brief` is for whoever may see the admin port and not the file.
    fn refused(&self, error: &str, brief: &str) {
        let revision = self.decider.with_policies(|now| now.revision().to_owned());
        let unix_ms = self.decider.now().unix_ms;
        let told = ReloadError { text: error.into(), brief: brief.into(), unix_ms };
        self.metrics.reloads.refused(told);
        tracing::error!(error, revision, "the {} is refused: the last one stays", self.name);
    }

    fn put_in_force(&self, policies: Policies) {
        for warning in policies.warnings() {
            tracing::warn!(%warning, "{}", self.name);
        }
        for budget in self.decider.with_policies(|now| begun_anew(now, &policies)) {
            tracing::warn!(budget, "scope or model has changed: the budget starts anew");
        }
        let revision = policies.revision().to_owned();
        self.decider.reload(policies);
        self.metrics.reloads.applied();
        tracing::info!(policy_revision = revision, "the {} is in force", self.name);
    }
}

/// Without a policy file there is nothing to read again, and no reason to end either. The signal
/// `is_meant` if something else is done at it.
///
/// # Errors
///
/// If the system refuses a handler.
pub fn ignore_hangup(is_meant: bool) -> io::Result<()> {
    let mut hangup = signal(SignalKind::hangup())?;
    tokio::spawn(async move {
        while hangup.recv().await.is_some() {
            if !is_meant {
                tracing::warn!("SIGHUP: there is no policy file to read again");
            }
        }
    });
    Ok(())
}

/// When to look again. A look that panicked is an error like another one.
fn or_told(ended: Result<Duration, JoinError>) -> Duration {
    ended.unwrap_or_else(|error| {
        tracing::error!(%error, "reading the policy file again ended early");
        LOOK_EVERY
    })
}

/// The names of the budgets that have another scope or model from now on.
fn begun_anew<'l>(now: &Policies, later: &'l Policies) -> Vec<&'l str> {
    let has_changed = |new: &&Budget| {
        let old = now.budgets().iter().find(|old| old.name == new.name);
        old.is_some_and(|old| !old.continues_as(new))
    };
    later.budgets().iter().filter(has_changed).map(|budget| &*budget.name).collect()
}
