//! The pools in Redis or Valkey: one server, one that sentinels watch, or a cluster.
mod batch;
mod link;
mod place;
mod script;
mod url;

use std::{fmt, future::Future, path::PathBuf, time::Duration};

pub use place::Credentials;
pub use url::{StoreUrl, StoreUrlError};

use self::{batch::Task, link::Link, place::Place, script::Scripts};
use crate::budget::shared::exchange::Reply;
use crate::budget::shared::pools::{Attendance, Errand, Failure, Fleet, Pools};
use crate::clock::Dice;

/// How long a call waits for the store, whatever the number of its errands.
pub const CALL_MAX: Duration = Duration::from_millis(50);
const PREFIX_MAX: usize = 64;

/// Where the store is, and how this replica appears there.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where it is.
    pub url: StoreUrl,
    /// Who this service is there.
    pub credentials: Credentials,
    /// Certificates to trust instead of the system's, in PEM.
    pub ca_file: Option<PathBuf>,
    /// What every key begins with. Services with the same share their budgets.
    pub prefix: String,
    /// Names this replica. No two have the same, nor one before and after a restart.
    pub replica: String,
    /// How long a call waits: [`CALL_MAX`] for whoever has others waiting.
    pub call_max: Duration,
}

/// Why the store cannot be used at all.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// The keys' prefix does not fit into every key.
    #[error(
        "the store's key prefix `{0}` must have 1 to {PREFIX_MAX} characters, each a letter, a digit or one of `-_.:`"
    )]
    Prefix(String),
    /// A user alone does not sign in.
    #[error("the store's user `{0}` has no password; give the user's password as well")]
    UserWithoutPassword(String),
    /// Certificates mean nothing without TLS.
    #[error("a CA file needs a store that speaks TLS: `{tls}` instead of `{plain}`")]
    CaWithoutTls {
        /// As it was given.
        plain: &'static str,
        /// What goes with certificates.
        tls: &'static str,
    },
    /// The certificates cannot be read.
    #[error("cannot read the store's CA file `{path}`: {cause}")]
    CaFile {
        /// As it was given.
        path: String,
        /// What is wrong with it.
        cause: String,
    },
}

/// The pools of all balances, in a store that all replicas reach.
pub struct RedisPools {
    link: Link,
    scripts: Scripts,
    prefix: String,
    replica: String,
    call_max: Duration,
}

impl RedisPools {
    /// Pools in the store of `settings`. It is called for the first time with the first errand.
    ///
    /// # Errors
    ///
    /// If the settings cannot work with any store.
    pub fn new(settings: Settings, dice: Dice) -> Result<RedisPools, SettingsError> {
        let Settings { url, credentials, ca_file, prefix, replica, call_max } = settings;
        let fits = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
        if prefix.is_empty() || PREFIX_MAX < prefix.len() || !prefix.chars().all(fits) {
            return Err(SettingsError::Prefix(prefix));
        }
        let link = Link::new(Place::new(url, credentials, ca_file, call_max)?, dice);
        Ok(RedisPools { link, scripts: Scripts::new(), prefix, replica, call_max })
    }

    async fn ask_fleet(&mut self, attendance: Attendance, leaves: bool) -> Result<Fleet, Failure> {
        let key = format!("{}:fleet", self.prefix);
        let command = self.scripts.fleet(&key, &self.replica, &attendance, leaves);
        let mut tasks = [Task::new(command)];
        let _ = tokio::time::timeout(self.call_max, self.link.run(&self.scripts.fleet, &mut tasks))
            .await;
        let [task] = tasks;
        task.answer().and_then(script::fleet)
    }
}

impl Pools for RedisPools {
    fn attend(
        &mut self,
        attendance: Attendance,
    ) -> impl Future<Output = Result<Fleet, Failure>> + Send {
        self.ask_fleet(attendance, false)
    }

    async fn exchange(&mut self, errands: &[Errand]) -> Vec<Result<Reply, Failure>> {
        let command = |errand: &Errand| {
            let key = format!("{}:pool:{}", self.prefix, errand.pool);
            self.scripts.exchange(&key, &self.replica, errand)
        };
        let mut tasks: Vec<Task> = errands.iter().map(command).map(Task::new).collect();
        // When time is up, each task tells how far it came.
        let _ =
            tokio::time::timeout(self.call_max, self.link.run(&self.scripts.exchange, &mut tasks))
                .await;
        tasks.into_iter().map(|task| task.answer().and_then(script::reply)).collect()
    }

    async fn leave(&mut self) -> Result<(), Failure> {
        let last = Attendance { now_ms: 0, attended_ms: 0 };
        self.ask_fleet(last, true).await.map(drop)
    }
}

impl fmt::Debug for RedisPools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RedisPools { link, prefix, replica, scripts: _, call_max: _ } = self;
        f.debug_struct("RedisPools")
            .field("link", link)
            .field("prefix", prefix)
            .field("replica", replica)
            .finish()
    }
}
