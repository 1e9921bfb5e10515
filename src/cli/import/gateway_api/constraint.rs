//! `retryConstraint` of a BackendTrafficPolicy (GEP-3388), as budgets.
use std::collections::HashMap;

use super::super::at::At;
use super::super::names::Names;
use super::super::reader::Reader;
use super::object::{Backend, Object};
use crate::budget::{Budget, BudgetId, Limits, OnStoreLoss, Scope, ratio};

const SECOND_MS: u64 = 1_000;
const HOUR_MS: u64 = 3_600_000;
const COUNT_MAX: u64 = 1_000_000;

/// What stands in for absent keys, by the CRD.
const PERCENT: u64 = 20;
const INTERVAL_MS: u64 = 10_000;
const FLOOR_COUNT: u64 = 10;
const FLOOR_INTERVAL_MS: u64 = 1_000;

const SCOPE: &str = "gateways count each for itself what goes to a backend; here all callers of the policies \
    that name its budget share one, and what callers do not report (`ReportUsage`, or `usage` in a context) \
    earns no retries";
const HALF_A_FLOOR: &str =
    "of a `minRetryRate` that lacks its `count` or `interval`, 10 or 1s stands in";
const UNNAMED: &str =
    "no policy names its budget: no route of the file leads there, or one with too many others";

/// The budgets, one for each backend, and which of them a policy names.
#[derive(Default)]
pub(super) struct Constraints<'a> {
    pub(super) budgets: Vec<Budget>,
    of: HashMap<Backend<'a>, BudgetId>,
    /// Of each budget, in their order.
    targets: Vec<Target<'a>>,
    names: Names,
}

struct Target<'a> {
    at: At<'a>,
    is_named: bool,
}

impl<'a> Constraints<'a> {
    pub(super) fn read(&mut self, reader: &mut Reader, object: Object<'a>) {
        let mut fields = reader.fields(object.spec);
        let targets = fields.need(reader, "targetRefs");
        let targets = targets.map(|at| reader.items(&at)).unwrap_or_default();
        let limits = fields.take("retryConstraint").map(|at| limits(reader, at));
        reader.leave_rest(fields, |key| match key {
            "sessionPersistence" => "which endpoint gets a request is no matter of a policy",
            _ => "retryd does not know this key",
        });
        for at in targets {
            let mut fields = reader.fields(at.clone());
            let backend = Backend::of_policy(reader, &mut fields, object.namespace);
            reader.leave_rest(fields, |_| "retryd does not know this key");
            match (backend, limits) {
                (Some(_), None) => reader.leave(&at, "there is no `retryConstraint` for it"),
                (Some(backend), Some(limits)) => self.add(reader, at, backend, limits),
                (None, _) => {}
            }
        }
        if limits.is_some() {
            reader.note(SCOPE);
        }
    }

    fn add(
        &mut self,
        reader: &mut Reader,
        at: At<'a>,
        backend: Backend<'a>,
        limits: ratio::Limits,
    ) {
        if self.of.contains_key(&backend) {
            let why =
                "it has a `retryConstraint` above: of two, Gateway API takes the older policy";
            return reader.leave(&at, why);
        }
        self.of.insert(backend, BudgetId(self.budgets.len()));
        self.targets.push(Target { at, is_named: false });
        self.budgets.push(Budget {
            name: self.names.name(backend.name),
            scope: Scope::Global,
            limits: Limits::Ratio(limits),
            on_store_loss: OnStoreLoss::default(),
        });
    }

    /// The budget of a backend.
    pub(super) fn of(&self, backend: &Backend<'a>) -> Option<BudgetId> {
        self.of.get(backend).copied()
    }

    /// A policy names these.
    pub(super) fn name(&mut self, ids: &[BudgetId]) {
        for id in ids {
            if let Some(target) = self.targets.get_mut(id.0) {
                target.is_named = true;
            }
        }
    }

    /// Lists the targets whose budget no policy names.
    pub(super) fn tell_unnamed(&self, reader: &mut Reader) {
        for target in self.targets.iter().filter(|target| !target.is_named) {
            reader.leave(&target.at, UNNAMED);
        }
    }
}

fn limits(reader: &mut Reader, at: At<'_>) -> ratio::Limits {
    let mut fields = reader.fields(at);
    let (mut percent, mut interval_ms) = (PERCENT, INTERVAL_MS);
    if let Some(at) = fields.take("budget") {
        let mut fields = reader.fields(at);
        if let Some(at) = fields.take("percent") {
            percent = reader.whole(&at, 0, 100).unwrap_or(PERCENT);
        }
        if let Some(at) = fields.take("interval") {
            interval_ms = interval(reader, &at, SECOND_MS, "1s").unwrap_or(INTERVAL_MS);
        }
        reader.leave_rest(fields, |_| "retryd does not know this key");
    }
    let floor = fields.take("minRetryRate").map(|at| floor(reader, at));
    reader.leave_rest(fields, |_| "retryd does not know this key");
    ratio::Limits {
        percent: small(percent),
        interval_ms,
        floor: floor
            .unwrap_or(ratio::Floor { count: small(FLOOR_COUNT), interval_ms: FLOOR_INTERVAL_MS }),
    }
}

fn floor(reader: &mut Reader, at: At<'_>) -> ratio::Floor {
    let mut fields = reader.fields(at);
    let (count, time) = (fields.take("count"), fields.take("interval"));
    if count.is_none() || time.is_none() {
        reader.note(HALF_A_FLOOR);
    }
    let count = count.map_or(Some(FLOOR_COUNT), |at| reader.whole(&at, 1, COUNT_MAX));
    let interval_ms = match time {
        None => FLOOR_INTERVAL_MS,
        Some(at) => {
            let ms = interval(reader, &at, 1, "1ms").unwrap_or(FLOOR_INTERVAL_MS);
            if ms < SECOND_MS {
                reader.leave(&at, "a policy counts by seconds at least: 1s in its place");
            }
            ms.max(SECOND_MS)
        }
    };
    reader.leave_rest(fields, |_| "retryd does not know this key");
    ratio::Floor { count: small(count.unwrap_or(FLOOR_COUNT)), interval_ms }
}

/// A duration up to an hour, the longest that the CRD takes.
fn interval(reader: &mut Reader, at: &At<'_>, min_ms: u64, min: &str) -> Option<u64> {
    let ms = reader.gep2257_ms(at)?;
    if !(min_ms..=HOUR_MS).contains(&ms) {
        reader.refuse(at, format_args!("must be from {min} to 1h"));
        return None;
    }
    Some(ms)
}

/// Its range was checked.
fn small(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
