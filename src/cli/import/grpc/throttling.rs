//! `retryThrottling` of gRFC A6, as a budget.
use super::super::at::At;
use super::super::reader::Reader;
use crate::budget::{Budget, Limits, OnStoreLoss, Scope, throttle};

const TOKENS_MAX: u64 = 1_000;
/// With less, a first failure leaves no more than half.
const TOKENS_GRANTING_MIN: u64 = 3;
/// More adds no more: it fills the largest throttle at once.
const RATIO_THOUSANDTHS_MAX: u64 = 1_000_000;

const NEVER_GRANTS: &str =
    "a throttle of less than 3 tokens never grants a retry: no policy has any";
const SCOPE: &str = "gRPC keeps one throttle for each client process and server name; here one is kept \
    for each tenant, all of whose callers fill and drain it together, over all policies that name it";
const NOT_SENT: &str = "failures that were never sent count in a throttle, which gRPC's transparent \
    retries do not";

/// What is left of a throttle.
pub(super) enum Throttle {
    Granting(Budget),
    /// Too small, or wrong.
    Never,
}

impl Throttle {
    pub(super) fn grants(&self) -> bool {
        matches!(self, Throttle::Granting(_))
    }

    pub(super) fn budget(self) -> Option<Budget> {
        match self {
            Throttle::Granting(budget) => Some(budget),
            Throttle::Never => None,
        }
    }
}

pub(super) fn read(reader: &mut Reader, at: At<'_>) -> Throttle {
    let mut fields = reader.fields(at);
    let tokens = fields.need(reader, "maxTokens");
    let tokens = tokens.and_then(|at| reader.whole(&at, 1, TOKENS_MAX));
    let ratio = fields.need(reader, "tokenRatio");
    let ratio = ratio.and_then(|at| token_ratio(reader, &at));
    reader.leave_rest(fields, |_| "retryd does not know this key");
    let (Some(tokens), Some(ratio)) = (tokens, ratio) else { return Throttle::Never };
    if tokens < TOKENS_GRANTING_MIN {
        reader.note(NEVER_GRANTS);
        return Throttle::Never;
    }
    Throttle::Granting(Budget {
        name: "grpc-throttle".into(),
        scope: Scope::Tenant,
        limits: Limits::Throttle(throttle::Limits {
            tokens_max: u32::try_from(tokens).unwrap_or(u32::MAX),
            token_ratio_thousandths: ratio,
        }),
        on_store_loss: OnStoreLoss::default(),
    })
}

/// What differs for every throttle.
pub(super) fn note(reader: &mut Reader) {
    reader.note(SCOPE);
    reader.note(NOT_SENT);
}

/// Decimals after the third are dropped, as gRFC A6 has it.
fn token_ratio(reader: &mut Reader, at: &At<'_>) -> Option<u32> {
    let (thousandths, _) = reader.thousandths(at)?;
    if thousandths == 0 {
        reader.refuse(at, "must be at least 0.001: gRPC drops further decimals");
        return None;
    }
    u32::try_from(thousandths.min(RATIO_THOUSANDTHS_MAX)).ok()
}
