//! `retryd export`: what clients may do by themselves while retryd is out of reach.
//!
//! A service config cannot ask whether a repeat is safe. So it says no more than what is safe for every
//! call that it names: of the statuses that a policy repeats, those that its `refusal_statuses` take
//! as proof that nothing was done; all of them where `--idempotent` vouches for the operation.
mod fallback;
mod name;
mod service_config;

use std::{
    io::{self, Write as _},
    path::PathBuf,
};

use clap::{Args, ValueEnum};

use self::{fallback::Fallback, name::Name};
use super::FINE;
use crate::policy::Policies;

#[derive(Debug, Args)]
pub(super) struct Export {
    /// What to print
    #[arg(value_enum)]
    format: Format,
    /// The policy file; absent: the embedded policy
    #[arg(long, env = "RETRYD_POLICY", value_name = "FILE")]
    policy: Option<PathBuf>,
    /// What may always be repeated: `pkg.Service/Method`, `pkg.Service/*` or `*`; may be given again
    #[arg(long, value_name = "OPERATION", value_parser = Name::parse)]
    idempotent: Vec<Name>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// A service config of gRPC, in JSON
    GrpcServiceConfig,
}

impl Export {
    pub(super) fn run(self) -> anyhow::Result<u8> {
        let policies = match &self.policy {
            Some(path) => Policies::load(path)?,
            None => Policies::embedded(),
        };
        let fallback = Fallback::of(&policies, &self.idempotent);
        let text = match self.format {
            Format::GrpcServiceConfig => service_config::text(&fallback)?,
        };
        for unsaid in &fallback.unsaid {
            super::complain(&format_args!("cannot be said: {unsaid}"));
        }
        for note in &fallback.notes {
            super::complain(&format_args!("note: {note}"));
        }
        super::unless_closed(io::stdout().write_all(text.as_bytes()))?;
        // A fallback is less than the policy by its nature: what is missing is no failure.
        Ok(FINE)
    }
}
