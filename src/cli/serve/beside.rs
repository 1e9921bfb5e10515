//! The options of what goes on beside the answers.
use std::{
    ffi::{OsStr, OsString},
    path::Path,
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;
use clap::Args;

use crate::admin::metrics::Metrics;
use crate::budget::Memory;
use crate::clock::{Clock, Dice};
use crate::decider::Decider;
use crate::decision_log::{DecisionLog, Sample, Target};
use crate::policy::Policies;
use crate::reload::Reload;
use crate::shadow::Shadow;

/// How long the end waits for a slow reader of the decision log.
pub(super) const LAST_LINES: Duration = Duration::from_secs(1);

#[derive(Debug, Args)]
pub(super) struct Beside {
    /// Write decisions as lines of JSON to a file, which SIGHUP opens anew, or to stdout (`-`):
    /// each denial, and a share of the retries. They name tenants
    #[arg(long, env = "RETRYD_DECISION_LOG", value_name = "PATH|-")]
    decision_log: Option<OsString>,
    /// The share of the retries that is logged, such as `0.01`, `1%` or `100%`
    #[arg(long, env = "RETRYD_DECISION_LOG_SAMPLE", value_name = "SHARE", default_value = "1%")]
    #[arg(requires = "decision_log")]
    decision_log_sample: Sample,
    /// A second policy file, or a directory with one, which decides beside the first and binds nobody:
    /// where it differs is counted, and logged by `--decision-log`. Read again when it changes, and at
    /// SIGHUP. Keeps as many balances again as `--max-balances` says
    #[arg(long, env = "RETRYD_SHADOW", value_name = "PATH")]
    shadow: Option<OsString>,
}

impl Beside {
    /// Opens the decision log, if there is to be one.
    pub(super) fn decision_log(&self, metrics: &Metrics) -> anyhow::Result<Option<DecisionLog>> {
        let Some(name) = self.decision_log_name() else { return Ok(None) };
        let lines = metrics.logs.decisions();
        let log = DecisionLog::open(Target::of(name), self.decision_log_sample, lines)
            .with_context(|| format!("cannot open the decision log `{}`", name.display()))?;
        log.reopen_on_hangup().context("cannot wait for SIGHUP")?;
        Ok(Some(log))
    }

    /// The policies of the second file, if there is to be one.
    pub(super) fn shadow_policies(&self, certificates: bool) -> anyhow::Result<Option<Policies>> {
        let Some(path) = self.shadow_path() else { return Ok(None) };
        let policies = crate::cli::policies(Some(path))?;
        policies.fit(certificates)?;
        for warning in policies.warnings() {
            tracing::warn!(%warning, "shadow policy file");
        }
        Ok(Some(policies))
    }

    /// Has the second policies decide beside the first, on budgets of their own in this process.
    pub(super) fn shadow(
        &self,
        policies: Policies,
        balances_max: usize,
        clock: Clock,
        certificates: bool,
        metrics: &Metrics,
    ) -> anyhow::Result<Shadow<Memory>> {
        let apart = Arc::new(metrics.of_shadow());
        let store = Memory::with_room(policies.budgets(), balances_max);
        let decider = Decider::new(policies, store, clock, Dice::fair(), Arc::clone(&apart));
        let decider = Arc::new(decider);
        if let Some(path) = self.shadow_path() {
            Reload::new(path.to_owned(), Arc::clone(&decider), apart)
                .named("shadow policy file")
                .with_certificates(certificates)
                .follow()
                .context("cannot wait for SIGHUP")?;
        }
        Ok(Shadow::new(decider, metrics.shadowed()))
    }

    /// Whether something here is done at SIGHUP.
    pub(super) fn hears_hangup(&self) -> bool {
        self.decision_log_name().is_some() || self.shadow_path().is_some()
    }

    fn decision_log_name(&self) -> Option<&OsStr> {
        named(self.decision_log.as_ref())
    }

    fn shadow_path(&self) -> Option<&Path> {
        named(self.shadow.as_ref()).map(Path::new)
    }
}

/// An empty name, as a template may leave it, is none.
fn named(name: Option<&OsString>) -> Option<&OsStr> {
    name.map(OsString::as_os_str).filter(|name| !name.is_empty())
}
