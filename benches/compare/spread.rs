//! How long many calls took.
use std::time::Duration;

/// Percentiles by the nearest rank: each is the time of a call that was made.
pub(crate) struct Spread(Vec<Duration>);

impl Spread {
    pub(crate) fn of(mut times: Vec<Duration>) -> Spread {
        times.sort_unstable();
        Spread(times)
    }

    /// So many in a thousand took no longer. Nothing took nothing.
    pub(crate) fn per_mille(&self, per_mille: usize) -> Duration {
        let rank = (self.0.len() * per_mille).div_ceil(1_000);
        self.0.get(rank.saturating_sub(1)).copied().unwrap_or_default()
    }
}
