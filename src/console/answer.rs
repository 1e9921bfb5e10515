//! A decision as its page shows it: every rule, in the order of asking.
use super::shown;
use crate::engine::Rule;
use crate::policy::Gep2257;
use crate::wire::pb;

/// What became of one question.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) is_retry: bool,
    pub(super) reason: String,
    pub(super) detail: String,
    pub(super) delay: Option<Delay>,
    pub(super) policy: String,
    pub(super) revision: String,
    pub(super) is_shadow: bool,
    pub(super) is_degraded: bool,
    pub(super) failure_class: String,
    pub(super) rows: Vec<Row>,
    pub(super) tenant: String,
    pub(super) operation: String,
    /// The budgets that pay, in the policy's order.
    pub(super) budgets: Vec<pb::BudgetState>,
}

#[derive(Debug)]
pub(super) struct Delay {
    pub(super) time: String,
    pub(super) source: String,
}

/// One rule, and what became of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) rule: String,
    pub(super) saw: String,
    pub(super) answer: &'static str,
    /// The class of the row in the style.
    pub(super) mark: &'static str,
}

impl Answer {
    pub(super) fn new(
        context: &pb::RetryContext,
        decision: pb::Decision,
        budgets: Vec<pb::BudgetState>,
    ) -> Answer {
        let is_retry = decision.verdict() == pb::Verdict::Retry;
        Answer {
            is_retry,
            reason: plain(decision.reason().as_str_name(), "REASON_"),
            delay: decision.delay.as_ref().map(|delay| Delay {
                time: Gep2257(whole_ms(delay)).to_string(),
                source: plain(decision.delay_source().as_str_name(), "DELAY_SOURCE_"),
            }),
            failure_class: plain(decision.failure_class().as_str_name(), "FAILURE_CLASS_"),
            rows: rows(&decision.steps, is_retry),
            detail: decision.detail,
            policy: decision.policy,
            revision: decision.policy_revision,
            is_shadow: decision.shadow,
            is_degraded: decision.degraded,
            tenant: shown::name(&context.tenant),
            operation: shown::name(&context.operation),
            budgets,
        }
    }
}

/// The rules that were asked, then those that were not.
fn rows(steps: &[pb::Step], is_retry: bool) -> Vec<Row> {
    let asked = steps.iter().map(|step| {
        let rule = plain(step.rule().as_str_name(), "REASON_");
        let (answer, mark) = match step.objected {
            true => ("objected", "objected"),
            false if is_retry && rule == Rule::Retryable.name() => ("retry", "retry"),
            false => ("passed", "passed"),
        };
        Row { rule, saw: step.saw.clone(), answer, mark }
    });
    let was_asked = |rule: &Rule| {
        steps.iter().any(|step| plain(step.rule().as_str_name(), "REASON_") == rule.name())
    };
    let rest = Rule::ALL.into_iter().filter(|rule| !was_asked(rule)).map(|rule| Row {
        rule: rule.name().to_owned(),
        saw: String::new(),
        answer: "not asked",
        mark: "unasked",
    });
    asked.chain(rest).collect()
}

/// The name of an enum's value without the prefix that it has on the wire.
fn plain(name: &str, prefix: &str) -> String {
    name.strip_prefix(prefix).unwrap_or(name).to_owned()
}

fn whole_ms(delay: &pbjson_types::Duration) -> u64 {
    let ms = delay.seconds.saturating_mul(1_000).saturating_add(i64::from(delay.nanos / 1_000_000));
    u64::try_from(ms).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(rule: pb::Reason, objected: bool) -> pb::Step {
        pb::Step { rule: rule.into(), saw: "seen".to_owned(), objected }
    }

    #[test]
    fn every_rule_has_a_row_whether_it_was_asked_or_not() {
        let steps =
            [step(pb::Reason::AttemptsExhausted, false), step(pb::Reason::BudgetExhausted, true)];
        let rows = rows(&steps, false);
        let names: Vec<&str> = rows.iter().map(|row| &*row.rule).collect();
        assert_eq!(names, Rule::ALL.map(Rule::name));
        let answers: Vec<&str> = rows.iter().map(|row| row.answer).collect();
        assert_eq!(answers[..3], ["passed", "objected", "not asked"]);
    }

    #[test]
    fn a_rule_that_objects_when_it_is_asked_again_has_a_row_of_its_own() {
        let passed = Rule::ALL.into_iter().filter(|rule| *rule != Rule::Retryable).map(|rule| {
            let name = format!("REASON_{}", rule.name());
            step(pb::Reason::from_str_name(&name).unwrap(), false)
        });
        let steps: Vec<pb::Step> =
            passed.chain([step(pb::Reason::BudgetExhausted, true)]).collect();
        let rows = rows(&steps, false);
        let last: Vec<(&str, &str)> =
            rows.iter().rev().take(2).map(|row| (&*row.rule, row.answer)).collect();
        assert_eq!(last, [("RETRYABLE", "not asked"), ("BUDGET_EXHAUSTED", "objected")]);
    }

    #[test]
    fn only_a_yes_ends_with_retry() {
        let steps = [step(pb::Reason::Retryable, false)];
        assert_eq!(rows(&steps, true)[0].answer, "retry");
    }
}
