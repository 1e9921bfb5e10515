//! Moments at which a ratio might be caught out, whatever its sizes are by then.
use proptest::prelude::*;
use retryd::budget::ratio::{Floor, Limits};

/// How long after the event before.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Gap {
    /// The clock stands still.
    Nothing,
    /// Now and then it seems to step back.
    Ms(i64),
    /// So many slots on, a millisecond before its edge, at it or after it.
    Slots { slots: u64, off_ms: i64 },
    /// One window on, or one floor's interval.
    Window { off_ms: i64 },
    /// When the floor has refilled so many tokens, and its interval is over.
    Tokens { tokens: u64, off_ms: i64 },
    /// To where the floor's interval would end, if it were aligned.
    FloorEdge { off_ms: i64 },
}

pub(crate) fn gap() -> impl Strategy<Value = Gap> {
    let off_ms = || -1..=1_i64;
    let slots = prop_oneof![Just(1), Just(9), Just(10), 2..9_u64, 10..40_u64];
    prop_oneof![
        6 => Just(Gap::Nothing),
        4 => prop_oneof![3 => 0..50_i64, 1 => 0..20_000_i64, 1 => -3_000..0_i64].prop_map(Gap::Ms),
        4 => (slots, off_ms()).prop_map(|(slots, off_ms)| Gap::Slots { slots, off_ms }),
        1 => off_ms().prop_map(|off_ms| Gap::Window { off_ms }),
        1 => (1..12_u64, off_ms()).prop_map(|(tokens, off_ms)| Gap::Tokens { tokens, off_ms }),
        1 => off_ms().prop_map(|off_ms| Gap::FloorEdge { off_ms }),
    ]
}

impl Gap {
    /// The moment that lies so far after `now_ms`.
    pub(crate) fn after(self, now_ms: u64, limits: &Limits) -> u64 {
        let Limits { interval_ms, floor, .. } = *limits;
        let Floor { count, interval_ms: floor_ms } = floor;
        let (to_ms, off_ms) = match self {
            Gap::Nothing => (now_ms, 0),
            Gap::Ms(off_ms) => (now_ms, off_ms),
            Gap::Slots { slots, off_ms } => {
                let slot = now_ms * 10 / interval_ms + slots;
                ((slot * interval_ms).div_ceil(10), off_ms)
            }
            Gap::Window { off_ms } => (now_ms + interval_ms, off_ms),
            Gap::Tokens { tokens, off_ms } => {
                (now_ms + (tokens * floor_ms).div_ceil(u64::from(count.max(1))), off_ms)
            }
            Gap::FloorEdge { off_ms } => ((now_ms / floor_ms + 1) * floor_ms, off_ms),
        };
        to_ms.saturating_add_signed(off_ms)
    }
}

/// The beginning of time, soon after it, and long after.
pub(crate) fn start_ms() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), 0..30_000_u64, Just(u64::from(u32::MAX) * 1_000)]
}
