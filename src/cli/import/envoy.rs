//! Routes of Envoy v3 (`RouteConfiguration`, alone or anywhere in a bootstrap), with their retry policies.
//! Only those are looked at: a bootstrap says much else, and most of it is no matter of retries.
mod policy;

use super::Imported;
use super::at::{At, Fields};
use super::http;
use super::names::Names;
use super::reader::Reader;
use super::{NOTHING, no_retries};
use crate::budget::Payers;
use crate::cli::node::{Node, Value};
use crate::engine::Rules;
use crate::policy::{Mode, POLICIES_MAX, Pattern, Policy};

const IDEMPOTENCY: &str = "Envoy repeats what `retry_on` names whatever the request does; retryd does so \
    only if the caller declares the operation idempotent or has sent its registered key, or if the failure \
    proves that nothing was done";
const OPERATIONS: &str = "the operation of a policy is the name by which callers ask: the path of the \
    route stands in for it, that of a gRPC method without its first slash";
const HINTS: &str = "retryd waits at least as long as the server says (`Retry-After`), whether or not \
    Envoy was told to";

pub(super) fn import(reader: &mut Reader, documents: &[Node]) -> Imported {
    let mut policies: Vec<Policy> = Vec::new();
    let mut names = Names::default();
    let mut found = Vec::new();
    for document in documents {
        reader.find(At::root(document), &["virtual_hosts"], &mut found);
        let mut budgets = Vec::new();
        reader.find(At::root(document), &["retry_budget", "max_retries"], &mut budgets);
        for at in budgets {
            reader.leave(&at, "Envoy counts retries in flight, and no budget of retryd does");
        }
    }
    if found.is_empty() {
        reader.refuse_file(
            "there are no `virtual_hosts` in it: that is no route configuration of Envoy",
        );
    }
    for hosts in &found {
        for host in reader.items(hosts) {
            for (at, policy) in virtual_host(reader, host, &mut names) {
                // A file that holds no more is refused anyway; each is compared with all before it.
                if POLICIES_MAX < policies.len() {
                    break;
                }
                match policies.iter().any(|earlier| earlier.operation.covers(&policy.operation)) {
                    true => reader.leave(&at, "a route above it matches all of that already"),
                    false => policies.push(policy),
                }
            }
        }
    }
    if !policies.iter().any(|policy| policy.operation.is_everything()) {
        policies.push(named(names.name("everything-else"), Pattern::everything(), no_retries()));
    }
    reader.note(OPERATIONS);
    if policies.iter().any(|policy| 1 < policy.rules.attempts_max) {
        reader.note(IDEMPOTENCY);
        reader.note(HINTS);
    }
    Imported { budgets: Vec::new(), policies }
}

fn named(name: Box<str>, operation: Pattern, rules: Rules) -> Policy {
    let tenant = Pattern::everything();
    Policy { name, tenant, operation, rules, payers: Payers::default(), mode: Mode::Enforce }
}

fn virtual_host<'a>(reader: &mut Reader, at: At<'a>, names: &mut Names) -> Vec<(At<'a>, Policy)> {
    let mut host = reader.fields(at);
    if let Some(domains) = host.proto("domains") {
        let all = reader.items(&domains).iter().any(|domain| domain.text() == Some("*"));
        if !all {
            reader.leave(&domains, "a policy knows no domains: it is for every host");
        }
    }
    typed(reader, &mut host);
    let default = host.proto("retry_policy").map(|at| policy::rules(reader, at));
    let routes = host.proto("routes").map(|at| reader.items(&at)).unwrap_or_default();
    let read = routes.into_iter().filter_map(|at| {
        let mut route = reader.fields(at.clone());
        let operation = match route.proto("match") {
            Some(at) => operation(reader, at),
            None => {
                reader.refuse(&at, "needs `match`");
                None
            }
        };
        let own = route.proto("route").and_then(|at| {
            let mut action = reader.fields(at);
            typed(reader, &mut action);
            for (key, why) in [
                ("timeout", "a policy has no timeouts: the caller's own deadline holds"),
                ("idle_timeout", "a policy has no timeouts: the caller's own deadline holds"),
                ("hedge_policy", "a policy is asked after a failure and cannot hedge"),
            ] {
                if let Some(at) = action.proto(key) {
                    reader.leave(&at, why);
                }
            }
            action.proto("retry_policy").map(|at| policy::rules(reader, at))
        });
        let operation = operation?;
        let rules = own.or(default).unwrap_or_else(no_retries);
        let name = match operation.is_everything() {
            true => "everything-else",
            false => operation.as_str(),
        };
        Some((at, named(names.name(name), operation, rules)))
    });
    read.collect()
}

/// An extension in place of the retry policy.
fn typed(reader: &mut Reader, fields: &mut Fields<'_>) {
    if let Some(at) = fields.proto("retry_policy_typed_config") {
        reader.leave(&at, "retryd does not read extensions");
    }
}

/// The names that a route is for, if it asks for nothing but a path.
fn operation(reader: &mut Reader, at: At<'_>) -> Option<Pattern> {
    let mut fields = reader.fields(at);
    let exact = fields.proto("path").and_then(|at| path(reader, &at, ""));
    let prefix = fields.proto("prefix").and_then(|at| path_prefix(reader, &at));
    let separated = fields.proto("path_separated_prefix").and_then(|at| {
        reader.leave(&at, "the policy is for what is below that path, not for the path itself");
        path(reader, &at, "/*")
    });
    // A gRPC call is one like others.
    fields.proto("grpc");
    if let Some(at) =
        fields.proto("case_sensitive").filter(|at| matches!(at.node.value, Value::Bool(false)))
    {
        reader.leave(&at, "names are compared byte by byte");
    }
    let pattern = exact.or(prefix).or(separated);
    let conditions = fields.left();
    if conditions == 0 && pattern.is_some() {
        return pattern;
    }
    let at = fields.at().clone();
    match conditions {
        0 => reader.leave(&at, "it has no path that a policy could match: this route is left out"),
        _ => reader.leave_rest(fields, |_| {
            "a policy matches names alone: this route is left out, and what it matches goes on to the next"
        }),
    }
    None
}

fn path_prefix(reader: &mut Reader, at: &At<'_>) -> Option<Pattern> {
    match at.text() {
        Some("/" | "") => Some(Pattern::everything()),
        _ => path(reader, at, "*"),
    }
}

fn path(reader: &mut Reader, at: &At<'_>, end: &str) -> Option<Pattern> {
    let text = reader.text(at)?;
    if text.contains(|c: char| c == '*' || c.is_control()) {
        reader.refuse(at, "has a character that no path has");
        return None;
    }
    Pattern::new(&format!("{}{end}", http::operation(text)))
}

/// Nothing may be repeated yet.
fn nothing() -> Rules {
    Rules { min_attempt_budget_ms: 0, retry_on: NOTHING, ..Rules::default() }
}
