//! Anything that may happen to a balance, in any order and at any time, against the slow models of
//! the tests.
#![no_main]
use arbitrary::Unstructured;
use libfuzzer_sys::fuzz_target;

mod bucket;
mod ratio;
#[path = "../../../tests/budget_laws/slow_bucket.rs"]
mod slow_bucket;
#[path = "../../../tests/budget_laws/slow_ratio.rs"]
mod slow_ratio;
#[path = "../../../tests/budget_laws/slow_throttle.rs"]
mod slow_throttle;
mod steps;
mod throttle;

fuzz_target!(|bytes: &[u8]| {
    let mut bytes = Unstructured::new(bytes);
    // Bytes that end early end the history.
    let _ = match bytes.arbitrary::<u8>().unwrap_or(0) % 3 {
        0 => ratio::does_what_its_text_says(&mut bytes),
        1 => throttle::does_what_its_text_says(&mut bytes),
        _ => bucket::does_what_its_text_says(&mut bytes),
    };
});
