//! A policy file as text. What is read of it is what was given.
use std::fmt::{self, Display, Formatter};

use super::Imported;
use crate::budget::{Budget, BudgetId, Limits, bucket, ratio, throttle};
use crate::engine::{
    Backoff, Categories, Category, GrpcCode, GrpcCodes, HttpStatus, HttpStatuses, Jitter, Rules,
};
use crate::policy::{Gep2257, Policy};

impl Display for Imported {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "version: 1")?;
        if !self.budgets.is_empty() {
            writeln!(f, "\nbudgets:")?;
        }
        for budget in &self.budgets {
            write_budget(f, budget)?;
        }
        writeln!(f, "\npolicies:")?;
        for (place, policy) in self.policies.iter().enumerate() {
            if 0 < place {
                writeln!(f)?;
            }
            self.write_policy(f, policy)?;
        }
        Ok(())
    }
}

impl Imported {
    fn write_policy(&self, f: &mut Formatter<'_>, policy: &Policy) -> fmt::Result {
        let Policy { name, operation, rules, payers, .. } = policy;
        let default = Rules::default();
        writeln!(f, "  - name: {}", word(name))?;
        if !operation.is_everything() {
            writeln!(f, "    match: {{operation: {}}}", text(operation.as_str()))?;
        }
        writeln!(f, "    max_attempts: {}", rules.attempts_max)?;
        if rules.min_attempt_budget_ms != default.min_attempt_budget_ms {
            writeln!(f, "    min_attempt_budget: {}", Gep2257(rules.min_attempt_budget_ms))?;
        }
        if rules.backoff != default.backoff {
            write_backoff(f, &rules.backoff)?;
        }
        if rules.hint_ms_max != default.hint_ms_max {
            writeln!(f, "    max_hint: {}", Gep2257(rules.hint_ms_max))?;
        }
        if rules.retry_on != default.retry_on {
            let statuses = &rules.retry_on.statuses;
            writeln!(f, "    retry_on:")?;
            writeln!(f, "      http: {}", list(http(&statuses.http)))?;
            writeln!(f, "      grpc: {}", list(grpc(statuses.grpc)))?;
            writeln!(f, "      failures: {}", list(categories(rules.retry_on.categories)))?;
        }
        let budgets = payers.ids().iter().filter_map(|BudgetId(place)| self.budgets.get(*place));
        let budgets: Vec<String> = budgets.map(|budget| word(&budget.name)).collect();
        if !budgets.is_empty() {
            writeln!(f, "    budgets: {}", list(budgets))?;
        }
        Ok(())
    }
}

fn write_budget(f: &mut Formatter<'_>, budget: &Budget) -> fmt::Result {
    let Budget { name, scope, limits, .. } = budget;
    writeln!(f, "  - name: {}\n    scope: {}", word(name), scope.name())?;
    match limits {
        Limits::Throttle(throttle::Limits { tokens_max, token_ratio_thousandths }) => {
            let token_ratio = decimal(*token_ratio_thousandths);
            writeln!(f, "    throttle: {{max_tokens: {tokens_max}, token_ratio: {token_ratio}}}")
        }
        Limits::Ratio(ratio::Limits { percent, interval_ms, floor }) => writeln!(
            f,
            "    ratio: {{percent: {percent}, interval: {}, min_retry_rate: {{count: {}, interval: {}}}}}",
            Gep2257(*interval_ms),
            floor.count,
            Gep2257(floor.interval_ms)
        ),
        Limits::TokenBucket(bucket::Limits { capacity, costs }) => {
            let bucket::Costs { transient, throttling, timeout } = costs;
            writeln!(
                f,
                "    token_bucket: {{capacity: {capacity}, costs: {{transient: {transient}, \
                 throttling: {throttling}, timeout: {timeout}}}}}"
            )
        }
    }
}

fn write_backoff(f: &mut Formatter<'_>, backoff: &Backoff) -> fmt::Result {
    let Backoff { base_ms, max_ms, multiplier_thousandths, jitter } = backoff;
    let jitter = match jitter {
        Jitter::None => "none",
        Jitter::Full => "full",
        Jitter::Equal => "equal",
    };
    writeln!(
        f,
        "    backoff: {{base: {}, max: {}, multiplier: {}, jitter: {jitter}}}",
        Gep2257(*base_ms),
        Gep2257(*max_ms),
        decimal(*multiplier_thousandths)
    )
}

/// A name, in quotes where YAML would take it for something else: the route `/404` is called so.
fn word(name: &str) -> String {
    let is_word = name.starts_with(|c: char| c.is_ascii_alphabetic());
    let is_taken = ["null", "true", "false", "yes", "no", "on", "off", "y", "n"].contains(&name);
    if is_word && !is_taken { name.to_owned() } else { text(name) }
}

/// Double quotes of JSON are double quotes of YAML.
fn text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn list<T: Display>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    format!("[{}]", items.join(", "))
}

fn http(statuses: &HttpStatuses) -> impl Iterator<Item = u16> {
    let all = (HttpStatus::MIN..=HttpStatus::MAX).filter_map(HttpStatus::new);
    all.filter(|status| statuses.contains(*status)).map(HttpStatus::get)
}

fn grpc(codes: GrpcCodes) -> impl Iterator<Item = &'static str> {
    GrpcCode::ALL.into_iter().filter(move |code| codes.contains(*code)).map(GrpcCode::name)
}

fn categories(categories: Categories) -> impl Iterator<Item = &'static str> {
    let listed = Category::ALL.into_iter().filter(move |category| categories.contains(*category));
    listed.map(Category::name)
}

fn decimal(thousandths: u32) -> String {
    let text = format!("{}.{:03}", thousandths / 1_000, thousandths % 1_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Policies;

    const EXAMPLE: &str = r#"version: 1
budgets:
  - {name: share, scope: tenant, ratio: {percent: 7, interval: 1m30s, min_retry_rate: {count: 3, interval: 2s}}}
  - {name: throttle, scope: global, throttle: {max_tokens: 10, token_ratio: 0.253}}
  - {name: "08", scope: global}
  - {name: bucket, scope: operation, token_bucket: {capacity: 77, costs: {transient: 3, throttling: 2, timeout: 1}}}
policies:
  - name: all-of-it
    match: {operation: "a \"quoted\" one: *"}
    max_attempts: 7
    min_attempt_budget: 0s
    backoff: {base: 1ms, max: 24h, multiplier: 1.05, jitter: none}
    max_hint: 0s
    retry_on: {http: [409, 503], grpc: [INTERNAL], failures: []}
    budgets: [bucket, throttle]
  - name: equal
    match: {operation: "b*"}
    backoff: {jitter: equal, multiplier: 100}
    retry_on: {http: []}
    budgets: [share, "08"]
  - {name: "404", match: {operation: /404}}
  - {name: "1e3", match: {operation: /1e3}}
  - {name: "0x1f", match: {operation: /0x1f}}
  - {name: "2026-12-01", match: {operation: /2026-12-01}}
  - {name: "null", match: {operation: /null}}
  - {name: "true", match: {operation: /true}}
  - {name: "no", match: {operation: /no}}
  - name: defaults
"#;

    #[test]
    fn what_is_written_is_what_is_read() {
        let given = Policies::parse("given", EXAMPLE.as_bytes()).unwrap();
        let imported = Imported {
            budgets: given.budgets().to_vec(),
            policies: given.policies().cloned().collect(),
        };
        let written = imported.to_string();
        let read = Policies::parse("written", written.as_bytes())
            .unwrap_or_else(|rejected| panic!("{rejected}"));
        assert_eq!(read.budgets(), given.budgets(), "{written}");
        assert!(read.policies().eq(given.policies()), "{written}");
    }
}
