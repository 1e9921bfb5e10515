//! `retryd check`: errors and warnings of policy files, and what each budget guarantees.
use std::{
    io::{self, Write},
    path::PathBuf,
};

use clap::Args;

use super::{BAD, FINE};
use crate::policy::{Policies, guarantee};

#[derive(Debug, Args)]
pub(super) struct Check {
    /// Policy files
    #[arg(required = true)]
    policy: Vec<PathBuf>,
}

impl Check {
    pub(super) fn run(self) -> anyhow::Result<u8> {
        let mut out = io::stdout().lock();
        let mut code = FINE;
        for path in &self.policy {
            match Policies::load(path) {
                Ok(policies) => {
                    super::unless_closed(write(&mut out, &path.display().to_string(), &policies))?;
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

fn write(out: &mut impl Write, name: &str, policies: &Policies) -> io::Result<()> {
    writeln!(out, "{name}: fine, revision {}", policies.revision())?;
    for warning in policies.warnings() {
        writeln!(out, "  warning: {warning}")?;
    }
    for sentence in policies.not_yet_enforced() {
        writeln!(
            out,
            "  warning: `retryd serve` refuses this file, this version does not enforce all of it: {sentence}"
        )?;
    }
    for budget in policies.budgets() {
        writeln!(out, "  budget `{}`: {}", budget.name, guarantee(budget))?;
    }
    Ok(())
}
