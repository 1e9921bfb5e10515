//! The rules of an HTTPRoute or GRPCRoute.
use super::super::at::{At, Fields};
use super::super::reader::Reader;
use super::constraint::Constraints;
use super::matching::{self, Matched};
use super::object::{Backend, Object, Route};
use super::retry;
use crate::budget::{BudgetId, PAYERS_MAX, Payers};
use crate::engine::Rules;

const SEVERAL: &str = "a policy does not know which backend an attempt went to: each of their budgets pays \
    for every retry";
const HTTP_ALONE: &str =
    "Gateway API has it in an HTTPRoute alone: of this route nothing is repeated";

/// One match of a rule, and what holds for it.
pub(super) struct Candidate<'a> {
    pub(super) at: At<'a>,
    pub(super) name: Option<&'a str>,
    pub(super) matched: Matched,
    pub(super) rules: Rules,
    pub(super) payers: Payers,
}

pub(super) fn candidates<'a>(
    reader: &mut Reader,
    route: Route,
    object: Object<'a>,
    constraints: &mut Constraints<'a>,
) -> Vec<Candidate<'a>> {
    let Object { kind: _, namespace, spec } = object;
    let mut fields = reader.fields(spec);
    let rules = fields.take("rules").map(|at| reader.items(&at)).unwrap_or_default();
    reader.leave_rest(fields, |key| match key {
        "parentRefs" | "useDefaultGateways" => "a policy knows no gateways: it is for whoever asks",
        "hostnames" => "a policy knows no hosts: it is for every host",
        _ => "retryd does not know this key",
    });
    let read = rules.into_iter().flat_map(|at| rule(reader, at, route, namespace, constraints));
    read.collect()
}

fn rule<'a>(
    reader: &mut Reader,
    at: At<'a>,
    route: Route,
    namespace: &'a str,
    constraints: &mut Constraints<'a>,
) -> Vec<Candidate<'a>> {
    let mut fields = reader.fields(at.clone());
    let name = fields.take("name").and_then(|at| reader.text(&at));
    let matches = fields.take("matches").map(|at| reader.items(&at)).unwrap_or_default();
    let payers = payers(reader, &mut fields, namespace, constraints);
    let rules = match route {
        Route::Grpc => retry::rules(reader, None, false),
        Route::Http => {
            let times_out = fields.take("timeouts").is_some_and(|at| retry::timeouts(reader, at));
            retry::rules(reader, fields.take("retry"), times_out)
        }
    };
    reader.leave_rest(fields, |key| match key {
        "retry" | "timeouts" => HTTP_ALONE,
        "filters" => "what becomes of a request on its way is no matter of a policy",
        "sessionPersistence" => "which endpoint gets a request is no matter of a policy",
        _ => "retryd does not know this key",
    });
    if matches.is_empty() {
        return vec![Candidate { at, name, matched: Matched::everything(), rules, payers }];
    }
    let read = matches.into_iter().filter_map(|at| {
        let matched = match route {
            Route::Grpc => matching::grpc(reader, at.clone()),
            Route::Http => matching::http(reader, at.clone()),
        };
        Some(Candidate { at, name, matched: matched?, rules, payers: payers.clone() })
    });
    read.collect()
}

/// The budgets of the backends that a rule names.
fn payers<'a>(
    reader: &mut Reader,
    fields: &mut Fields<'a>,
    namespace: &'a str,
    constraints: &mut Constraints<'a>,
) -> Payers {
    let Some(at) = fields.take("backendRefs") else { return Payers::default() };
    let backends = reader.items(&at);
    let mut ids: Vec<BudgetId> = Vec::new();
    for at in &backends {
        let mut fields = reader.fields(at.clone());
        let backend = Backend::of_route(reader, &mut fields, namespace);
        reader.leave_rest(fields, |key| match key {
            "port" | "weight" => "which endpoint gets a request is no matter of a policy",
            "filters" => "what becomes of a request on its way is no matter of a policy",
            _ => "retryd does not know this key",
        });
        if let Some(id) = backend.and_then(|backend| constraints.of(&backend))
            && ids.len() <= PAYERS_MAX
            && !ids.contains(&id)
        {
            ids.push(id);
        }
    }
    if 1 < backends.len() && !ids.is_empty() {
        reader.leave(&at, SEVERAL);
    }
    if PAYERS_MAX < ids.len() {
        reader.leave(&at, format!("a policy names at most {PAYERS_MAX} budgets"));
        ids.truncate(PAYERS_MAX);
    }
    constraints.name(&ids);
    Payers::new(&ids, &constraints.budgets).unwrap_or_default()
}
