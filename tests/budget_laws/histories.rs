//! What may happen to a balance.
use proptest::prelude::*;
use proptest::sample::Index;
use retryd::budget::Usage;
use retryd::engine::Class;

/// One event, for a model with limits of type `L`.
#[derive(Clone, Debug)]
pub(crate) enum Step<L> {
    Report(Usage),
    /// An attempt fails.
    Fail,
    /// Asks for so many retries, all or none.
    Ask {
        class: Class,
        retries: u32,
    },
    /// Gives back so many retries of one of the grants there were, if it has as many left.
    GiveBack {
        grant: Index,
        retries: u32,
    },
    /// Goes on with other sizes.
    Reload(L),
}

pub(crate) fn step<L: Clone + std::fmt::Debug>(
    limits: impl Strategy<Value = L>,
) -> impl Strategy<Value = Step<L>> {
    let ask = (class(), retries()).prop_map(|(class, retries)| Step::Ask { class, retries });
    let give_back =
        (any::<Index>(), retries()).prop_map(|(grant, retries)| Step::GiveBack { grant, retries });
    prop_oneof![
        4 => usage().prop_map(Step::Report),
        2 => Just(Step::Fail),
        6 => ask,
        3 => give_back,
        1 => limits.prop_map(Step::Reload),
    ]
}

fn class() -> impl Strategy<Value = Class> {
    prop_oneof![Just(Class::Transient), Just(Class::Throttling), Just(Class::Timeout)]
}

/// One for a Decide; several are acquired.
fn retries() -> impl Strategy<Value = u32> {
    prop_oneof![6 => Just(1), 4 => 2..=12_u32, 1 => 1..=1_000_u32]
}

pub(crate) fn usage() -> impl Strategy<Value = Usage> {
    let count = || prop_oneof![9 => 0..40_u64, 1 => 0..=Usage::COUNT_MAX];
    let retried = (0..9_u64, 0..9_u64, 0..9_u64, 0..9_u64);
    let period_ms = prop_oneof![Just(None), (1..100_000_u64).prop_map(Some)];
    (count(), count(), retried, period_ms).prop_map(|(requests, first_try, retried, period_ms)| {
        let (retried_transient, retried_throttling, retried_timeout, without_class) = retried;
        let with_class = retried_transient + retried_throttling + retried_timeout;
        Usage {
            requests,
            first_try_successes: first_try,
            retried_successes: with_class + without_class,
            retried_transient,
            retried_throttling,
            retried_timeout,
            period_ms,
        }
    })
}
