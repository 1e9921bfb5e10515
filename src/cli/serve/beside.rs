//! The options of what goes on beside the answers.
use std::{ffi::OsString, time::Duration};

use anyhow::Context as _;
use clap::Args;

use crate::admin::metrics::Metrics;
use crate::decision_log::{DecisionLog, Sample, Target};

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
}

impl Beside {
    /// Opens the decision log, if there is to be one. An empty name, as a template may leave it, is
    /// none.
    pub(super) fn decision_log(&self, metrics: &Metrics) -> anyhow::Result<Option<DecisionLog>> {
        let Some(name) = self.decision_log.as_ref().filter(|name| !name.is_empty()) else {
            return Ok(None);
        };
        let lines = metrics.log_lines();
        let log = DecisionLog::open(Target::of(name), self.decision_log_sample, lines)
            .with_context(|| format!("cannot open the decision log `{}`", name.display()))?;
        log.reopen_on_hangup().context("cannot wait for SIGHUP")?;
        Ok(Some(log))
    }
}
