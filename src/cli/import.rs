//! `retryd import`: the policy that says what a file of another tool says, and what none can say.
//!
//! ```text
//! Node (YAML or JSON, with places) ──> grpc, envoy, gateway_api ──> Imported ──> write ──> checked
//!                                      └─ Reader: what is wrong, what is left out, what to know
//! ```
mod at;
mod envoy;
mod gateway_api;
mod grpc;
mod http;
mod names;
mod number;
mod reader;
mod write;

use std::{
    fmt::Write as _,
    io::{self, Read as _, Write as _},
    path::PathBuf,
};

use anyhow::Context as _;
use clap::{Args, ValueEnum};

use self::reader::{Reader, Unsaid};
use super::node::Node;
use super::{FINE, NO};
use crate::budget::Budget;
use crate::engine::{Categories, GrpcCodes, HttpStatuses, RetryOn, Rules, Statuses};
use crate::policy::{self, FILE_BYTES_MAX, Policies, Policy, Rejected, text, yaml};

#[derive(Debug, Args)]
pub(super) struct Import {
    /// What the file is
    #[arg(value_enum)]
    format: Format,
    /// The file, in JSON or YAML; `-` reads from the standard input
    file: PathBuf,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// A service config of gRPC: `methodConfig`, `retryThrottling`
    GrpcServiceConfig,
    /// Envoy v3: a RouteConfiguration, or a bootstrap with one
    Envoy,
    /// Kubernetes Gateway API: HTTPRoutes, GRPCRoutes, BackendTrafficPolicies
    GatewayApi,
}

/// What a file says, as far as a policy file can.
struct Imported {
    budgets: Vec<Budget>,
    policies: Vec<Policy>,
}

/// Nothing may be repeated.
const NOTHING: RetryOn = RetryOn {
    statuses: Statuses { http: HttpStatuses::of(&[]), grpc: GrpcCodes::of(&[]) },
    categories: Categories::of(&[]),
};

/// Nothing is repeated, and no failure counts in a throttle.
fn no_retries() -> Rules {
    Rules { attempts_max: 1, retry_on: NOTHING, ..Rules::default() }
}

impl Import {
    pub(super) fn run(self) -> anyhow::Result<u8> {
        let name = self.file.display().to_string();
        let bytes = match name.as_str() {
            "-" => stdin().context("cannot read the standard input")?,
            _ => policy::bytes(&self.file)?,
        };
        let source = text(&name, &bytes)?;
        let rejected = |problems| Rejected::new(&name, source, problems);
        let documents: Vec<Node> =
            yaml::read_foreign(source).map_err(|problem| rejected(vec![problem]))?;

        let mut reader = Reader::default();
        let imported = match self.format {
            Format::GrpcServiceConfig => grpc::import(&mut reader, &documents),
            Format::Envoy => envoy::import(&mut reader, &documents),
            Format::GatewayApi => gateway_api::import(&mut reader, &documents),
        };
        if !reader.problems.is_empty() {
            return Err(rejected(reader.problems).into());
        }
        reader.unsaid.sort_by_key(Unsaid::place);
        let file = file(&name, &reader, &imported);
        // What is printed loads: a file that does not is told of here.
        Policies::parse("the policy file", file.as_bytes())
            .with_context(|| format!("`{name}` does not fit into a policy file"))?;

        for unsaid in &reader.unsaid {
            super::complain(&format_args!("cannot be said: {name}:{unsaid}"));
        }
        for note in &reader.notes {
            super::complain(&format_args!("note: {note}"));
        }
        super::unless_closed(io::stdout().write_all(file.as_bytes()))?;
        Ok(if reader.unsaid.is_empty() { FINE } else { NO })
    }
}

/// As much as a file may have, and one byte more, so that [`text`] sees it.
fn stdin() -> io::Result<Vec<u8>> {
    let limit = u64::try_from(FILE_BYTES_MAX).unwrap_or(u64::MAX).saturating_add(1);
    let mut bytes = Vec::new();
    io::stdin().take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The policy file. What it does not say stands in its head.
fn file(name: &str, reader: &Reader, imported: &Imported) -> String {
    let mut file = format!("# Imported from {}.\n", policy::quoted(name));
    // Writing to a text cannot fail.
    if !reader.unsaid.is_empty() {
        file.push_str("#\n# What stands there and cannot be said here:\n");
    }
    for unsaid in &reader.unsaid {
        writeln!(file, "# - {unsaid}").ok();
    }
    if !reader.notes.is_empty() {
        file.push_str("#\n# What to know:\n");
    }
    for note in &reader.notes {
        writeln!(file, "# - {note}").ok();
    }
    write!(file, "\n{imported}").ok();
    file
}
