//! What a unary call allocates, from its first byte to the last one of its answer, over a real connection. No neighbour on the
//! machine changes that, so the limits are near to today's figures.
//!
//! A change that costs more must raise a limit here, and say in its commit what it is worth.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]
#[path = "../benches/compare/client.rs"]
mod client;
#[path = "../benches/compare/frames.rs"]
mod frames;
#[path = "../benches/compare/in_process.rs"]
mod in_process;
#[path = "../benches/compare/question.rs"]
mod question;

use allocation_counter::measure;

use self::client::{Client, Load};

const CALLS: usize = 1_000;
/// Today: 10.0. The client allocates nothing for a call.
const ALLOCATIONS_MAX: f64 = 10.5;
/// Today: 2,248.
const BYTES_MAX: f64 = 2_400.0;

#[test]
fn a_unary_call_allocates_little() {
    // One thread for both sides, so that all allocations are counted.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let load = Load { connections: 1, in_flight: 25 };
    let questions = [question::of_tenant(1)];
    let mut client = runtime.block_on(async {
        Client::connect(in_process::serve().await, load, false, &questions).await
    });
    // The balance, the tables of header fields, and buffers.
    runtime.block_on(client.calls(CALLS));
    let spent = measure(|| runtime.block_on(client.calls(CALLS)));
    let allocations = spent.count_total as f64 / CALLS as f64;
    let bytes = spent.bytes_total as f64 / CALLS as f64;
    println!("{allocations:.2} allocations and {bytes:.0} bytes a call");
    assert!(allocations <= ALLOCATIONS_MAX, "{allocations:.2} allocations a call");
    assert!(bytes <= BYTES_MAX, "{bytes:.0} bytes allocated a call");
}
