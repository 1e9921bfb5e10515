//! The options of the shared store, and what runs because of them.
use std::{env, fs, path::PathBuf, sync::Arc, time::Duration};

use anyhow::Context as _;
use clap::Args;
use tokio::{task::JoinHandle, time::timeout};
use tokio_util::sync::CancellationToken;

use crate::budget::Sharing;
use crate::budget::shared::Ticker;
use crate::cli::REPLICAS_MAX;
use crate::clock::{Clock, Dice};
use crate::remote::{CALL_MAX, Credentials, RedisPools, Settings, StoreUrl};
use crate::server::Health;

/// How long the start waits for the store. Without it retryd is ready all the same.
const FIRST_ANSWER: Duration = Duration::from_millis(500);
/// Never on the command line, where every process of the machine could read it.
const PASSWORD: &str = "RETRYD_STORE_PASSWORD";

#[derive(Debug, Args)]
pub(super) struct Store {
    /// Share budgets with other processes over Redis or Valkey: redis://HOST:PORT, rediss:// (TLS),
    /// redis+sentinel://HOST:PORT,HOST:PORT/MASTER or redis-cluster://HOST:PORT,HOST:PORT; with TLS,
    /// rediss+sentinel:// and rediss-cluster://
    #[arg(long = "store", env = "RETRYD_STORE", value_name = "URL", hide_env_values = true)]
    url: Option<String>,
    /// How many retryd processes share the store, 1 to 1000; more are noticed while it answers
    #[arg(long, env = "RETRYD_REPLICAS", value_name = "N", default_value_t = 1, requires = "url")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=REPLICAS_MAX))]
    replicas: u32,
    /// The user at the store; the password comes from a file or RETRYD_STORE_PASSWORD
    #[arg(long, env = "RETRYD_STORE_USER", value_name = "NAME", requires = "url")]
    store_user: Option<String>,
    /// A file with the password at the store; without it, RETRYD_STORE_PASSWORD has it
    #[arg(long, env = "RETRYD_STORE_PASSWORD_FILE", value_name = "FILE", requires = "url")]
    store_password_file: Option<PathBuf>,
    /// Certificates to trust instead of the system's, in PEM
    #[arg(long, env = "RETRYD_STORE_CA_FILE", value_name = "FILE", requires = "url")]
    store_ca_file: Option<PathBuf>,
    /// What every key begins with, 1 to 64 of letters, digits and `-_.:`; services with the same
    /// prefix share their budgets
    #[arg(long, env = "RETRYD_STORE_PREFIX", value_name = "TEXT", default_value = "retryd")]
    #[arg(requires = "url")]
    store_prefix: String,
}

/// The exchange with the store, until it is ended.
pub(super) struct Exchange {
    task: JoinHandle<()>,
    end: CancellationToken,
}

impl Store {
    /// What the balances know of the store. `None` if there is none.
    pub(super) fn sharing(&self) -> Option<Arc<Sharing>> {
        self.url().map(|_| Arc::new(Sharing::new(self.replicas)))
    }

    /// An empty one, as a template may leave it, is none.
    fn url(&self) -> Option<&str> {
        self.url.as_deref().filter(|url| !url.is_empty())
    }

    /// Replicas that share, where budgets are shared at all.
    pub(super) fn replicas(&self) -> Option<u32> {
        self.url().map(|_| self.replicas)
    }

    /// Begins to exchange, and waits a moment for the store's first answer.
    pub(super) async fn begin(
        &self,
        sharing: Arc<Sharing>,
        clock: Clock,
        health: Health,
    ) -> anyhow::Result<Option<Exchange>> {
        let Some(url) = self.url() else { return Ok(None) };
        let dice = Dice::fair();
        // Not by clap, which would show what it refuses, and a password may be in it.
        let url: StoreUrl = url.parse().context("`--store`")?;
        let settings = Settings {
            url,
            credentials: self.credentials()?,
            ca_file: self.store_ca_file.clone(),
            prefix: self.store_prefix.clone(),
            replica: format!("{:08x}{:08x}{:08x}", dice.roll(), dice.roll(), dice.roll()),
            call_max: CALL_MAX,
        };
        let ticker = Ticker::new(RedisPools::new(settings, dice)?, sharing, clock, dice);
        let mut reached = ticker.reached();
        let end = CancellationToken::new();
        let task = tokio::spawn(ticker.run(end.clone()));
        health.store(false).await;
        timeout(FIRST_ANSWER, reached.wait_for(|answers| *answers)).await.ok();
        tokio::spawn(async move {
            loop {
                let answers = *reached.borrow_and_update();
                health.store(answers).await;
                if reached.changed().await.is_err() {
                    break;
                }
            }
        });
        Ok(Some(Exchange { task, end }))
    }

    fn credentials(&self) -> anyhow::Result<Credentials> {
        let password = match (&self.store_password_file, env::var(PASSWORD)) {
            (Some(path), _) => {
                let text = fs::read_to_string(path)
                    .with_context(|| format!("cannot read `{}`", path.display()))?;
                // Whoever writes a secret with an editor ends it with a line break.
                let password = text.trim_end_matches(['\r', '\n']);
                anyhow::ensure!(!password.is_empty(), "`{}` is empty", path.display());
                Some(password.to_owned())
            }
            (None, Ok(password)) => Some(password).filter(|password| !password.is_empty()),
            (None, Err(env::VarError::NotPresent)) => None,
            (None, Err(env::VarError::NotUnicode(_))) => {
                anyhow::bail!("`{PASSWORD}` is not UTF-8")
            }
        };
        Ok(Credentials { user: self.store_user.clone(), password })
    }
}

impl Exchange {
    /// Gives everything back, as far as the store takes it in time.
    pub(super) async fn end(self) {
        self.end.cancel();
        self.task.await.ok();
    }
}
