//! What may happen to a balance.
use arbitrary::{Arbitrary, Result, Unstructured};
use retryd::budget::Usage;
use retryd::engine::Class;

/// The slow models go through all that happened, each time.
const STEPS_MAX: usize = 60;
/// And they pay retry by retry.
const RETRIES_MAX: u32 = 20;

pub(crate) enum Step {
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
        grant: usize,
        retries: u32,
    },
    /// Goes on with other sizes, which are read next.
    Reload,
}

pub(crate) fn each_step(
    bytes: &mut Unstructured<'_>,
    mut play: impl FnMut(&mut Unstructured<'_>, Step) -> Result<()>,
) -> Result<()> {
    for _ in 0..STEPS_MAX {
        if bytes.is_empty() {
            break;
        }
        let step = match bytes.int_in_range(0..=9)? {
            0 | 1 => Step::Report(usage(bytes)?),
            2 => Step::Fail,
            3 | 4 => Step::GiveBack {
                grant: usize::from(u8::arbitrary(bytes)?),
                retries: bytes.int_in_range(1..=RETRIES_MAX)?,
            },
            5 => Step::Reload,
            6 => Step::Ask { class: class(bytes)?, retries: bytes.int_in_range(0..=RETRIES_MAX)? },
            _ => Step::Ask { class: class(bytes)?, retries: 1 },
        };
        play(bytes, step)?;
    }
    Ok(())
}

fn class(bytes: &mut Unstructured<'_>) -> Result<Class> {
    bytes.choose(&[Class::Transient, Class::Throttling, Class::Timeout]).copied()
}

/// A report as the border lets it in.
fn usage(bytes: &mut Unstructured<'_>) -> Result<Usage> {
    fn count(bytes: &mut Unstructured<'_>) -> Result<u64> {
        let max = if bool::arbitrary(bytes)? { 100 } else { Usage::COUNT_MAX };
        bytes.int_in_range(0..=max)
    }
    let retried_successes = count(bytes)?;
    let retried_transient = bytes.int_in_range(0..=retried_successes)?;
    let retried_throttling = bytes.int_in_range(0..=retried_successes - retried_transient)?;
    let rest = retried_successes - retried_transient - retried_throttling;
    let period_ms = bool::arbitrary(bytes)?.then(|| bytes.int_in_range(1..=u64::MAX));
    Ok(Usage {
        requests: count(bytes)?,
        first_try_successes: count(bytes)?,
        retried_successes,
        retried_transient,
        retried_throttling,
        retried_timeout: bytes.int_in_range(0..=rest)?,
        period_ms: period_ms.transpose()?,
    })
}
