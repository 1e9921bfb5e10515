//! One `retryPolicy` of gRFC A6, as rules.
use super::super::at::{At, Fields};
use super::super::reader::Reader;
use super::super::{NOTHING, no_retries};
use crate::engine::{
    Backoff, Categories, Category, Failure, GrpcCode, GrpcCodes, Jitter, Judged, RetryOn, Rules,
    Statuses,
};
use crate::policy::quoted;

/// What gRPC takes more for, unless a client raised it.
const ATTEMPTS_MAX: u64 = 5;
const ATTEMPTS: &str = "gRPC takes more than 5 `maxAttempts` for 5, and so does the policy";

const HOUR_MS: u64 = 3_600_000;
const DAY_MS: u64 = 24 * HOUR_MS;
const MULTIPLIER_THOUSANDTHS: std::ops::RangeInclusive<u64> = 1_000..=100_000;

/// What gRPC's libraries call UNAVAILABLE, and the kits tell apart.
const UNAVAILABLE: Categories = Categories::of(&[
    Category::NameResolution,
    Category::Connect,
    Category::TlsHandshake,
    Category::StreamRefused,
    Category::ConnectionReset,
]);

/// What a `methodConfig` says of retries.
#[derive(Clone)]
pub(super) enum Retries {
    None,
    By(Box<Rules>),
}

pub(super) fn retries(reader: &mut Reader, fields: &mut Fields<'_>) -> Retries {
    let (policy, hedging) = (fields.take("retryPolicy"), fields.take("hedgingPolicy"));
    if let Some(hedging) = &hedging {
        match &policy {
            Some(_) => {
                reader.refuse(hedging, "stands beside a `retryPolicy`: one excludes the other")
            }
            None => reader.leave(
                hedging,
                "a policy is asked after a failure and cannot hedge: these calls are not repeated",
            ),
        }
    }
    policy.map_or(Retries::None, |at| Retries::By(Box::new(rules(reader, at))))
}

fn rules(reader: &mut Reader, at: At<'_>) -> Rules {
    let mut fields = reader.fields(at);
    let attempts = fields.need(reader, "maxAttempts");
    let attempts = attempts.and_then(|at| reader.whole(&at, 2, u64::from(u32::MAX)));
    if attempts.is_some_and(|attempts| ATTEMPTS_MAX < attempts) {
        reader.note(ATTEMPTS);
    }
    let base = fields.need(reader, "initialBackoff");
    let base_ms = base.and_then(|at| reader.positive_ms(&at, HOUR_MS));
    let max = fields.need(reader, "maxBackoff");
    let max_ms = max.and_then(|at| reader.positive_ms(&at, DAY_MS));
    let multiplier = fields.need(reader, "backoffMultiplier");
    let multiplier = multiplier.and_then(|at| multiplier_thousandths(reader, &at));
    let codes = fields.need(reader, "retryableStatusCodes");
    let retry_on = codes.map(|at| retry_on(reader, &at));
    reader.leave_rest(fields, |key| match key {
        "perAttemptRecvTimeout" => {
            "a policy has no timeouts: an attempt ends when its caller says so"
        }
        _ => "retryd does not know this key",
    });

    let (Some(attempts), Some(base_ms), Some(max_ms), Some(multiplier), Some(retry_on)) =
        (attempts, base_ms, max_ms, multiplier, retry_on)
    else {
        // Something is wrong and told: nobody goes by this.
        return no_retries();
    };
    Rules {
        attempts_max: u32::try_from(attempts.min(ATTEMPTS_MAX)).unwrap_or(1),
        // gRPC begins an attempt as long as any time is left, and waits as long as the server says.
        min_attempt_budget_ms: 0,
        hint_ms_max: DAY_MS,
        // A first wait above the maximum is the maximum.
        backoff: Backoff {
            base_ms: base_ms.min(max_ms),
            max_ms,
            multiplier_thousandths: multiplier,
            jitter: Jitter::Equal,
        },
        retry_on,
        ..Rules::default()
    }
}

fn multiplier_thousandths(reader: &mut Reader, at: &At<'_>) -> Option<u32> {
    let (thousandths, cut) = reader.thousandths(at)?;
    let (min, max) = MULTIPLIER_THOUSANDTHS.into_inner();
    if thousandths < min {
        reader.leave(at, "waits of a policy do not shrink: 1 in its place");
    } else if max < thousandths {
        reader.leave(at, "a policy allows at most 100");
    } else if cut {
        reader.leave(at, "a policy has three decimals: the others are cut off");
    }
    u32::try_from(thousandths.clamp(min, max)).ok()
}

fn retry_on(reader: &mut Reader, at: &At<'_>) -> RetryOn {
    let listed = reader.items(at);
    if listed.is_empty() {
        reader.refuse(at, "must list a status");
    }
    let mut grpc = GrpcCodes::default();
    for at in &listed {
        match code(reader, at) {
            None => {}
            Some(code) if is_permanent(code) => {
                reader
                    .leave(at, format!("retryd never repeats {}: no repeat heals it", code.name()));
            }
            Some(code) => {
                if code == GrpcCode::ResourceExhausted {
                    reader.leave(
                        at,
                        "retryd repeats RESOURCE_EXHAUSTED only if the server said when: without that \
                         it may mean that a message is too large or a quota is gone",
                    );
                }
                grpc = grpc.with(code);
            }
        }
    }
    let unavailable = grpc.contains(GrpcCode::Unavailable);
    RetryOn {
        statuses: Statuses { grpc, ..NOTHING.statuses },
        categories: if unavailable { UNAVAILABLE } else { NOTHING.categories },
    }
}

/// A status by its number, or by its name in any case.
fn code(reader: &mut Reader, at: &At<'_>) -> Option<GrpcCode> {
    let is_number = at.text().is_none();
    let number = if is_number { Some(reader.whole(at, 0, 16)?) } else { None };
    let name = at.text().unwrap_or_default();
    if number == Some(0) || name.eq_ignore_ascii_case("OK") {
        reader.leave(at, "OK is no failure");
        return None;
    }
    let is_meant = |code: &GrpcCode| match number {
        Some(number) => u64::from(*code as u8) == number,
        // The libraries take both spellings.
        None => {
            code.name().eq_ignore_ascii_case(name)
                || name.eq_ignore_ascii_case("CANCELED") && *code == GrpcCode::Cancelled
        }
    };
    let code = GrpcCode::ALL.into_iter().find(is_meant);
    if code.is_none() {
        reader.refuse(at, format_args!("is no status of gRPC: {}", quoted(name)));
    }
    code
}

fn is_permanent(code: GrpcCode) -> bool {
    Judged::by(&Rules::default(), Failure::Grpc(code)).is_permanent()
}
