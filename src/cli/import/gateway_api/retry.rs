//! `retry` and `timeouts` of a rule, as rules of a policy.
use super::super::at::At;
use super::super::reader::Reader;
use super::super::{NOTHING, http, no_retries};
use crate::engine::{Backoff, Categories, Category, Jitter, RetryOn, Rules};

/// As many as a policy file takes, without the first attempt.
const RETRIES_MAX: u64 = 999;
const HOUR_MS: u64 = 3_600_000;
const DAY_MS: u64 = 24 * HOUR_MS;
/// The longest wait, in first waits. Gateway API leaves it open; this is Envoy's.
const MAX_IN_BASES: u64 = 10;

/// The connection was not established, or the backend refused the request unseen.
const NOT_REACHED: Categories = Categories::of(&[
    Category::NameResolution,
    Category::Connect,
    Category::TlsHandshake,
    Category::StreamRefused,
]);

const FAILURES: &str = "Gateway API leaves open which failures without a status are repeated: the policy \
    repeats what did not reach the backend, and an attempt that timed out where the file has a \
    `backendRequest` timeout";
const ATTEMPTS: &str =
    "without `attempts`, a gateway repeats as often as it likes: the policy does once";
const NO_BACKOFF: &str =
    "without `backoff`, a gateway waits as it likes: the policy has retryd's own backoff";
const BACKOFF: &str = "Gateway API leaves the curve of `backoff` to the gateway: the policy waits at least \
    as long, up to twice as long, and twice that after each attempt, up to twenty times";

/// What a rule with this `retry` repeats; without one, nothing.
pub(super) fn rules(reader: &mut Reader, retry: Option<At<'_>>, times_out: bool) -> Rules {
    let Some(at) = retry else { return no_retries() };
    let mut fields = reader.fields(at);
    let retries = match fields.take("attempts") {
        Some(at) => retries(reader, &at),
        None => {
            reader.note(ATTEMPTS);
            1
        }
    };
    let categories =
        if times_out { NOT_REACHED.with(Category::AttemptTimeout) } else { NOT_REACHED };
    let mut rules = Rules {
        attempts_max: u32::try_from(retries).unwrap_or(0).saturating_add(1),
        // A gateway begins an attempt as long as any time is left.
        min_attempt_budget_ms: 0,
        retry_on: RetryOn { categories, ..NOTHING },
        ..Rules::default()
    };
    if let Some(at) = fields.take("codes") {
        for at in reader.items(&at) {
            let code = reader.whole(&at, 400, 599);
            http::list(reader, &at, &mut rules, code.into_iter());
        }
    }
    let base = fields.take("backoff");
    let is_left_open = base.is_none();
    if let Some(backoff) = base.and_then(|at| backoff(reader, &at)) {
        rules.backoff = backoff;
    }
    reader.leave_rest(fields, |_| "retryd does not know this key");
    if retries == 0 {
        return no_retries();
    }
    reader.note(FAILURES);
    reader.note(if is_left_open { NO_BACKOFF } else { BACKOFF });
    rules
}

fn retries(reader: &mut Reader, at: &At<'_>) -> u64 {
    let retries = reader.whole(at, 0, u64::from(u32::MAX)).unwrap_or(0);
    if RETRIES_MAX < retries {
        reader.leave(at, format!("a policy allows at most {RETRIES_MAX}"));
    }
    retries.min(RETRIES_MAX)
}

/// Waits from `backoff` to twice as long: half of a wait with equal jitter is sure.
fn backoff(reader: &mut Reader, at: &At<'_>) -> Option<Backoff> {
    let least_ms = reader.gep2257_ms(at)?;
    if HOUR_MS < least_ms.saturating_mul(2) {
        reader.leave(at, "a policy allows at most 30m");
    }
    let base_ms = least_ms.saturating_mul(2).min(HOUR_MS);
    Some(Backoff {
        base_ms,
        max_ms: base_ms.saturating_mul(MAX_IN_BASES).clamp(1, DAY_MS),
        multiplier_thousandths: 2_000,
        jitter: Jitter::Equal,
    })
}

/// Whether an attempt times out by itself. No timeout can be said.
pub(super) fn timeouts(reader: &mut Reader, at: At<'_>) -> bool {
    let mut fields = reader.fields(at);
    let mut timeout = |key: &str, why: &str| {
        let at = fields.take(key)?;
        let ms = reader.gep2257_ms(&at)?;
        // 0s stands for none.
        if 0 < ms {
            reader.leave(&at, why);
        }
        Some((at, ms))
    };
    let call = timeout("request", "a policy has no timeouts: the caller's own deadline holds");
    let attempt = timeout(
        "backendRequest",
        "a policy has no timeouts: an attempt ends when its caller says so",
    );
    if let (Some((_, call_ms @ 1..)), Some((at, attempt_ms))) = (&call, &attempt)
        && call_ms < attempt_ms
    {
        reader.refuse(at, "must not be above `request`");
    }
    reader.leave_rest(fields, |_| "retryd does not know this key");
    attempt.is_some_and(|(_, ms)| 0 < ms)
}
