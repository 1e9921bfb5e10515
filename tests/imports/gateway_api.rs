//! `retryd import gateway-api`.
use std::fmt::Write as _;

use retryd::budget::{Limits, Scope};
use retryd::engine::{Category, HttpStatus};
use serde_json::{Value, json};

use crate::{Ended, imported, retryd};

const FORMAT: &str = "gateway-api";

fn object(kind: &str, name: &str, spec: Value) -> Value {
    let group = if kind.starts_with('X') { "x-k8s.io/v1alpha1" } else { "k8s.io/v1" };
    json!({"apiVersion": format!("gateway.networking.{group}"), "kind": kind,
           "metadata": {"name": name}, "spec": spec})
}

/// A file of several documents.
fn file(objects: &[Value]) -> String {
    objects.iter().fold(String::new(), |mut file, object| {
        writeln!(file, "---\n{object}").unwrap();
        file
    })
}

fn http(rule: Value) -> String {
    file(&[object("HTTPRoute", "r", json!({"rules": [rule]}))])
}

fn retry(retry: Value) -> String {
    http(json!({"retry": retry}))
}

/// An HTTPRoute to the Service `a`, and a budget for it.
fn constrained(constraint: Value) -> String {
    file(&[
        object("HTTPRoute", "r", json!({"rules": [{"backendRefs": [{"name": "a"}]}]})),
        object(
            "XBackendTrafficPolicy",
            "b",
            json!({"targetRefs": [target("a")], "retryConstraint": constraint}),
        ),
    ])
}

fn target(service: &str) -> Value {
    json!({"group": "", "kind": "Service", "name": service})
}

#[test]
fn what_a_policy_cannot_say_of_a_route_is_listed() {
    let matching = |path: Value| http(json!({"matches": [path]}));
    let method = |method: Value| {
        let rules = json!([{"matches": [{"method": method}]}]);
        file(&[object("GRPCRoute", "r", json!({"rules": rules}))])
    };
    let again = |first: &str, second: &str| {
        let exact = |path: &str| json!({"path": {"type": "Exact", "value": path}});
        http(json!({"matches": [exact(first), exact(second)]}))
    };
    let several = file(&[
        object(
            "HTTPRoute",
            "r",
            json!({"rules": [{"backendRefs": [{"name": "a"}, {"name": "b"}]}]}),
        ),
        object(
            "XBackendTrafficPolicy",
            "b",
            json!({"targetRefs": [target("a")], "retryConstraint": {}}),
        ),
    ]);
    let many: Vec<Value> = (0..9).map(|place| target(&format!("s{place}"))).collect();
    let many = file(&[
        object("HTTPRoute", "r", json!({"rules": [{"backendRefs": many}]})),
        object("XBackendTrafficPolicy", "b", json!({"targetRefs": many, "retryConstraint": {}})),
    ]);
    let twice = file(&[
        object("HTTPRoute", "r", json!({"rules": [{"backendRefs": [{"name": "a"}]}]})),
        object(
            "XBackendTrafficPolicy",
            "b",
            json!({"targetRefs": [target("a"), target("a")], "retryConstraint": {}}),
        ),
    ]);
    let without =
        file(&[object("XBackendTrafficPolicy", "b", json!({"targetRefs": [target("a")]}))]);
    let cases = [
        (
            file(&[object("HTTPRoute", "r", json!({"parentRefs": [{"name": "g"}]}))]),
            "HTTPRoute/r.spec.parentRefs: a policy knows no gateways",
        ),
        (
            file(&[object("HTTPRoute", "r", json!({"hostnames": ["shop.test"]}))]),
            "spec.hostnames: a policy knows no hosts",
        ),
        (http(json!({"filters": []})), "spec.rules[0].filters: what becomes of a request"),
        (
            http(json!({"sessionPersistence": {}})),
            "sessionPersistence: which endpoint gets a request",
        ),
        (
            http(json!({"backendRefs": [{"name": "a", "port": 80}]})),
            "backendRefs[0].port: which endpoint gets a request",
        ),
        (
            http(json!({"timeouts": {"request": "10s"}})),
            "timeouts.request: a policy has no timeouts: the caller's own deadline holds",
        ),
        (
            http(json!({"timeouts": {"backendRequest": "1s"}})),
            "timeouts.backendRequest: a policy has no timeouts: an attempt ends when its caller says so",
        ),
        (matching(json!({"method": "GET"})), "matches[0].method: a policy matches names alone"),
        (
            matching(json!({"headers": [{"name": "a", "value": "b"}]})),
            "matches[0].headers: a policy matches names alone",
        ),
        (
            matching(json!({"path": {"type": "RegularExpression", "value": "/.*"}})),
            "matches[0].path: a policy knows no regular expressions",
        ),
        (
            matching(json!({"path": {"value": "/a*b"}})),
            "matches[0].path: to a policy `*` stands for any text",
        ),
        (
            method(json!({"type": "RegularExpression", "service": ".*"})),
            "matches[0].method: a policy knows no regular expressions",
        ),
        (again("/a", "/a"), "matches[1]: another match takes all of that"),
        (retry(json!({"codes": [501]})), "retry.codes[0]: retryd never repeats 501"),
        (retry(json!({"attempts": 1000})), "retry.attempts: a policy allows at most 999"),
        (retry(json!({"attempts": u32::MAX})), "retry.attempts: a policy allows at most 999"),
        (retry(json!({"backoff": "31m"})), "retry.backoff: a policy allows at most 30m"),
        (
            file(&[object("GRPCRoute", "r", json!({"rules": [{"retry": {"attempts": 3}}]}))]),
            "spec.rules[0].retry: Gateway API has it in an HTTPRoute alone",
        ),
        (
            constrained(json!({"minRetryRate": {"count": 5, "interval": "100ms"}})),
            "minRetryRate.interval: a policy counts by seconds at least",
        ),
        (several, "backendRefs: a policy does not know which backend"),
        (many.clone(), "backendRefs: a policy names at most 8 budgets"),
        (many, "targetRefs[8]: no policy names its budget"),
        (twice, "targetRefs[1]: it has a `retryConstraint` above"),
        (without, "targetRefs[0]: there is no `retryConstraint` for it"),
        (
            file(&[object(
                "XBackendTrafficPolicy",
                "b",
                json!({"targetRefs": [target("a")], "retryConstraint": {}}),
            )]),
            "targetRefs[0]: no policy names its budget",
        ),
        // Another's kind of the same name.
        (
            file(&[
                object("HTTPRoute", "r", json!({})),
                json!({"apiVersion": "gateway.envoyproxy.io/v1alpha1", "kind": "BackendTrafficPolicy", "metadata": {"name": "e"}}),
            ]),
            "BackendTrafficPolicy/e: no route and no retry budget of Gateway API",
        ),
    ];
    for (input, expected) in cases {
        let (_, ended) = imported(FORMAT, &input);
        assert_eq!(ended.code, 1, "{input}\n{}", ended.err);
        let told = ended.err.lines().filter(|line| line.starts_with("cannot be said: -:"));
        assert!(told.clone().any(|line| line.contains(expected)), "{input}: {}", ended.err);
        assert!(ended.out.contains(expected), "{input}: {}", ended.out);
    }
}

/// A key that nobody knows is put into each mapping of a file in turn.
#[test]
fn a_key_is_listed_wherever_it_stands() {
    let route = object(
        "HTTPRoute",
        "r",
        json!({"rules": [{
            "matches": [{"path": {"type": "Exact", "value": "/a"}}],
            "backendRefs": [{"name": "a"}],
            "timeouts": {"request": "0s"},
            "retry": {"codes": [503], "attempts": 1, "backoff": "1s"},
        }]}),
    );
    let grpc =
        object("GRPCRoute", "g", json!({"rules": [{"matches": [{"method": {"service": "a.B"}}]}]}));
    let constraint =
        json!({"budget": {"percent": 1}, "minRetryRate": {"count": 1, "interval": "1s"}});
    let policy = object(
        "XBackendTrafficPolicy",
        "b",
        json!({"targetRefs": [target("a")], "retryConstraint": constraint}),
    );
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [route, grpc, policy]});
    let (_, whole) = imported(FORMAT, &list.to_string());
    assert_eq!(whole.code, 0, "{}", whole.err);
    let mut places = Vec::new();
    mappings(&list, String::new(), &mut places);
    assert_eq!(places.len(), 23, "{places:?}");
    for place in places {
        let mut changed = list.clone();
        changed.pointer_mut(&place).unwrap()["zzz"] = json!(1);
        let (_, ended) = imported(FORMAT, &changed.to_string());
        assert!(ended.err.contains(".zzz: "), "{place}: {}", ended.err);
        assert_eq!(ended.code, 1, "{place}");
    }
}

/// Where the mappings of `value` are.
fn mappings(value: &Value, at: String, found: &mut Vec<String>) {
    match value {
        Value::Object(keys) => {
            keys.iter().for_each(|(key, value)| mappings(value, format!("{at}/{key}"), found));
            found.push(at);
        }
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items.for_each(|(place, value)| mappings(value, format!("{at}/{place}"), found));
        }
        _ => {}
    }
}

#[test]
fn a_retry_is_said_as_far_as_it_goes() {
    let rules = |input: &str| imported(FORMAT, input).0.find("t", "/").rules;
    let whole = rules(&retry(json!({"codes": [500, 503], "attempts": 2, "backoff": "1s500ms"})));
    assert_eq!(whole.attempts_max, 3);
    // At least 1.5 s, at most 3 s: half of a wait with equal jitter is sure.
    assert_eq!((whole.backoff.base_ms, whole.backoff.max_ms), (3_000, 30_000));
    assert_eq!(whole.min_attempt_budget_ms, 0);
    let listed = |code| whole.retry_on.statuses.http.contains(HttpStatus::new(code).unwrap());
    assert_eq!([500, 502, 503].map(listed), [true, false, true]);
    let fails = |category| whole.retry_on.categories.contains(category);
    assert!(fails(Category::Connect) && fails(Category::StreamRefused));
    assert!(!fails(Category::ConnectionReset) && !fails(Category::AttemptTimeout));
    // Who has a timeout repeats what ran into it.
    let timed = rules(&http(json!({"retry": {}, "timeouts": {"backendRequest": "1s"}})));
    assert_eq!(timed.attempts_max, 2);
    assert!(timed.retry_on.categories.contains(Category::AttemptTimeout));
    let untimed = rules(&http(json!({"retry": {}, "timeouts": {"backendRequest": "0s"}})));
    assert!(!untimed.retry_on.categories.contains(Category::AttemptTimeout));
    // Nothing is repeated without `retry`, with none of it, or by a GRPCRoute.
    assert_eq!(rules(&http(json!({}))).attempts_max, 1);
    assert_eq!(rules(&retry(json!({"attempts": 0, "codes": [503]}))).attempts_max, 1);
    let grpc = file(&[object("GRPCRoute", "r", json!({"rules": [{"retry": {"attempts": 3}}]}))]);
    assert_eq!(rules(&grpc).attempts_max, 1);
    // The longest waits.
    let longest = rules(&retry(json!({"backoff": "99999h99999h99999h99999h"})));
    assert_eq!((longest.backoff.base_ms, longest.backoff.max_ms), (3_600_000, 36_000_000));
}

/// Gateway API takes the most specific match wherever it stands; a policy file is read from its top.
#[test]
fn policies_stand_in_the_order_that_gateway_api_prefers() {
    let rule = |attempts: u32, matching: Value| json!({"matches": [matching], "retry": {"attempts": attempts}});
    let path = |how: &str, path: &str| json!({"path": {"type": how, "value": path}});
    let rules = json!([
        rule(1, json!({})),
        rule(2, path("PathPrefix", "/a")),
        rule(3, path("PathPrefix", "/a/b/")),
        rule(4, path("Exact", "/a/b")),
        rule(5, path("PathPrefix", "/a")),
        rule(6, path("Exact", "/pkg.Svc/Do")),
        rule(7, path("Exact", "/a/b/")),
    ]);
    let (policies, _) =
        imported(FORMAT, &file(&[object("HTTPRoute", "r", json!({"rules": rules}))]));
    for (operation, retries) in [
        ("/a", 2),
        ("/a/x", 2),
        ("/ab", 1),
        ("/a/b", 4),
        ("/a/b/c", 3),
        ("/a/b/", 7),
        ("/a/bc", 2),
        ("/", 1),
        ("pkg.Svc/Do", 6),
        ("pkg.Svc/Else", 1),
    ] {
        assert_eq!(policies.find("t", operation).rules.attempts_max, retries + 1, "{operation}");
    }
    let named = |name: &str, method: Value| json!({"name": name, "matches": [{"method": method}]});
    let rules = json!([
        named("method", json!({"method": "Do"})),
        named("service", json!({"service": "a.B"})),
        named("both", json!({"service": "a.B", "method": "Do"})),
        named("all", json!({})),
    ]);
    let (policies, _) =
        imported(FORMAT, &file(&[object("GRPCRoute", "r", json!({"rules": rules}))]));
    for (operation, name) in
        [("a.B/Do", "both"), ("a.B/Else", "service"), ("c.D/Do", "method"), ("c.D/Else", "all")]
    {
        assert_eq!(&*policies.find("t", operation).name, name, "{operation}");
    }
}

#[test]
fn a_retry_constraint_is_a_budget_of_all_callers() {
    let limits = |constraint: Value| {
        let (policies, ended) = imported(FORMAT, &constrained(constraint));
        assert_eq!(ended.code, 0, "{}", ended.err);
        assert_eq!(policies.find("t", "/").payers.ids().len(), 1);
        let [budget] = policies.budgets() else { panic!("{}", ended.out) };
        assert_eq!((&*budget.name, budget.scope), ("a", Scope::Global));
        let Limits::Ratio(limits) = budget.limits else { panic!("{}", ended.out) };
        (limits.percent, limits.interval_ms, limits.floor.count, limits.floor.interval_ms)
    };
    let whole = json!({"budget": {"percent": 100, "interval": "1h"},
                       "minRetryRate": {"count": 1_000_000, "interval": "1m"}});
    assert_eq!(limits(whole), (100, 3_600_000, 1_000_000, 60_000));
    let least = json!({"budget": {"percent": 0, "interval": "1s"}, "minRetryRate": {"count": 1, "interval": "1s"}});
    assert_eq!(limits(least), (0, 1_000, 1, 1_000));
    // By the CRD.
    assert_eq!(limits(json!({})), (20, 10_000, 10, 1_000));
    assert_eq!(limits(json!({"budget": {}, "minRetryRate": {"count": 3}})), (20, 10_000, 3, 1_000));
}

/// A budget is for the backend of its namespace alone.
#[test]
fn a_budget_is_found_by_namespace_and_kind() {
    let within = |namespace: &str, mut object: Value| {
        object["metadata"]["namespace"] = json!(namespace);
        object
    };
    let cases = [
        (json!({"name": "a"}), false),
        (json!({"name": "a", "namespace": "two"}), true),
        (json!({"name": "a", "namespace": "two", "group": "", "kind": "Service"}), true),
        (json!({"name": "a", "namespace": "two", "kind": "ServiceImport"}), false),
        (json!({"name": "b", "namespace": "two"}), false),
    ];
    for (backend, expected) in cases {
        let route = object("HTTPRoute", "r", json!({"rules": [{"backendRefs": [backend]}]}));
        let constraint = json!({"targetRefs": [target("a")], "retryConstraint": {}});
        let policy = object("XBackendTrafficPolicy", "b", constraint);
        let (policies, _) = imported(FORMAT, &file(&[within("one", route), within("two", policy)]));
        assert_eq!(!policies.find("t", "/").payers.ids().is_empty(), expected, "{backend}");
        assert_eq!(policies.budgets().len(), 1);
    }
}

fn refused(input: impl AsRef<[u8]>) -> Ended {
    let ended = retryd(&["import", FORMAT, "-"], input);
    assert_eq!((ended.code, ended.out.as_str()), (2, ""), "{}", ended.err);
    ended
}

#[test]
fn what_gateway_api_refuses_is_refused_with_every_place() {
    let rules = json!([{
        "matches": [{"path": {"type": "Prefix"}}, {"path": {"value": "a"}}, {"path": 1}],
        "backendRefs": [{"port": 1}],
        "timeouts": {"request": "1s", "backendRequest": "2s"},
        "retry": {"codes": [399, 600, "5xx"], "attempts": -1, "backoff": "1.5s"},
    }]);
    let constraint = json!({"budget": {"percent": 101, "interval": "999ms"},
                            "minRetryRate": {"count": 0, "interval": "0s"}});
    let all = file(&[
        object("HTTPRoute", "r", json!({"rules": rules})),
        object(
            "XBackendTrafficPolicy",
            "b",
            json!({"targetRefs": [{}], "retryConstraint": constraint}),
        ),
    ]);
    let cases: [(String, &[&str]); 8] = [
        (
            all,
            &[
                "`HTTPRoute/r.spec.rules[0].matches[0].path` must have the `type`",
                "matches[1].path` must have a path",
                "matches[2].path` must be a mapping, not a number",
                "backendRefs[0]` needs `name`",
                "timeouts.backendRequest` must not be above `request`",
                "codes[0]` must be a whole number from 400 to 599",
                "codes[1]` must be a whole number",
                "codes[2]` must be a whole number",
                "attempts` must be a whole number",
                "backoff` must be a duration of Gateway API",
                "targetRefs[0]` needs `group`",
                "targetRefs[0]` needs `kind`",
                "targetRefs[0]` needs `name`",
                "percent` must be a whole number from 0 to 100",
                "budget.interval` must be from 1s to 1h",
                "count` must be a whole number from 1 to 1000000",
                "minRetryRate.interval` must be from 1ms to 1h",
            ],
        ),
        (String::new(), &["there is no HTTPRoute"]),
        ("{}".into(), &["`documents[0]` needs `apiVersion`", "needs `kind`"]),
        ("- 1".into(), &["`documents[0]` must be a mapping, not a list"]),
        ("{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute}".into(), &["needs `spec`"]),
        ("{apiVersion: v1, kind: List}".into(), &["needs `items`"]),
        ("{apiVersion: v1, kind: Service}".into(), &["there is no HTTPRoute"]),
        (
            file(&[object(
                "GRPCRoute",
                "r",
                json!({"rules": [{"matches": [{"method": {"service": "a/b"}}, {"method": {"type": "Prefix"}}]}]}),
            )]),
            &[
                "matches[0].method` must have names of gRPC",
                "matches[1].method` must have the `type`",
            ],
        ),
    ];
    for (input, expected) in cases {
        let ended = refused(&input);
        for words in expected {
            assert!(ended.err.contains(words), "{input} lacks {words}: {}", ended.err);
        }
    }
}

#[test]
fn a_hostile_file_is_refused_in_bounded_time_and_memory() {
    let deep =
        |open: &str, close: &str| format!("a: {}{}", open.repeat(5_000), close.repeat(5_000));
    let paths: Vec<Value> =
        (0..15_000).map(|place| json!({"path": {"value": format!("/{place}")}})).collect();
    let services: Vec<Value> = (0..12_000)
        .map(|place| json!({"group": place.to_string(), "kind": "S", "name": "a"}))
        .collect();
    let bomb = "a: &a [x, x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a]\n\
        c: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b]\nd: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c]\n\
        e: [*d, *d, *d, *d, *d, *d, *d, *d, *d]\nf: [*d, *d, *d, *d, *d, *d, *d, *d, *d]\n";
    let long = format!("a: &a \"{}\"\nb: [{}]\n", "x".repeat(900_000), ["*a"; 900].join(", "));
    let cases: [(Vec<u8>, &str); 12] = [
        (deep("[", "]").into(), "recursion limit exceeded"),
        (deep("{a: ", "}").into(), "larger or deeper"),
        (bomb.into(), "too large or too complex"),
        (long.into(), "larger or deeper"),
        (b"a: &a [*a]".into(), "an alias within its own anchor"),
        (b"kind: HTTPRoute\nkind: HTTPRoute".into(), "the key `kind` stands here a second time"),
        (b"kind: \xff".into(), "this byte is not UTF-8"),
        (vec![b' '; (1 << 20) + 1], "the file is larger than"),
        ("---\nx: 1\n".repeat(2_000).into(), "larger or deeper"),
        (http(json!({"matches": paths})).into(), "more than 1000 policies"),
        (
            file(&[object(
                "XBackendTrafficPolicy",
                "b",
                json!({"targetRefs": services, "retryConstraint": {}}),
            )])
            .into(),
            "the file is larger than",
        ),
        (
            retry(json!({"attempts": 1e300, "codes": [1e99], "backoff": 9})).into(),
            "must be a whole number",
        ),
    ];
    for (input, expected) in cases {
        let ended = refused(&input);
        let begin = String::from_utf8_lossy(&input).chars().take(60).collect::<String>();
        assert!(ended.err.contains(expected), "{begin}: {}", ended.err);
    }
}
