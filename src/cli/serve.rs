//! `retryd serve`: everything put together.
mod afterwards;
mod beside;
mod console;
mod limits;
mod routes;
mod store;
mod tls;
mod traces;

use std::{io, path::PathBuf, sync::Arc, time::Duration};

use anyhow::Context as _;
use clap::{ArgAction, Args, builder::BoolishValueParser};

use self::afterwards::Afterwards;
use crate::admin::{Admin, metrics::Metrics};
use crate::budget::{BALANCES_MAX, Memory, Sharing};
use crate::clock::{Clock, Dice};
use crate::decider::Decider;
use crate::policy::{Policies, Warning};
use crate::reload::{self, Reload};
use crate::server::{Drain, Health, Limits, Listen, Server, raise_descriptor_limit};
use crate::service::Retryd;
use crate::telemetry;

#[derive(Debug, Args)]
pub(super) struct Serve {
    /// Where to serve: HOST:PORT or unix:PATH; may be given more than once
    #[arg(long, env = "RETRYD_LISTEN", value_name = "ADDR", value_delimiter = ',')]
    #[arg(action = ArgAction::Append, default_value = "127.0.0.1:50051")]
    listen: Vec<Listen>,
    /// Allow plaintext on an address that is not loopback
    #[arg(long, env = "RETRYD_INSECURE", value_parser = BoolishValueParser::new())]
    insecure: bool,
    /// A separate address that serves only health
    #[arg(long, env = "RETRYD_PROBE_LISTEN", value_name = "ADDR")]
    probe_listen: Option<Listen>,
    /// Where to serve /livez, /readyz, /metrics and the console over HTTP
    #[arg(
        long,
        env = "RETRYD_ADMIN_LISTEN",
        value_name = "ADDR",
        default_value = "127.0.0.1:9090"
    )]
    admin_listen: Listen,
    #[command(flatten)]
    console: console::Console,
    /// The policy file, or a directory with one; read again when it changes, and at SIGHUP. Absent: the
    /// embedded policy
    #[arg(long, env = "RETRYD_POLICY", value_name = "PATH")]
    policy: Option<PathBuf>,
    /// How long to keep answering, as NOT_SERVING, after SIGTERM
    #[arg(long, env = "RETRYD_DRAIN_DELAY", value_name = "DURATION", default_value = "5s")]
    #[arg(value_parser = super::duration)]
    drain_delay: Duration,
    /// When to end at the latest after SIGTERM, the delay included
    #[arg(long, env = "RETRYD_DRAIN_TIMEOUT", value_name = "DURATION", default_value = "25s")]
    #[arg(value_parser = super::duration)]
    drain_timeout: Duration,
    /// Balances kept in memory, over all budgets; further keys share one balance of their budget
    #[arg(long, env = "RETRYD_MAX_BALANCES", value_name = "N", default_value_t = BALANCES_MAX)]
    max_balances: usize,
    #[command(flatten)]
    store: store::Store,
    #[command(flatten)]
    limits: limits::Limits,
    #[command(flatten)]
    beside: beside::Beside,
    #[command(flatten)]
    tls: tls::Options,
    /// Age at which a connection is asked to move on (GOAWAY), 10 % more or less
    #[arg(long, env = "RETRYD_CONNECTION_AGE", value_name = "DURATION", default_value = "30m")]
    #[arg(value_parser = super::duration)]
    connection_age: Duration,
    /// What to log, such as `info` or `retryd=debug`
    #[arg(long, env = "RETRYD_LOG", value_name = "FILTER", default_value = telemetry::DEFAULT_FILTER)]
    log: String,
}

impl Serve {
    pub(super) fn run(self) -> anyhow::Result<u8> {
        let metrics = Arc::new(Metrics::new());
        let log = telemetry::init(&self.log, metrics.logs.dropped.clone())?;
        // Told by way of the log, which waits for no reader.
        let told = |error| log.say(&super::report(&error));
        Ok(self.run_logged(metrics).map_err(told).unwrap_or(super::BAD))
    }

    fn run_logged(self, metrics: Arc<Metrics>) -> anyhow::Result<u8> {
        self.tls.refuse_open_plaintext(&self.listen, self.insecure)?;
        anyhow::ensure!(
            self.drain_delay <= self.drain_timeout,
            "`--drain-delay` is longer than `--drain-timeout`, which it is a part of"
        );
        let policies = super::policies(self.policy.as_deref())?;
        policies.fit(self.tls.is_mutual())?;
        for warning in policies.warnings() {
            tracing::warn!(%warning, "policy file");
        }
        let replicas = self.store.replicas();
        let of_sharing = |replicas| Warning::of_sharing(policies.budgets(), replicas);
        for warning in replicas.into_iter().flat_map(of_sharing) {
            tracing::warn!(%warning, "policy file");
        }
        if let Err(error) = raise_descriptor_limit(self.limits().connections_max) {
            tracing::warn!(%error, "the limit of open files stays as it is");
        }
        let shadow = self.beside.shadow_policies(self.tls.is_mutual())?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let ended = runtime.block_on(self.serve(policies, shadow, metrics));
        // A policy file on a lost disk may be read for ever: nobody waits for that.
        runtime.shutdown_background();
        ended
    }

    async fn serve(
        self,
        policies: Policies,
        shadow: Option<Policies>,
        metrics: Arc<Metrics>,
    ) -> anyhow::Result<u8> {
        let drain = Drain::new();
        drain.on_signals().context("cannot wait for signals")?;

        let sharing = self.store.sharing();
        let clock = Clock::system();
        let tls = self.tls.load(&metrics, &clock)?;
        let revision = policies.revision().to_owned();
        let decider = self.decider(policies, sharing.as_ref(), &clock, &metrics);
        self.follow_policy(&decider, &metrics).context("cannot wait for SIGHUP")?;
        let log = self.beside.decision_log(&metrics)?;
        let shadow = shadow.map(|shadow| {
            let certificates = self.tls.is_mutual();
            self.beside.shadow(shadow, self.max_balances, clock.clone(), certificates, &metrics)
        });
        let stopping = drain.stopping().clone();
        let retryd = Retryd::new(Arc::clone(&decider), Arc::clone(&metrics), stopping)
            .with_sizes(self.limits.sizes())
            .logged(log.clone())
            .shadowed(shadow.transpose()?);
        let health = Health::new().await;
        let tracing = traces::begin(&metrics, &clock, &drain)?;
        let traces = tracing.as_ref().map(traces::Tracing::traces);

        let listeners = Listen::bind_all(&self.listen).await?;
        let probe = match &self.probe_listen {
            Some(address) => Some(address.bind().await?),
            None => None,
        };
        let admin = self.admin_listen.bind().await?;
        self.tls.tell();

        let routes = routes::routes(&retryd, &health)?;
        let at_once = Some(retryd.decide_at_once());
        let limits = self.limits();
        let shown = self.shown(decider, &retryd, &health, &metrics, sharing.as_ref());
        let exchange = match sharing {
            Some(sharing) => self.store.begin(sharing, clock.clone(), health.clone()).await?,
            None => None,
        };
        let admin = tokio::spawn(shown.run(admin, drain.clone()));
        let ready = health.clone();
        let server = Server {
            listeners,
            probe,
            routes,
            at_once,
            limits,
            health,
            metrics,
            clock,
            tls,
            traces,
        };
        ready.ready().await;
        tracing::info!(policy_revision = revision, "ready");
        let ended = server.run(drain).await;
        let afterwards = Afterwards { exchange, log, tracing };
        afterwards.end(&ended, self.drain_timeout).await;
        admin.await.ok();
        Ok(ended.exit_code())
    }

    /// Decides by these policies, over balances in memory.
    fn decider(
        &self,
        policies: Policies,
        sharing: Option<&Arc<Sharing>>,
        clock: &Clock,
        metrics: &Arc<Metrics>,
    ) -> Arc<Decider<Memory>> {
        let (budgets, room) = (policies.budgets(), self.max_balances);
        let store = match sharing {
            Some(sharing) => Memory::shared(budgets, room, Arc::clone(sharing)),
            None => Memory::with_room(budgets, room),
        };
        let (clock, metrics) = (clock.clone(), Arc::clone(metrics));
        Arc::new(Decider::new(policies, store, clock, Dice::fair(), metrics))
    }

    /// What people and scrapers get to see.
    fn shown(
        &self,
        decider: Arc<Decider<Memory>>,
        retryd: &Retryd<Memory>,
        health: &Health,
        metrics: &Arc<Metrics>,
        sharing: Option<&Arc<Sharing>>,
    ) -> Admin {
        let (admin, policy) = (&self.admin_listen, self.policy.as_deref());
        Admin {
            health: health.clone(),
            metrics: Arc::clone(metrics),
            occupancy: Arc::new(move || decider.occupancy()),
            sharing: sharing.cloned(),
            console: self.console.start(admin, retryd, metrics, policy, sharing.cloned()),
        }
    }

    fn follow_policy(
        &self,
        decider: &Arc<Decider<Memory>>,
        metrics: &Arc<Metrics>,
    ) -> io::Result<()> {
        match &self.policy {
            Some(path) => Reload::new(path.clone(), Arc::clone(decider), Arc::clone(metrics))
                .with_certificates(self.tls.is_mutual())
                .follow(),
            None => reload::ignore_hangup(self.beside.hears_hangup()),
        }
    }

    fn limits(&self) -> Limits {
        self.limits.in_place_of(Limits {
            age_max: self.connection_age,
            drain_delay: self.drain_delay,
            drain_timeout: self.drain_timeout,
            ..Limits::default()
        })
    }
}
