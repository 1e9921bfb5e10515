//! Draws from a seed, in integers: the same on every machine.
use fastrand::Rng;

use super::scenario::Spread;

/// What a draw is for. Each has a stream of its own, so that one contestant's retries do not change
/// when the next call begins.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stream {
    /// When calls begin, by whom, and which have a key.
    Calls = 1,
    /// How long work takes.
    Work = 2,
    /// Which attempts are answered with an error.
    Failing = 3,
    /// The jitter of waits.
    Waits = 4,
    /// Which replica is asked, and when replicas exchange.
    Replicas = 5,
}

/// One stream of draws.
#[derive(Clone, Debug)]
pub(super) struct Chance(Rng);

impl Chance {
    pub(super) fn new(seed: u64, stream: Stream) -> Chance {
        // Far apart, so that seed 1 does not draw what seed 0 draws in the next stream.
        let mut apart = Rng::with_seed(seed);
        let seed = (0..stream as u32).fold(0, |_, _| apart.u64(..));
        Chance(Rng::with_seed(seed))
    }

    /// A uniform draw of 32 bits.
    pub(super) fn draw(&mut self) -> u32 {
        self.0.u32(..)
    }

    /// A uniform number below `end`; 0 if that is 0.
    pub(super) fn below(&mut self, end: u32) -> u32 {
        self.0.u32(..end.max(1))
    }

    /// Whether something happens that happens `percent` times of a hundred.
    pub(super) fn happens(&mut self, percent: u32) -> bool {
        self.0.u32(..100) < percent
    }

    /// A time whose average is `mean_us`.
    pub(super) fn spread(&mut self, mean_us: u64, spread: Spread) -> u64 {
        match spread {
            Spread::Even => mean_us,
            Spread::Random => scaled(mean_us, self.exponential()),
        }
    }

    /// Exponentially distributed, with an average of 1, in 2^32ths. By comparisons alone, as von
    /// Neumann found: a logarithm is not the same on every machine.
    fn exponential(&mut self) -> u64 {
        for whole in 0.. {
            let first = self.draw();
            let (mut last, mut falling) = (first, 1);
            loop {
                let next = self.draw();
                if last <= next {
                    break;
                }
                (last, falling) = (next, falling + 1);
            }
            if falling % 2 == 1 {
                return (whole << u32::BITS) + u64::from(first);
            }
        }
        0
    }
}

/// `number * factor`, the factor in 2^32ths.
pub(super) fn scaled(number: u64, factor: u64) -> u64 {
    let product = (u128::from(number) * u128::from(factor)) >> u32::BITS;
    u64::try_from(product).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponential_times_have_their_average_and_their_median() {
        let mut chance = Chance::new(1, Stream::Work);
        let mut times: Vec<u64> =
            (0..100_000).map(|_| chance.spread(1_000_000, Spread::Random)).collect();
        let mean = times.iter().sum::<u64>() / 100_000;
        assert!((990_000..1_010_000).contains(&mean), "{mean}");
        times.sort_unstable();
        // The median of an exponential distribution is ln 2, its 95th percentile ln 20.
        assert!((683_000..703_000).contains(&times[50_000]), "{}", times[50_000]);
        assert!((2_940_000..3_050_000).contains(&times[95_000]), "{}", times[95_000]);
        assert_eq!(chance.spread(7, Spread::Even), 7);
    }

    #[test]
    fn a_seed_draws_the_same_for_ever() {
        for (seed, stream, drawn) in [
            (0, Stream::Calls, [844672934, 25075137]),
            (0, Stream::Work, [3245376828, 1512604944]),
            (1, Stream::Calls, [938288294, 1884849056]),
        ] {
            let mut chance = Chance::new(seed, stream);
            let draws = [chance.draw(), chance.draw()];
            assert_eq!(draws, drawn, "seed {seed}, {stream:?}");
        }
    }
}
