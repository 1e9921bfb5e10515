//! A throttle by its text: all that happened to it, added up anew for each question.
use retryd::budget::throttle::Limits;

#[derive(Clone)]
pub(crate) struct Throttle {
    first: Limits,
    happened: Vec<Event>,
}

#[derive(Clone, Copy)]
enum Event {
    Successes(u64),
    /// "Every failure that counts takes 1 token", and so does a retry that is acquired.
    Taken,
    /// Retries that were acquired from a throttle of these sizes.
    GivenBack {
        retries: u32,
        of: Limits,
    },
    Reload(Limits),
}

impl Throttle {
    pub(crate) fn new(limits: Limits) -> Throttle {
        Throttle { first: limits, happened: Vec::new() }
    }

    pub(crate) fn succeed(&mut self, successes: u64) {
        self.happened.push(Event::Successes(successes));
    }

    pub(crate) fn fail(&mut self) {
        self.happened.push(Event::Taken);
    }

    /// "n tokens while `2 * tokens > max` holds after each."
    pub(crate) fn acquire(&self, retries: u32) -> Option<Throttle> {
        let mut next = self.clone();
        for _ in 0..retries {
            next.fail();
            if !next.grants() {
                return None;
            }
        }
        Some(next)
    }

    pub(crate) fn give_back(&mut self, retries: u32, of: Limits) {
        self.happened.push(Event::GivenBack { retries, of });
    }

    pub(crate) fn reload(&mut self, limits: Limits) {
        self.happened.push(Event::Reload(limits));
    }

    pub(crate) fn grants(&self) -> bool {
        let (thousandths, limits) = self.now();
        2 * thousandths > 1_000 * u128::from(limits.tokens_max)
    }

    /// "How many further failures in a row would be granted."
    pub(crate) fn available(&self) -> u32 {
        let (thousandths, limits) = self.now();
        let granted = |failures: &u32| {
            let left = thousandths.saturating_sub(1_000 * u128::from(*failures));
            2 * left > 1_000 * u128::from(limits.tokens_max)
        };
        (1..).take_while(granted).last().unwrap_or(0)
    }

    /// The tokens in thousandths, "clamped to [0, max]", and the sizes in force. A reload makes
    /// them "x * new size / old size, rounded down", and so does it with what is given back later:
    /// as if they had been there. The part that is kept is a thousandth.
    fn now(&self) -> (u128, Limits) {
        let full = |limits: Limits| 1_000 * u128::from(limits.tokens_max);
        let scaled = |thousandths: u128, from: Limits, to: Limits| {
            thousandths * u128::from(to.tokens_max) / u128::from(from.tokens_max)
        };
        let fresh = (full(self.first), self.first);
        self.happened.iter().fold(fresh, |(tokens, limits), event| match *event {
            Event::Successes(successes) => {
                let earned = u128::from(successes) * u128::from(limits.token_ratio_thousandths);
                ((tokens + earned).min(full(limits)), limits)
            }
            Event::Taken => (tokens.saturating_sub(1_000), limits),
            Event::GivenBack { retries, of } => {
                let back = scaled(1_000 * u128::from(retries), of, limits);
                ((tokens + back).min(full(limits)), limits)
            }
            Event::Reload(new) => (scaled(tokens, limits, new), new),
        })
    }
}
