//! What a client may do without an answer: for each name the strictest of what policies may answer there.
use std::collections::BTreeSet;

use super::name::Name;
use crate::budget::{Budget, Limits, throttle};
use crate::engine::{Backoff, GrpcCode};
use crate::policy::{Mode, Pattern, Policies, Policy, quoted};

/// Clients take more for this.
const ATTEMPTS_MAX: u32 = 5;
/// At waits of 1 ms gRPC's C core does not come back (<https://github.com/grpc/grpc/issues/41036>);
/// at 2 ms it does.
const WAIT_MS_MIN: u64 = 10;
/// The throttle of a client that gets no answer (semantics 14).
const THROTTLE: throttle::Limits =
    throttle::Limits { tokens_max: 10, token_ratio_thousandths: 100 };

const BEFORE: &str = "while retryd answers, its clients switch the retries of gRPC off: this is for the \
    time without it";
const BY_ITSELF: &str = "what never left the client, or was refused unseen by the server's application, \
    gRPC repeats by itself, without any of this (transparent retries)";
const WAITS: &str = "gRPC waits 0.8 to 1.2 times the backoff, begins an attempt as long as any time is \
    left, and waits as long as a pushback says";

/// What a client may do by itself.
#[derive(Debug)]
pub(super) struct Fallback {
    /// The more specific ones first.
    pub(super) entries: Vec<(Name, Option<Retries>)>,
    pub(super) throttle: throttle::Limits,
    /// What the policies say, and this does not.
    pub(super) unsaid: Vec<String>,
    pub(super) notes: Vec<&'static str>,
}

/// How one name is repeated.
#[derive(Debug)]
pub(super) struct Retries {
    pub(super) attempts_max: u32,
    pub(super) backoff: Backoff,
    /// At least one.
    pub(super) codes: Vec<GrpcCode>,
}

impl Fallback {
    pub(super) fn of(policies: &Policies, idempotent: &[Name]) -> Fallback {
        let mut fallback = Fallback {
            entries: Vec::new(),
            throttle: THROTTLE,
            unsaid: policies.policies().filter_map(unsaid_of_policy).collect(),
            notes: vec![BEFORE, BY_ITSELF],
        };
        let named: BTreeSet<Name> =
            policies.policies().filter_map(named).chain(idempotent.iter().cloned()).collect();
        for name in named {
            let safe = idempotent.iter().any(|vouched| vouched.covers(&name));
            let retries = fallback.retries(&answering(policies, &name), &name, safe);
            fallback.entries.push((name, retries));
        }
        if fallback.entries.iter().any(|(_, retries)| retries.is_some()) {
            fallback.notes.push(WAITS);
        }
        fallback.choose_throttle(policies.budgets());
        fallback
    }

    /// The strictest of `policies`, all of which may answer a call of `name`.
    fn retries(&mut self, policies: &[&Policy], name: &Name, safe: bool) -> Option<Retries> {
        let attempts_max = policies.iter().map(|policy| attempts_max(policy)).min()?;
        let listed_by_all = |code: &GrpcCode| {
            policies.iter().all(|policy| policy.rules.retry_on.statuses.grpc.contains(*code))
        };
        let proves_nothing_done = |code: &GrpcCode| {
            policies.iter().all(|policy| policy.rules.refusal_statuses.grpc.contains(*code))
        };
        let listed = GrpcCode::ALL.into_iter().filter(listed_by_all);
        // Without a hint it may mean anything, and gRPC would repeat it without one.
        let (hinted, listed): (Vec<_>, Vec<_>) =
            listed.partition(|code| *code == GrpcCode::ResourceExhausted);
        let (codes, doubtful): (Vec<_>, Vec<_>) =
            listed.into_iter().partition(|code| safe || proves_nothing_done(code));
        if attempts_max < 2 {
            return None;
        }
        let shown = quoted(name.pattern().as_str());
        for code in hinted {
            let code = code.name();
            self.unsaid.push(format!("{shown}: {code} is repeated only with a hint, so not here"));
        }
        for code in doubtful {
            let code = code.name();
            self.unsaid.push(format!(
                "{shown}: {code} does not prove that nothing was done, so it is not repeated; where a \
                 second run does no harm, say `--idempotent`"
            ));
        }
        if ATTEMPTS_MAX < attempts_max {
            self.unsaid.push(format!(
                "{shown}: `max_attempts: {attempts_max}` is more than {ATTEMPTS_MAX}, which clients take it for"
            ));
        }
        if codes.is_empty() {
            return None;
        }
        // The last one answers most of the calls.
        let written = policies.last()?.rules.backoff;
        let backoff = Backoff {
            base_ms: written.base_ms.max(WAIT_MS_MIN),
            max_ms: written.max_ms.max(WAIT_MS_MIN),
            ..written
        };
        if backoff != written {
            self.unsaid.push(format!(
                "{shown}: waits below {WAIT_MS_MIN}ms, at which some of gRPC's libraries hang: \
                 {WAIT_MS_MIN}ms in their place"
            ));
        }
        Some(Retries { attempts_max: attempts_max.min(ATTEMPTS_MAX), backoff, codes })
    }

    /// A service config has one throttle. Other budgets cannot be kept without retryd.
    fn choose_throttle(&mut self, budgets: &[Budget]) {
        let throttles = budgets.iter().filter_map(|budget| match budget.limits {
            Limits::Throttle(limits) => Some(limits),
            Limits::Ratio(_) | Limits::TokenBucket(_) => None,
        });
        let throttles: Vec<throttle::Limits> = throttles.collect();
        if let [only] = throttles.as_slice() {
            self.throttle = *only;
        }
        let tokens = self.throttle.tokens_max;
        for budget in budgets {
            let is_said = throttles.len() == 1 && matches!(budget.limits, Limits::Throttle(_));
            if !is_said {
                self.unsaid.push(format!(
                    "budget `{}`: clients cannot keep it without retryd; a throttle of {tokens} tokens in \
                     each client stands in",
                    budget.name
                ));
            }
        }
    }
}

/// The policies that may answer a call of `name`, up to one that answers all which are left.
fn answering<'a>(policies: &'a Policies, name: &Name) -> Vec<&'a Policy> {
    let pattern = name.pattern();
    let mut found = Vec::new();
    for policy in policies.policies() {
        // gRPC goes by the most specific name: what this policy is about has an entry of its own.
        let elsewhere = named(policy).is_some_and(|own| own != *name && name.covers(&own));
        if elsewhere || !may_meet(&policy.operation, &pattern) {
            continue;
        }
        found.push(policy);
        if policy.tenant.is_everything() && policy.operation.covers(&pattern) {
            break;
        }
    }
    found
}

/// What a policy is about, if a service config can say it: it knows no tenants.
fn named(policy: &Policy) -> Option<Name> {
    let name = Name::parse(policy.operation.as_str()).ok()?;
    policy.tenant.is_everything().then_some(name)
}

/// Whether some operation may fit both. Only what begins or ends differently surely cannot.
fn may_meet(one: &Pattern, other: &Pattern) -> bool {
    let ends = |pattern: &Pattern| match pattern.as_str().split_once('*') {
        None => (pattern.as_str().to_owned(), pattern.as_str().to_owned()),
        Some((head, rest)) => {
            let tail = rest.rsplit_once('*').map_or(rest, |(_, tail)| tail);
            (head.to_owned(), tail.to_owned())
        }
    };
    let ((head, tail), (other_head, other_tail)) = (ends(one), ends(other));
    (head.starts_with(&other_head) || other_head.starts_with(&head))
        && (tail.ends_with(&other_tail) || other_tail.ends_with(&tail))
}

fn attempts_max(policy: &Policy) -> u32 {
    match policy.mode {
        Mode::Enforce => policy.rules.attempts_max,
        // Its answers do not bind: nobody repeats by it.
        Mode::Shadow => 1,
    }
}

fn unsaid_of_policy(policy: &Policy) -> Option<String> {
    let name = &policy.name;
    if policy.mode == Mode::Shadow {
        return Some(format!("policy `{name}` only observes: nothing is repeated by it"));
    }
    if !policy.tenant.is_everything() {
        return Some(format!(
            "policy `{name}` is for some tenants, which gRPC does not know: where it may answer, the \
             stricter of it and the next one holds"
        ));
    }
    named(policy).is_none().then(|| {
        format!(
            "policy `{name}` is for {}, which is no method, no service and not everything: where it may \
             answer, the stricter of it and the next one holds",
            quoted(policy.operation.as_str())
        )
    })
}
