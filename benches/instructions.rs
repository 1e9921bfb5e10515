//! Instructions of a unary call, over a real connection, counted by valgrind: the same on a busy machine as on a quiet one.
//!
//! `cargo bench --profile ci --bench instructions` fails when there are more than [`INSTRUCTIONS_MAX`]. It leaves a profile:
//! `callgrind_annotate target/tmp/callgrind.out`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a bench that fails must end"
)]
#![allow(clippy::indexing_slicing, reason = "a bench measures")]
#[path = "compare/client.rs"]
mod client;
#[path = "compare/frames.rs"]
mod frames;
#[path = "compare/in_process.rs"]
mod in_process;
#[path = "compare/question.rs"]
mod question;

use std::{env, process::Command};

use self::client::{Client, Load};

/// A few per cent above today's figure by the profile `ci`: 48,763. The client's few are among them.
///
/// A change that costs more must raise this, and say in its commit what it is worth. So must a new version of a
/// dependency or of Rust, if it moves the figure.
const INSTRUCTIONS_MAX: u64 = 51_000;

const FEW: usize = 1_000;
const MANY: usize = 3_000;

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let mut arguments = env::args().skip(1);
    if arguments.next().as_deref() == Some("calls") {
        return calls(arguments.next().unwrap().parse().unwrap());
    }
    // What it takes to start is in both.
    let (few, many) = (counted(FEW), counted(MANY));
    let each = (many - few) / (MANY - FEW) as u64;
    println!("{each} instructions a call, at most {INSTRUCTIONS_MAX}");
    assert!(each <= INSTRUCTIONS_MAX, "a call takes more instructions than it may");
}

/// Client and server on one thread.
fn calls(calls: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let load = Load { connections: 1, in_flight: 25 };
        let questions = [question::of_tenant(1)];
        let to = in_process::serve().await;
        Client::connect(to, load, false, &questions).await.calls(calls).await;
    });
}

fn counted(calls: usize) -> u64 {
    let profile = concat!("--callgrind-out-file=", env!("CARGO_TARGET_TMPDIR"), "/callgrind.out");
    let own = env::current_exe().unwrap();
    let valgrind = Command::new("valgrind")
        .args(["--tool=callgrind", profile])
        .arg(own)
        .args(["calls", &calls.to_string()])
        .output()
        .expect("valgrind");
    let told = String::from_utf8_lossy(&valgrind.stderr);
    assert!(valgrind.status.success(), "{told}");
    let count = told.lines().find_map(|line| line.split_once("Collected : "));
    count.unwrap_or_else(|| panic!("no count: {told}")).1.trim().parse().unwrap()
}
