//! The command line, one file a command.
//!
//! Exit codes: 0 fine, 1 the answer is no, 2 bad use or bad input.
mod check;
mod decide;
mod export;
mod healthcheck;
mod import;
mod node;
mod offline;
mod replay;
mod serve;
mod simulate;
mod test;

use std::{
    fmt,
    io::{self, Write as _},
    process::ExitCode,
};

use clap::{CommandFactory as _, Parser, Subcommand};

use crate::policy::{Policies, Rejected, parse_ms};

/// Processes that share a store, at most.
const REPLICAS_MAX: i64 = 1_000;

/// Fine.
const FINE: u8 = 0;
/// The answer is no.
const NO: u8 = 1;
/// Bad use or bad input.
const BAD: u8 = 2;

/// May this failed attempt be repeated, when, and why (not)? One answer for every language.
#[derive(Debug, Parser)]
#[command(name = "retryd", version, args_conflicts_with_subcommands = true)]
#[command(after_help = "Without a command, retryd serves.\n\nExit codes: 0 fine, 1 the answer is \
    no, 2 bad use or bad input; a second signal ends `serve` at once with 130.")]
pub struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: serve::Serve,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve decisions over gRPC (the default)
    Serve(Box<serve::Serve>),
    /// Decide about attempts in a file, without a server
    Decide(decide::Decide),
    /// Check policy files, and print what each budget guarantees
    Check(check::Check),
    /// Test policies: cases beside a policy, each with the decision that it must get
    Test(test::Test),
    /// Decide a decision log anew, by another policy file, and tell what would change
    Replay(replay::Replay),
    /// Play an outage on a virtual clock, and compare what clients could do about it
    Simulate(simulate::Simulate),
    /// Print the policy that says what a file of gRPC, Envoy or Gateway API says, and list what none can say
    Import(import::Import),
    /// Print what clients may do by themselves while retryd is out of reach
    Export(export::Export),
    /// Ask a server for its health: exit code 0 if it is serving, else 1
    Healthcheck(healthcheck::Healthcheck),
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

impl Cli {
    /// Runs the command to its end.
    pub fn run(self) -> ExitCode {
        let ended = match self.command {
            None => self.serve.run(),
            Some(Command::Serve(serve)) => serve.run(),
            Some(Command::Decide(decide)) => decide.run(),
            Some(Command::Check(check)) => check.run(),
            Some(Command::Test(test)) => test.run(),
            Some(Command::Replay(replay)) => replay.run(),
            Some(Command::Simulate(simulate)) => simulate.run(),
            Some(Command::Import(import)) => import.run(),
            Some(Command::Export(export)) => export.run(),
            Some(Command::Healthcheck(healthcheck)) => healthcheck.run(),
            Some(Command::Completions { shell }) => {
                // Into memory first: the library panics where nobody reads.
                let mut script = Vec::new();
                clap_complete::generate(shell, &mut Cli::command(), "retryd", &mut script);
                unless_closed(io::stdout().write_all(&script)).map(|()| FINE)
            }
        };
        match ended {
            Ok(code) => ExitCode::from(code),
            Err(error) => {
                complain(&report(&error));
                ExitCode::from(BAD)
            }
        }
    }
}

/// Whoever reads may have seen enough: that is no error.
fn unless_closed(written: io::Result<()>) -> anyhow::Result<()> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}

/// What went wrong, for people.
fn report(error: &anyhow::Error) -> String {
    match error.downcast_ref::<Rejected>() {
        // A report of its own, with its own headings.
        Some(rejected) => rejected.to_string(),
        None => format!("error: {error:#}"),
    }
}

/// Writes to stderr. If nobody reads there, nobody can be told.
fn complain(what: &dyn fmt::Display) {
    writeln!(io::stderr(), "{what}").ok();
}

/// The policies of a file, or the embedded ones.
fn policies(path: Option<&std::path::Path>) -> anyhow::Result<Policies> {
    Ok(match path {
        Some(path) => Policies::load(path)?,
        None => Policies::embedded(),
    })
}

/// A duration as policy files write it (GEP-2257), such as `5s` or `1m30s`.
fn duration(text: &str) -> Result<std::time::Duration, String> {
    parse_ms(text)
        .map(std::time::Duration::from_millis)
        .ok_or_else(|| "write a duration such as `500ms`, `5s` or `1m30s`".to_owned())
}
