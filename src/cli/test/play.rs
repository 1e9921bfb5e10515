//! Plays one case: what happened before, then the question.
use std::sync::Arc;

use super::expect::Difference;
use super::load::{Case, Doing, Step};
use crate::budget::Memory;
use crate::cli::offline::offline;
use crate::clock::{Clock, Dice};
use crate::policy::Policies;
use crate::service::Retryd;
use crate::wire::pb;
use crate::wire::refusal::Refusal;

/// What came of a case.
#[derive(Debug)]
pub(super) struct Outcome {
    /// None: the case has passed.
    pub(super) differences: Vec<Difference>,
    /// Of a no, the rule that objected and what it looked at.
    pub(super) objection: Option<pb::Step>,
}

/// Plays `case` from fresh budgets.
pub(super) fn play(policies: &Arc<Policies>, case: &Case) -> Outcome {
    let clock = Clock::standing_at(case.now);
    let retryd = offline(Policies::clone(policies), clock.clone(), Dice::loaded(case.draw));
    let mut differences: Vec<Difference> = Vec::new();
    for (place, step) in case.before.iter().enumerate() {
        let title = format!("before[{place}] (line {})", step.line);
        differences.extend(play_step(&retryd, &clock, step, &title));
    }
    let mut objection = None;
    match ask(&retryd, &case.context) {
        Ok(answer) => {
            differences.extend(case.expect.differences(&answer.decision));
            objection = answer.objection;
        }
        Err(refusal) => differences.push(no_answer(&refusal)),
    }
    Outcome { differences, objection }
}

/// Repeats a step. Of its answers, the first that differs is told.
fn play_step(retryd: &Retryd<Memory>, clock: &Clock, step: &Step, title: &str) -> Vec<Difference> {
    let mut differences = Vec::new();
    let mut granted = 0;
    for turn in 1..=step.repeat {
        let mut differs = match &step.doing {
            Doing::Ask(context) => match ask(retryd, context) {
                Ok(Answer { decision, .. }) => {
                    granted += u32::from(decision.verdict() == pb::Verdict::Retry);
                    step.expect.as_ref().map(|expect| expect.differences(&decision))
                }
                Err(refusal) => Some(vec![no_answer(&refusal)]),
            },
            Doing::Report(usage) => match report(retryd, usage) {
                Ok(result) => step.expect.as_ref().map(|expect| expect.differences(&result)),
                Err(refusal) => Some(vec![no_answer(&refusal)]),
            },
            Doing::Advance(by) => {
                clock.advance(*by);
                None
            }
        }
        .unwrap_or_default();
        if differences.is_empty() {
            let time = if 1 < step.repeat { format!(", time {turn}") } else { String::new() };
            for difference in &mut differs {
                difference.path = format!("{title}{time}: {}", difference.path);
            }
            differences = differs;
        }
    }
    if let Some(wanted) = step.granted.filter(|wanted| *wanted != granted) {
        differences.push(Difference {
            path: format!("{title}: granted"),
            expected: wanted.to_string(),
            got: granted.to_string(),
        });
    }
    differences
}

struct Answer {
    decision: pb::Decision,
    objection: Option<pb::Step>,
}

/// Asks with an explanation, and keeps it apart if the context does not ask for one.
fn ask(retryd: &Retryd<Memory>, context: &pb::RetryContext) -> Result<Answer, Refusal> {
    let explained = pb::RetryContext { explain: true, ..context.clone() };
    let mut decision = retryd.decide(&explained)?;
    let objection = decision.steps.last().filter(|step| step.objected).cloned();
    if !context.explain {
        decision.steps.clear();
        decision.detail.clear();
    }
    Ok(Answer { decision, objection })
}

fn report(retryd: &Retryd<Memory>, usage: &pb::TenantUsage) -> Result<pb::UsageResult, Refusal> {
    let usage = vec![usage.clone()];
    let request = pb::ReportUsageRequest { usage, report_id: String::new() };
    Ok(retryd.report_usage(&request)?.results.into_iter().next().unwrap_or_default())
}

/// Contexts and reports were checked; only what stops a service is left.
fn no_answer(refusal: &Refusal) -> Difference {
    Difference {
        path: "answer".to_owned(),
        expected: "one".to_owned(),
        got: refusal.reason().name().to_owned(),
    }
}
