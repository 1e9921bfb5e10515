//! The command line: chooses a command and runs it.
use std::process::ExitCode;

use clap::Parser as _;
use retryd::cli::Cli;

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    Cli::parse().run()
}
