//! Everything that callers and operators do to one process, in any order and at any time, held
//! against what all of them may rely on.
#![no_main]
use arbitrary::{Arbitrary as _, Unstructured};
use libfuzzer_sys::fuzz_target;

mod calls;
mod ledger;
mod play;

use calls::Call;
use play::Play;

const CALLS_MAX: usize = 40;

fuzz_target!(|bytes: &[u8]| {
    let mut bytes = Unstructured::new(bytes);
    let Ok(room) = bytes.choose(&[1_000, 0, 1, 2, 5]) else { return };
    let mut play = Play::new(*room);
    for _ in 0..CALLS_MAX {
        if bytes.is_empty() {
            break;
        }
        // Bytes that end early end the history.
        let Ok(call) = Call::arbitrary(&mut bytes) else { break };
        play.call(call);
    }
});
