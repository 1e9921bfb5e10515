//! `retryd check`: errors and warnings of policy files, and what each budget guarantees.
use std::path::PathBuf;

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
    pub(super) fn run(self) -> u8 {
        let mut code = FINE;
        for path in &self.policy {
            match Policies::load(path) {
                Ok(policies) => print(&path.display().to_string(), &policies),
                Err(rejected) => {
                    eprintln!("{rejected}");
                    code = BAD;
                }
            }
        }
        code
    }
}

fn print(name: &str, policies: &Policies) {
    println!("{name}: fine, revision {}", policies.revision());
    for warning in policies.warnings() {
        println!("  warning: {warning}");
    }
    for sentence in policies.not_yet_enforced() {
        println!("  warning: `retryd serve` refuses this file: {sentence}");
    }
    for budget in policies.budgets() {
        println!("  budget `{}`: {}", budget.name, guarantee(budget));
    }
}
