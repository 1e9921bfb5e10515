//! A token bucket by its text: all that happened to it, added up anew for each question.
use retryd::budget::Usage;
use retryd::budget::bucket::Limits;
use retryd::engine::Class;

#[derive(Clone)]
pub(crate) struct Bucket {
    first: Limits,
    happened: Vec<Event>,
}

#[derive(Clone, Copy)]
enum Event {
    Successes(Usage),
    Paid {
        class: Class,
        retries: u32,
    },
    /// Retries that were paid for by these sizes.
    GivenBack {
        class: Class,
        retries: u32,
        of: Limits,
    },
    Reload(Limits),
}

impl Bucket {
    pub(crate) fn new(limits: Limits) -> Bucket {
        Bucket { first: limits, happened: Vec::new() }
    }

    pub(crate) fn succeed(&mut self, usage: Usage) {
        self.happened.push(Event::Successes(usage));
    }

    pub(crate) fn pay(&self, class: Class, retries: u32) -> Option<Bucket> {
        let (tokens, limits) = self.now();
        let mut next = self.clone();
        next.happened.push(Event::Paid { class, retries });
        (u128::from(retries) * cost(limits, class) <= tokens).then_some(next)
    }

    pub(crate) fn give_back(&mut self, class: Class, retries: u32, of: Limits) {
        self.happened.push(Event::GivenBack { class, retries, of });
    }

    pub(crate) fn reload(&mut self, limits: Limits) {
        self.happened.push(Event::Reload(limits));
    }

    /// "floor(balance / transient cost)"
    pub(crate) fn available(&self) -> u128 {
        let (tokens, limits) = self.now();
        tokens / cost(limits, Class::Transient)
    }

    /// The tokens, "clamped to [0, capacity]", and the sizes in force. A reload makes them "x * new
    /// size / old size, rounded down", and so does it with what is given back later: as if they
    /// had been there.
    pub(crate) fn now(&self) -> (u128, Limits) {
        let scaled = |tokens: u128, from: Limits, to: Limits| {
            tokens * u128::from(to.capacity) / u128::from(from.capacity)
        };
        let fresh = (u128::from(self.first.capacity), self.first);
        self.happened.iter().fold(fresh, |(tokens, limits), event| {
            let (tokens, limits) = match *event {
                Event::Successes(usage) => (tokens + earned(limits, &usage), limits),
                Event::Paid { class, retries } => {
                    (tokens - u128::from(retries) * cost(limits, class), limits)
                }
                Event::GivenBack { class, retries, of } => {
                    let paid = u128::from(retries) * cost(of, class);
                    (tokens + scaled(paid, of, limits), limits)
                }
                Event::Reload(new) => (scaled(tokens, limits, new), new),
            };
            (tokens.min(u128::from(limits.capacity)), limits)
        })
    }
}

/// "A first-try success gives back 1, a retried success the cost of the class under which it is
/// reported, one without a class the smallest cost."
fn earned(limits: Limits, usage: &Usage) -> u128 {
    let classes = [Class::Transient, Class::Throttling, Class::Timeout];
    let named = [usage.retried_transient, usage.retried_throttling, usage.retried_timeout];
    let unnamed = usage.retried_successes - named.iter().sum::<u64>();
    let smallest = classes.map(|class| cost(limits, class)).into_iter().min().unwrap();
    let of_classes =
        classes.into_iter().zip(named).map(|(class, of)| u128::from(of) * cost(limits, class));
    u128::from(usage.first_try_successes)
        + u128::from(unnamed) * smallest
        + of_classes.sum::<u128>()
}

pub(crate) fn cost(limits: Limits, class: Class) -> u128 {
    u128::from(match class {
        Class::Transient => limits.costs.transient,
        Class::Throttling => limits.costs.throttling,
        Class::Timeout => limits.costs.timeout,
    })
}
