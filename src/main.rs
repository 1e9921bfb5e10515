//! The command line: chooses a command and runs it.
use std::process::ExitCode;

use clap::Parser as _;
use retryd::cli::Cli;

fn main() -> ExitCode {
    Cli::parse().run()
}
