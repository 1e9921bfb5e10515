//! How many retries a replica expects to be asked for.

/// A replica that is not asked for so long returns what it has leased.
const IDLE_MS: u64 = 5_000;
/// Below this nothing is kept for the next ask.
const KEPT_FROM_MILS: u64 = 50;

/// Asks since the last exchange, and what the ones before make expect. In thousandths of an ask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Demand {
    asks: u32,
    expected_mils: u64,
    asked_ms: Option<u64>,
}

impl Demand {
    pub(super) fn asked(&mut self, retries: u32, now_ms: u64) {
        self.asks = self.asks.saturating_add(retries);
        self.asked_ms = Some(now_ms);
    }

    /// Whether somebody has asked since the last exchange.
    pub(super) fn is_fresh(&self) -> bool {
        0 < self.asks
    }

    /// An exchange begins: a rise counts at once, a fall little by little.
    pub(super) fn tick(&mut self) {
        let asks_mils = u64::from(self.asks).saturating_mul(1_000);
        let smoothed = (self.expected_mils.saturating_mul(7) + asks_mils.saturating_mul(3)) / 10;
        self.expected_mils = match self.asks {
            0 => self.expected_mils.saturating_mul(8) / 10,
            _ => asks_mils.max(smoothed),
        };
        self.asks = 0;
    }

    /// What it takes until the exchange after the next one, in thousandths of a retry.
    fn need_mils(&self) -> u64 {
        self.expected_mils.saturating_mul(2)
    }

    /// The same in whole retries, rounded up.
    pub(super) fn retries(&self) -> u64 {
        self.need_mils().div_ceil(1_000)
    }

    /// The same in units.
    pub(super) fn units(&self) -> u64 {
        self.need_mils() / 10
    }

    /// Units beyond this are for others.
    pub(super) fn units_kept(&self) -> u64 {
        if self.is_settled() { 0 } else { self.units().saturating_add(50) }
    }

    /// Whether nothing is kept for the next ask.
    pub(super) fn is_settled(&self) -> bool {
        self.need_mils() < KEPT_FROM_MILS
    }

    /// Whether nobody has asked for a while.
    pub(super) fn is_idle(&self, now_ms: u64) -> bool {
        self.asked_ms.is_none_or(|asked_ms| IDLE_MS <= now_ms.saturating_sub(asked_ms))
    }

    /// When somebody asked last.
    pub(super) fn asked_ms(&self) -> Option<u64> {
        self.asked_ms
    }
}
