//! Kubernetes Gateway API: the routes of HTTPRoute (`retry` of GEP-1731, `timeouts` of GEP-1742) and
//! GRPCRoute, and the budgets of BackendTrafficPolicy (`retryConstraint` of GEP-3388).
mod constraint;
mod matching;
mod object;
mod retry;
mod route;

use std::mem;

use self::constraint::Constraints;
use self::object::{Kind, objects};
use self::route::Candidate;
use super::names::Names;
use super::reader::Reader;
use super::{Imported, no_retries};
use crate::budget::Payers;
use crate::cli::node::Node;
use crate::engine::Rules;
use crate::policy::{Mode, POLICIES_MAX, Pattern, Policy};

const OPERATIONS: &str = "the operation of a policy is the name by which callers ask: the path of a route \
    stands in for it, that of a gRPC method without its first slash";
const IDEMPOTENCY: &str = "a gateway repeats what `retry` names whatever the request does; retryd does so \
    only if the caller declares the operation idempotent or has sent its registered key, or if the failure \
    proves that nothing was done";
const HINTS: &str = "retryd waits at least as long as the server says (`Retry-After`), which Gateway API \
    leaves to the gateway";

pub(super) fn import(reader: &mut Reader, documents: &[Node]) -> Imported {
    let objects = objects(reader, documents);
    if objects.is_empty() {
        reader.refuse_file(
            "there is no HTTPRoute, GRPCRoute or BackendTrafficPolicy of Gateway API in it",
        );
    }
    // Routes name the budgets, wherever these stand.
    let mut constraints = Constraints::default();
    let mut routes = Vec::new();
    for object in objects {
        match object.kind {
            Kind::Route(route) => routes.push((route, object)),
            Kind::TrafficPolicy => constraints.read(reader, object),
        }
    }
    let mut candidates = Vec::new();
    for (route, object) in routes {
        candidates.extend(route::candidates(reader, route, object, &mut constraints));
    }
    // Stable: of two that are as good, the first in the file comes first.
    candidates.sort_by_key(|candidate| candidate.matched.rank);
    let policies = policies(reader, candidates);
    constraints.tell_unnamed(reader);
    let budgets = mem::take(&mut constraints.budgets);
    if policies.iter().any(|policy| 1 < policy.rules.attempts_max) {
        [OPERATIONS, IDEMPOTENCY, HINTS].into_iter().for_each(|note| reader.note(note));
    }
    Imported { budgets, policies }
}

fn policies(reader: &mut Reader, candidates: Vec<Candidate<'_>>) -> Vec<Policy> {
    let mut policies: Vec<Policy> = Vec::new();
    let mut names = Names::default();
    let mut policy = |name: &str, operation, rules, payers| Policy {
        name: names.name(name),
        tenant: Pattern::everything(),
        operation,
        rules,
        payers,
        mode: Mode::Enforce,
    };
    for Candidate { at, name, matched, rules, payers } in candidates {
        let mut is_covered = true;
        for operation in matched.patterns {
            if policies.iter().any(|earlier| earlier.operation.covers(&operation)) {
                continue;
            }
            is_covered = false;
            let otherwise =
                if operation.is_everything() { "everything-else" } else { operation.as_str() };
            let name = name.unwrap_or(otherwise).to_owned();
            policies.push(policy(&name, operation, rules, payers.clone()));
        }
        if is_covered {
            reader.leave(&at, "another match takes all of that, and Gateway API prefers it");
        }
        // A file that holds no more is refused anyway; each is compared with all before it.
        if POLICIES_MAX < policies.len() {
            break;
        }
    }
    if !policies.iter().any(|policy| policy.operation.is_everything()) {
        let (everything, rules): (Pattern, Rules) = (Pattern::everything(), no_retries());
        policies.push(policy("everything-else", everything, rules, Payers::default()));
    }
    policies
}
