//! Checks the budgets of a policy file.
use std::{collections::HashMap, ops::RangeInclusive};

use super::{
    BUDGETS_MAX, file,
    read::Reader,
    rejected::{Place, quoted},
    yaml::{Scalar, place},
};
use crate::budget::{Budget, Limits, OnStoreLoss, Scope, bucket, ratio, throttle};

const SECOND_MS: u64 = 1_000;
const HOUR_MS: u64 = 3_600_000;
const CAPACITY_MAX: u32 = 1_000_000;

/// The budgets, in the file's order.
pub(super) fn budgets(reader: &mut Reader<'_>, written: &[file::Budget]) -> Vec<Budget> {
    if let Some(budget) = written.get(BUDGETS_MAX) {
        let message = format!("there are more than {BUDGETS_MAX} budgets");
        reader.refuse(place(&budget.name), message);
    }
    let mut lines = HashMap::new();
    let checked = written.iter().take(BUDGETS_MAX).map(|written| {
        let budget = budget(reader, written);
        let at = place(&written.name);
        if let Some(line) = lines.insert(budget.name.clone(), at.line) {
            let name = quoted(&budget.name);
            let message = format!("the budget {name} stands on line {line} already");
            reader.refuse(at, message);
        }
        budget
    });
    checked.collect()
}

fn budget(reader: &mut Reader<'_>, written: &file::Budget) -> Budget {
    Budget {
        name: reader.name(&written.name).into(),
        scope: reader.word("scope", Some(&written.scope), &SCOPES, Scope::Tenant),
        limits: limits(reader, written),
        on_store_loss: reader.word(
            "on_store_loss",
            written.on_store_loss.as_ref(),
            &[("local_share", OnStoreLoss::LocalShare), ("deny", OnStoreLoss::Deny)],
            OnStoreLoss::default(),
        ),
    }
}

const SCOPES: [(&str, Scope); 4] = [
    ("tenant", Scope::Tenant),
    ("tenant_operation", Scope::TenantOperation),
    ("operation", Scope::Operation),
    ("global", Scope::Global),
];

fn limits(reader: &mut Reader<'_>, written: &file::Budget) -> Limits {
    let file::Budget { ratio, throttle, token_bucket, .. } = written;
    let models =
        [ratio.as_ref().map(place), throttle.as_ref().map(place), token_bucket.as_ref().map(place)];
    if let Some(second) = models.into_iter().flatten().nth(1) {
        let message = "a budget has one model: ratio, throttle or token_bucket".to_owned();
        reader.refuse(second, message);
    }
    // Each model that is there is checked, so that a second one does not hide errors.
    let throttle = throttle.as_ref().map(|written| throttle_limits(reader, &written.value));
    let bucket = token_bucket.as_ref().map(|written| bucket_limits(reader, &written.value));
    let ratio = ratio.as_ref().map(|written| ratio_limits(reader, &written.value));
    let model = throttle.map(Limits::Throttle).or(bucket.map(Limits::TokenBucket));
    model.or(ratio.map(Limits::Ratio)).unwrap_or_else(|| {
        // The default model, with its default sizes.
        Limits::Ratio(ratio_limits(reader, &file::Ratio::default()))
    })
}

fn ratio_limits(reader: &mut Reader<'_>, written: &file::Ratio) -> ratio::Limits {
    let floor = &written.min_retry_rate;
    let seconds_to_hours = SECOND_MS..=HOUR_MS;
    ratio::Limits {
        percent: reader.whole("ratio.percent", written.percent.as_ref(), 0..=1_000, 20),
        interval_ms: reader.duration_ms(
            "ratio.interval",
            written.interval.as_ref(),
            seconds_to_hours.clone(),
            10_000,
        ),
        floor: ratio::Floor {
            count: reader.whole("min_retry_rate.count", floor.count.as_ref(), 0..=1_000_000, 10),
            interval_ms: reader.duration_ms(
                "min_retry_rate.interval",
                floor.interval.as_ref(),
                seconds_to_hours,
                1_000,
            ),
        },
    }
}

fn throttle_limits(reader: &mut Reader<'_>, written: &file::Throttle) -> throttle::Limits {
    throttle::Limits {
        tokens_max: reader.whole("throttle.max_tokens", Some(&written.max_tokens), 3..=1_000, 3),
        token_ratio_thousandths: token_ratio(reader, &written.token_ratio),
    }
}

/// Decimals after the third are dropped, as gRFC A6 has it.
fn token_ratio(reader: &mut Reader<'_>, written: &Scalar) -> u32 {
    const RANGE: RangeInclusive<u32> = 1..=1_000_000;
    let ratio = reader.thousandths(written).and_then(|ratio| u32::try_from(ratio.value).ok());
    match ratio {
        Some(ratio) if RANGE.contains(&ratio) => ratio,
        _ => {
            let shown = reader.shown(written);
            let message =
                format!("`throttle.token_ratio` must be a decimal from 0.001 to 1000, not {shown}");
            reader.refuse(place(written), message);
            *RANGE.start()
        }
    }
}

fn bucket_limits(reader: &mut Reader<'_>, written: &file::TokenBucket) -> bucket::Limits {
    let before = reader.problems.len();
    let key = "token_bucket.capacity";
    let capacity = reader.whole(key, written.capacity.as_ref(), 1..=CAPACITY_MAX, 500);
    let capacity_is_sound = reader.problems.len() == before;
    let cost_max = if capacity_is_sound { capacity } else { CAPACITY_MAX };
    let costs = match &written.costs {
        None => bucket::Costs::AWS_2026,
        Some(costs) => match &costs.value {
            file::Costs::Named(name) => named_costs(reader, place(costs), name),
            file::Costs::Each(each) => each_cost(reader, each, cost_max),
        },
    };
    let highest = costs.largest();
    if let Some(written) = written.capacity.as_ref().filter(|_| cost_max < highest) {
        let message = format!("`{key}` must cover the highest cost, which is {highest}");
        reader.refuse(place(written), message);
    }
    bucket::Limits { capacity, costs }
}

fn named_costs(reader: &mut Reader<'_>, at: Place, name: &str) -> bucket::Costs {
    match name {
        "aws-2026" => bucket::Costs::AWS_2026,
        "aws-legacy" => bucket::Costs::AWS_LEGACY,
        _ => {
            let message = format!(
                "`token_bucket.costs` must be aws-2026, aws-legacy or all of transient, throttling \
                 and timeout, not the text {}",
                quoted(name)
            );
            reader.refuse(at, message);
            bucket::Costs::AWS_2026
        }
    }
}

/// A cost that is out of range is told as such, and not once more as one above the capacity.
fn each_cost(reader: &mut Reader<'_>, written: &file::EachCost, cost_max: u32) -> bucket::Costs {
    let mut cost = |key, written| reader.whole(key, Some(written), 1..=cost_max, 1);
    bucket::Costs {
        transient: cost("costs.transient", &written.transient),
        throttling: cost("costs.throttling", &written.throttling),
        timeout: cost("costs.timeout", &written.timeout),
    }
}
