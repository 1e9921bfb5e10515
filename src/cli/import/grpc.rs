//! A service config of gRPC (<https://github.com/grpc/grpc-proto>, `service_config.proto`): its retry
//! policies by method (gRFC A6), and its throttle.
mod policy;
mod throttling;

use std::collections::HashSet;

use self::policy::{Retries, retries};
use super::at::{At, Fields};
use super::names::Names;
use super::reader::Reader;
use super::{Imported, no_retries};
use crate::budget::{BudgetId, Payers};
use crate::cli::node::{Node, Value};
use crate::policy::{Mode, Pattern, Policy, quoted};

const IDEMPOTENCY: &str = "gRPC repeats a listed status whatever the method does; retryd does so only \
    if the caller declares the operation idempotent or has sent its registered key, or if the failure \
    proves that nothing was done";
const JITTER: &str = "gRPC waits 0.8 to 1.2 times the backoff, and `jitter: equal` 0.5 to 1 times";
const PUSHBACK: &str = "a pushback of the server only delays: one that is shorter than the backoff does \
    not shorten it, one over 24h is refused, and the backoff does not begin anew after it";
const NOT_REPEATED: &str = "gRPC repeats nothing without a retry policy: what the file gives none has \
    `max_attempts: 1`";

pub(super) fn import(reader: &mut Reader, documents: &[Node]) -> Imported {
    let [document] = documents else {
        reader.refuse_file("a service config is one mapping");
        return Imported { budgets: Vec::new(), policies: Vec::new() };
    };
    let root = At::root(document);
    if matches!(document.value, Value::List(_)) {
        let message =
            "this is a list of choices (gRFC A2): import the `serviceConfig` of one of them";
        reader.refuse(&root, message);
        return Imported { budgets: Vec::new(), policies: Vec::new() };
    }
    let mut config = reader.fields(root);
    let throttle = config.take("retryThrottling").map(|at| throttling::read(reader, at));
    let mut methods = Vec::new();
    if let Some(at) = config.take("methodConfig") {
        for at in reader.items(&at) {
            methods.extend(method(reader, at));
        }
    }
    reader.leave_rest(config, |key| match key {
        "loadBalancingConfig" | "loadBalancingPolicy" | "healthCheckConfig" => {
            "no matter of retries: it stays with the client"
        }
        "methodConfigs" | "method_config" | "retry_throttling" => {
            "gRPC does not read this spelling"
        }
        _ => "retryd does not know this key",
    });
    told_once(reader, &methods);
    let grants = throttle.as_ref().is_none_or(throttling::Throttle::grants);
    let budgets: Vec<_> = throttle.into_iter().filter_map(throttling::Throttle::budget).collect();
    // Successes of every method feed the throttle, those that are not repeated too.
    let ids: Vec<BudgetId> = (0..budgets.len()).map(BudgetId).collect();
    let payers = Payers::new(&ids, &budgets).unwrap_or_default();
    let policies = policies(reader, methods, grants, &payers);
    if !budgets.is_empty() {
        throttling::note(reader);
    }
    Imported { budgets, policies }
}

/// Policies in an order that the first that matches is the most specific one, as gRPC has it.
fn policies(
    reader: &mut Reader,
    mut methods: Vec<Method<'_>>,
    grants: bool,
    payers: &Payers,
) -> Vec<Policy> {
    let mut retries: Vec<(Name, Retries)> =
        methods.drain(..).map(|method| (method.name, method.retries)).collect();
    let all_named = retries.iter().any(|(name, _)| *name == Name::Everything);
    if !all_named {
        retries.push((Name::Everything, Retries::None));
    }
    // Stable: within a rank the file's order stays.
    retries.sort_by_key(|(name, _)| name.rank());
    let mut names = Names::default();
    let policy = |(name, retries): (Name, Retries)| {
        let rules = match retries {
            Retries::By(rules) if grants => *rules,
            Retries::By(_) | Retries::None => no_retries(),
        };
        if 1 < rules.attempts_max {
            [IDEMPOTENCY, JITTER, PUSHBACK].into_iter().for_each(|note| reader.note(note));
        }
        Policy {
            name: names.name(name.told()),
            tenant: Pattern::everything(),
            operation: name.pattern(),
            rules,
            payers: payers.clone(),
            mode: Mode::Enforce,
        }
    };
    let policies = retries.into_iter().map(policy).collect();
    if !all_named {
        reader.note(NOT_REPEATED);
    }
    policies
}

/// One name of a `methodConfig`, and what holds for it.
struct Method<'a> {
    at: At<'a>,
    name: Name,
    retries: Retries,
}

/// What a service config can name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Name {
    Method(String),
    Service(String),
    Everything,
}

impl Name {
    fn rank(&self) -> u8 {
        match self {
            Name::Method(_) => 0,
            Name::Service(_) => 1,
            Name::Everything => 2,
        }
    }

    fn pattern(&self) -> Pattern {
        match self {
            Name::Method(text) | Name::Service(text) => Pattern::new(text),
            Name::Everything => None,
        }
        .unwrap_or_else(Pattern::everything)
    }

    /// What the policy is called by.
    fn told(&self) -> &str {
        match self {
            Name::Method(text) | Name::Service(text) => text,
            Name::Everything => "everything-else",
        }
    }
}

fn method<'a>(reader: &mut Reader, at: At<'a>) -> Vec<Method<'a>> {
    let mut fields = reader.fields(at);
    let names = fields.take("name").map(|at| reader.items(&at)).unwrap_or_default();
    let retries = retries(reader, &mut fields);
    if names.is_empty() {
        let at = fields.at().clone();
        reader.leave(&at, "it has no `name`, and gRPC skips it");
    }
    reader.leave_rest(fields, |key| match key {
        "timeout" => "a policy has no timeouts: the caller's own deadline holds",
        "waitForReady" => "a policy is asked after a failure: waiting is the client's matter",
        "maxRequestMessageBytes" | "maxResponseMessageBytes" => {
            "no matter of retries: it stays with the client"
        }
        _ => "retryd does not know this key",
    });
    let named = names.into_iter().filter_map(|at| {
        let name = name(reader, at.clone())?;
        Some(Method { at, name, retries: retries.clone() })
    });
    named.collect()
}

fn name(reader: &mut Reader, at: At<'_>) -> Option<Name> {
    let mut fields = reader.fields(at);
    let service = part(reader, &mut fields, "service");
    let method = part(reader, &mut fields, "method");
    let at = fields.at().clone();
    reader.leave_rest(fields, |_| "retryd does not know this key");
    match (service?, method?) {
        ("", "") => Some(Name::Everything),
        ("", _) => {
            reader.refuse(&at, "has a `method` without a `service`");
            None
        }
        (service, "") => Some(Name::Service(format!("{service}/*"))),
        (service, method) => Some(Name::Method(format!("{service}/{method}"))),
    }
}

/// Half of a name; absent and empty are the same.
fn part<'a>(reader: &mut Reader, fields: &mut Fields<'a>, key: &str) -> Option<&'a str> {
    let Some(at) = fields.take(key) else { return Some("") };
    let text = reader.text(&at)?;
    // A `*` would match more than it says.
    if text.contains(|c: char| c == '*' || c == '/' || c.is_control() || c.is_whitespace()) {
        reader.refuse(&at, format_args!("is no name of gRPC: {}", quoted(text)));
        return None;
    }
    Some(text)
}

/// gRPC takes no config with one name twice.
fn told_once(reader: &mut Reader, methods: &[Method<'_>]) {
    let mut told = HashSet::new();
    for method in methods {
        if !told.insert(&method.name) {
            let name = quoted(method.name.told());
            reader.refuse(&method.at, format_args!("names {name} a second time"));
        }
    }
}
