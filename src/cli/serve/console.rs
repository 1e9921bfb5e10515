//! The options of the console.
use std::{path::Path, sync::Arc};

use axum::Router;
use clap::{Args, ValueEnum};

use crate::admin::metrics::Metrics;
use crate::budget::{Memory, Sharing};
use crate::console::{self, PolicyFile};
use crate::server::Listen;
use crate::service::Retryd;

#[derive(Debug, Args)]
pub(super) struct Console {
    /// Serve the console, pages for people, at the admin address; they show names of tenants
    #[arg(long = "console", env = "RETRYD_CONSOLE", value_name = "WHEN")]
    #[arg(value_enum, default_value_t)]
    when: When,
    /// A name under which browsers may ask for the console, besides IP addresses and localhost; may
    /// be given more than once
    #[arg(long, env = "RETRYD_CONSOLE_HOST", value_name = "NAME", value_delimiter = ',')]
    console_host: Vec<String>,
}

/// When the console is served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum When {
    /// If only this machine can reach the admin address
    #[default]
    Auto,
    /// Always: whoever reaches the admin address may read
    On,
    /// Never
    Off,
}

impl Console {
    /// The pages, if they are to be served at `admin`.
    pub(super) fn start(
        &self,
        admin: &Listen,
        retryd: &Retryd<Memory>,
        metrics: &Arc<Metrics>,
        policy: Option<&Path>,
        sharing: Option<Arc<Sharing>>,
    ) -> Option<Router> {
        if !self.when.is_served(admin) {
            if self.when == When::Auto {
                tracing::info!("no console: others could reach the admin address (`--console on`)");
            }
            return None;
        }
        if !admin.is_loopback() {
            tracing::warn!(%admin, "whoever reaches this address may read the console");
        }
        let path = policy.map(|path| path.display().to_string());
        let metrics = Arc::clone(metrics);
        let policy_file = move || {
            let (applied, refused) = metrics.reloads.counts();
            let error = metrics.reloads.error().map(|error| error.text.to_string());
            PolicyFile { path: path.clone(), applied, refused, error }
        };
        let console = console::Console {
            retryd: retryd.clone(),
            sharing,
            policy_file: Arc::new(policy_file),
            hosts: self.console_host.clone(),
        };
        Some(console.start())
    }
}

impl When {
    fn is_served(self, admin: &Listen) -> bool {
        match self {
            When::Auto => admin.is_loopback(),
            When::On => true,
            When::Off => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unless_somebody_says_otherwise_it_stays_on_this_machine() {
        let cases = [
            (When::Auto, "127.0.0.1:9090", true),
            (When::Auto, "[::1]:9090", true),
            (When::Auto, "unix:/run/retryd/admin", true),
            (When::Auto, "0.0.0.0:9090", false),
            (When::Auto, "10.0.0.7:9090", false),
            (When::Auto, "retryd.internal:9090", false),
            (When::On, "0.0.0.0:9090", true),
            (When::Off, "127.0.0.1:9090", false),
        ];
        for (when, admin, expected) in cases {
            let admin: Listen = admin.parse().unwrap();
            assert_eq!(when.is_served(&admin), expected, "{when:?} {admin}");
        }
    }
}
