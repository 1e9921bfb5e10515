//! The only place that reads the clock or rolls dice.
use std::{
    sync::atomic::{AtomicU64, Ordering},
    sync::{Arc, OnceLock},
    time::{Duration, Instant, SystemTime},
};

/// One reading of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Milliseconds on a monotonic clock. Only differences mean something.
    pub monotonic_ms: u64,
    /// Milliseconds since 1970-01-01T00:00:00Z.
    pub unix_ms: u64,
}

/// A moment to measure from: finer than [`Now`], and cheaper. Only differences mean something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    ns: u64,
}

impl Moment {
    /// Nanoseconds since an earlier moment.
    pub fn ns_since(self, earlier: Moment) -> u64 {
        self.ns.saturating_sub(earlier.ns)
    }

    /// On the clock of [`Now::monotonic_ms`].
    pub fn monotonic_ms(self) -> u64 {
        self.ns / NS_A_MS
    }
}

const NS_A_MS: u64 = 1_000_000;

/// Tells the time: the system's, or one that a test sets.
#[derive(Clone, Debug, Default)]
pub struct Clock(Option<Arc<SetTime>>);

#[derive(Debug)]
struct SetTime {
    monotonic_ms: AtomicU64,
    unix_ms: AtomicU64,
}

impl Clock {
    /// The system's clock.
    pub fn system() -> Clock {
        Clock(None)
    }

    /// A clock that stands still until [`advance`](Clock::advance) moves it. Its clones move along.
    pub fn standing_at(now: Now) -> Clock {
        Clock(Some(Arc::new(SetTime {
            monotonic_ms: AtomicU64::new(now.monotonic_ms),
            unix_ms: AtomicU64::new(now.unix_ms),
        })))
    }

    /// Moves a standing clock forward. The system's clock moves by itself: there it does nothing.
    pub fn advance(&self, by: Duration) {
        if let Some(set) = &self.0 {
            let by_ms = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
            set.monotonic_ms.fetch_add(by_ms, Ordering::SeqCst);
            set.unix_ms.fetch_add(by_ms, Ordering::SeqCst);
        }
    }

    /// The moment now.
    pub fn moment(&self) -> Moment {
        let ns = match &self.0 {
            None => u64::try_from(since_start().as_nanos()).unwrap_or(u64::MAX),
            Some(set) => set.monotonic_ms.load(Ordering::SeqCst).saturating_mul(NS_A_MS),
        };
        Moment { ns }
    }

    /// The time now.
    pub fn now(&self) -> Now {
        match &self.0 {
            None => system_now(),
            Some(set) => Now {
                monotonic_ms: set.monotonic_ms.load(Ordering::SeqCst),
                unix_ms: set.unix_ms.load(Ordering::SeqCst),
            },
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the one place that reads the system's clock")]
fn since_start() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}

#[expect(clippy::disallowed_methods, reason = "the one place that reads the system's clock")]
fn system_now() -> Now {
    let since_epoch =
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    Now { monotonic_ms: whole_ms(since_start()), unix_ms: whole_ms(since_epoch) }
}

fn whole_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Where draws come from: chance, or one number that a test sets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Dice(Option<u32>);

impl Dice {
    /// A uniform draw each time.
    pub fn fair() -> Dice {
        Dice(None)
    }

    /// The same draw each time.
    pub fn loaded(draw: u32) -> Dice {
        Dice(Some(draw))
    }

    /// One draw.
    #[expect(clippy::disallowed_methods, reason = "the one place that rolls dice")]
    pub fn roll(&self) -> u32 {
        self.0.unwrap_or_else(|| fastrand::u32(..))
    }
}
