//! `retryd check`: errors and warnings of policy files, and what each budget guarantees.
use std::{
    io::{self, Write},
    path::PathBuf,
};

use clap::Args;

use super::{BAD, FINE, REPLICAS_MAX};
use crate::policy::{Policies, Warning, guarantee, shared_guarantee};

#[derive(Debug, Args)]
pub(super) struct Check {
    /// Policy files
    #[arg(required = true)]
    policy: Vec<PathBuf>,
    /// Print what holds for N replicas together that share their budgets; absent: for one process
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=REPLICAS_MAX))]
    replicas: Option<u32>,
}

impl Check {
    pub(super) fn run(self) -> anyhow::Result<u8> {
        let mut out = io::stdout().lock();
        let mut code = FINE;
        for path in &self.policy {
            match Policies::load(path) {
                Ok(policies) => {
                    let name = path.display().to_string();
                    super::unless_closed(write(&mut out, &name, &policies, self.replicas))?;
                }
                Err(rejected) => {
                    super::complain(&rejected);
                    code = BAD;
                }
            }
        }
        Ok(code)
    }
}

fn write(
    out: &mut impl Write,
    name: &str,
    policies: &Policies,
    replicas: Option<u32>,
) -> io::Result<()> {
    writeln!(out, "{name}: fine, revision {}", policies.revision())?;
    for warning in policies.warnings() {
        writeln!(out, "  warning: {warning}")?;
    }
    for warning in replicas.iter().flat_map(|n| Warning::of_sharing(policies.budgets(), *n)) {
        writeln!(out, "  warning: {warning}")?;
    }
    if policies.fit(false).is_err() {
        let file =
            "`callers` and `operators` hold where `retryd serve` asks for client certificates";
        writeln!(out, "  {file} (`--tls-client-ca-file`); elsewhere it refuses this file")?;
    }
    for budget in policies.budgets() {
        let guarantee = match replicas {
            None => guarantee(budget),
            Some(replicas) => shared_guarantee(budget, replicas),
        };
        writeln!(out, "  budget `{}`: {guarantee}", budget.name)?;
    }
    Ok(())
}
