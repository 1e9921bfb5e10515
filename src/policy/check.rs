//! Checks the values of a policy file, and tells every error at once.
use std::collections::HashMap;

use super::{
    Caller, Mode, POLICIES_MAX, Pattern, Policies, Policy, budgets, decimal,
    file::{self, File},
    read::Reader,
    rejected::{Problem, quoted},
    retry_on,
    warning::warnings,
    yaml::{Scalar, place},
};
use crate::{
    budget::{Budget, BudgetId, PAYERS_MAX, Payers},
    engine::{Backoff, Jitter, Rules},
};

const HOUR_MS: u64 = 3_600_000;
const DAY_MS: u64 = 24 * HOUR_MS;

/// The policies of `file`, which was read from `source`.
pub(super) fn check(
    source: &str,
    file: &File,
    revision: Box<str>,
) -> Result<Policies, Vec<Problem>> {
    let mut reader = Reader::new(source);
    version(&mut reader, &file.version);
    let budgets = budgets::budgets(&mut reader, &file.budgets);
    let mut policies = policies(&mut reader, &file.policies.value, &budgets);
    let callers = file.callers.as_ref().map(|callers| {
        callers.iter().filter_map(|caller| self::caller(&mut reader, caller)).collect()
    });
    let operators = file
        .operators
        .iter()
        .filter_map(|operator| reader.pattern("operators", operator))
        .collect();

    let warnings = warnings(&budgets, &policies);
    let Some(last) = policies.pop() else {
        let message = "`policies` is empty: the last policy must match everything".to_owned();
        reader.refuse(place(&file.policies), message);
        return Err(reader.problems);
    };
    if !reader.problems.is_empty() {
        return Err(reader.problems);
    }
    Ok(Policies {
        earlier: policies.into(),
        last,
        budgets: budgets.into(),
        callers,
        operators,
        warnings,
        revision,
    })
}

fn version(reader: &mut Reader<'_>, written: &Scalar) {
    if reader.literal(written) != Some("1") {
        let shown = reader.shown(written);
        reader.refuse(place(written), format!("`version` must be 1, not {shown}"));
    }
}

fn policies(reader: &mut Reader<'_>, written: &[file::Policy], budgets: &[Budget]) -> Vec<Policy> {
    if let Some(policy) = written.get(POLICIES_MAX) {
        let message = format!("there are more than {POLICIES_MAX} policies");
        reader.refuse(place(&policy.name), message);
    }
    // Of two budgets of one name, which is an error of its own, the last is meant.
    let ids: HashMap<&str, BudgetId> =
        budgets.iter().enumerate().map(|(at, budget)| (&*budget.name, BudgetId(at))).collect();
    let mut lines: HashMap<Box<str>, usize> = HashMap::new();
    // A policy whose patterns are broken covers nothing, and is not covered.
    let mut patterns_sound = Vec::new();
    let mut policies: Vec<Policy> = Vec::new();
    for written in written.iter().take(POLICIES_MAX) {
        let name = reader.name(&written.name);
        let at = place(&written.name);
        if let Some(line) = lines.insert(name.into(), at.line) {
            let message = format!("the policy {} stands on line {line} already", quoted(name));
            reader.refuse(at, message);
        }
        let tenant = pattern(reader, "match.tenant", written.matching.tenant.as_ref());
        let operation = pattern(reader, "match.operation", written.matching.operation.as_ref());
        patterns_sound.push(tenant.is_some() && operation.is_some());
        policies.push(Policy {
            name: name.into(),
            tenant: tenant.unwrap_or_else(Pattern::everything),
            operation: operation.unwrap_or_else(Pattern::everything),
            rules: rules(reader, written),
            payers: payers(reader, &written.budgets, budgets, &ids),
            mode: reader.word(
                "mode",
                written.mode.as_ref(),
                &[("enforce", Mode::Enforce), ("shadow", Mode::Shadow)],
                Mode::default(),
            ),
        });
    }
    reachable(reader, written, &policies, &patterns_sound);
    policies
}

fn pattern(reader: &mut Reader<'_>, key: &str, written: Option<&Scalar>) -> Option<Pattern> {
    written.map_or_else(|| Some(Pattern::everything()), |written| reader.pattern(key, written))
}

/// Every policy can be reached, and the last one by everything.
fn reachable(
    reader: &mut Reader<'_>,
    written: &[file::Policy],
    policies: &[Policy],
    patterns_sound: &[bool],
) {
    let mut earlier: Vec<&Policy> = Vec::new();
    for ((policy, written), sound) in policies.iter().zip(written).zip(patterns_sound) {
        if !sound {
            continue;
        }
        if let Some(first) = earlier.iter().find(|earlier| earlier.covers(policy)) {
            let message = format!(
                "policy {} is unreachable: {} above it matches all that it matches",
                quoted(&policy.name),
                quoted(&first.name)
            );
            reader.refuse(place(&written.name), message);
        }
        earlier.push(policy);
    }
    let (Some(last), Some(true)) = (policies.last(), patterns_sound.last()) else { return };
    if !(last.tenant.is_everything() && last.operation.is_everything()) {
        let message = format!("the last policy, {}, must match everything", quoted(&last.name));
        if let Some(written) = written.get(policies.len().saturating_sub(1)) {
            reader.refuse(place(&written.name), message);
        }
    }
}

fn rules(reader: &mut Reader<'_>, written: &file::Policy) -> Rules {
    let default = Rules::default();
    Rules {
        attempts_max: reader.whole(
            "max_attempts",
            written.max_attempts.as_ref(),
            1..=1_000,
            default.attempts_max,
        ),
        min_attempt_budget_ms: reader.duration_ms(
            "min_attempt_budget",
            written.min_attempt_budget.as_ref(),
            0..=HOUR_MS,
            default.min_attempt_budget_ms,
        ),
        backoff: backoff(reader, &written.backoff, default.backoff),
        hint_ms_max: reader.duration_ms(
            "max_hint",
            written.max_hint.as_ref(),
            0..=DAY_MS,
            default.hint_ms_max,
        ),
        retry_on: retry_on::retry_on(reader, &written.retry_on),
        refusal_statuses: retry_on::refusal_statuses(reader, &written.refusal_statuses),
    }
}

fn backoff(reader: &mut Reader<'_>, written: &file::Backoff, default: Backoff) -> Backoff {
    let before = reader.problems.len();
    let (base, max) = (written.base.as_ref(), written.max.as_ref());
    let base_ms = reader.duration_ms("backoff.base", base, 0..=HOUR_MS, default.base_ms);
    let max_ms = reader.duration_ms("backoff.max", max, 1..=DAY_MS, default.max_ms);
    // Where one of the two is wrong, it is not known what was meant.
    let both_sound = reader.problems.len() == before;
    if let Some(written) = max.or(base).filter(|_| both_sound && max_ms < base_ms) {
        let defaulted = if max.is_none() { ", 5s by default," } else { "" };
        let message = format!("`backoff.max`{defaulted} must not be below `backoff.base`");
        reader.refuse(place(written), message);
    }
    Backoff {
        base_ms,
        max_ms,
        multiplier_thousandths: multiplier(reader, written.multiplier.as_ref())
            .unwrap_or(default.multiplier_thousandths),
        jitter: reader.word(
            "backoff.jitter",
            written.jitter.as_ref(),
            &[("none", Jitter::None), ("full", Jitter::Full), ("equal", Jitter::Equal)],
            default.jitter,
        ),
    }
}

fn multiplier(reader: &mut Reader<'_>, written: Option<&Scalar>) -> Option<u32> {
    let written = written?;
    let exact = reader.thousandths(written).filter(|multiplier| !multiplier.cut);
    let thousandths = exact.and_then(|multiplier: decimal::Thousandths| {
        u32::try_from(multiplier.value).ok().filter(|value| (1_000..=100_000).contains(value))
    });
    if thousandths.is_none() {
        let shown = reader.shown(written);
        let message = format!(
            "`backoff.multiplier` must be a decimal from 1 to 100 of at most three decimals, not \
             {shown}"
        );
        reader.refuse(place(written), message);
    }
    thousandths
}

fn payers(
    reader: &mut Reader<'_>,
    written: &[Scalar],
    budgets: &[Budget],
    ids: &HashMap<&str, BudgetId>,
) -> Payers {
    if let Some(ninth) = written.get(PAYERS_MAX) {
        let message = format!("a policy names at most {PAYERS_MAX} budgets");
        reader.refuse(place(ninth), message);
    }
    let mut paying: Vec<BudgetId> = Vec::new();
    for written in written.iter().take(PAYERS_MAX) {
        let Some(name) = reader.text("budgets", written) else { continue };
        match ids.get(name) {
            Some(id) if paying.contains(id) => {
                let message = format!("the policy names the budget {} a second time", quoted(name));
                reader.refuse(place(written), message);
            }
            Some(id) => paying.push(*id),
            None => {
                let known: Vec<&str> = budgets.iter().map(|budget| &*budget.name).collect();
                let guess = reader.guess(name, &known);
                let message = format!("no budget is called {}{guess}", quoted(name));
                reader.refuse(place(written), message);
            }
        }
    }
    // Never `None`: every id is a place in `budgets`, and there are at most as many as may pay.
    Payers::new(&paying, budgets).unwrap_or_default()
}

fn caller(reader: &mut Reader<'_>, written: &file::Caller) -> Option<Caller> {
    let identity = reader.pattern("identity", &written.identity);
    let tenants =
        written.tenants.iter().filter_map(|tenant| reader.pattern("tenants", tenant)).collect();
    Some(Caller { identity: identity?, tenants })
}
