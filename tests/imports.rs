//! `retryd import` and `retryd export`, by the built binary: what they print, and what they list.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that fails may panic"
)]
#[path = "process/ended.rs"]
mod ended;
#[path = "imports/gateway_api.rs"]
mod gateway_api;

use std::{
    env, fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
};

use ended::Ended;
use retryd::policy::Policies;
use serde_json::{Value, json};

const GRPC: &str = "grpc-service-config";

fn retryd(arguments: &[&str], input: impl AsRef<[u8]>) -> Ended {
    let mut command = Command::new(env!("CARGO_BIN_EXE_retryd"));
    command.args(arguments).current_dir(samples()).env_remove("RETRYD_POLICY");
    ended::ended(&mut command, input)
}

fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/import")
}

/// The policies of an import that succeeds.
fn imported(format: &str, input: &str) -> (Policies, Ended) {
    let ended = retryd(&["import", format, "-"], input);
    assert!(ended.code < 2, "{input}\n{}", ended.err);
    let policies = Policies::parse("imported", ended.out.as_bytes());
    (policies.unwrap_or_else(|rejected| panic!("{rejected}\n{}", ended.out)), ended)
}

#[test]
fn samples_are_imported_as_they_stand_beside_them() {
    let mut seen = 0;
    for folder in fs::read_dir(samples()).unwrap().map(|entry| entry.unwrap().path()) {
        let format = folder.file_name().unwrap().to_str().unwrap().to_owned();
        for sample in fs::read_dir(&folder).into_iter().flatten().map(|entry| entry.unwrap().path())
        {
            let ends = |end: &str| sample.to_str().unwrap().ends_with(end);
            if ends(".txt") || ends(".policy.yaml") {
                continue;
            }
            seen += 1;
            let name = format!("{format}/{}", sample.file_name().unwrap().to_str().unwrap());
            let ended = retryd(&["import", &format, &name], "");
            Policies::parse(&name, ended.out.as_bytes()).unwrap();
            let is_whole = !ended.err.contains("cannot be said: ");
            assert_eq!(ended.code, i32::from(!is_whole), "{name}");
            for (end, got) in [("policy.yaml", &ended.out), ("txt", &ended.err)] {
                let beside = sample.with_extension(end);
                if env::var_os("WRITE").is_some() {
                    fs::write(&beside, got).unwrap();
                }
                let expected = fs::read_to_string(&beside).unwrap_or_default();
                assert_eq!(*got, expected, "{}", beside.display());
            }
        }
    }
    assert!(4 <= seen, "{seen}");
}

/// A service config with one retry policy that differs from a sound one by `change`.
fn grpc_policy(change: Value) -> String {
    let mut policy = json!({
        "maxAttempts": 4, "initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 2,
        "retryableStatusCodes": ["UNAVAILABLE"]
    });
    for (key, value) in change.as_object().unwrap() {
        policy[key] = value.clone();
    }
    json!({"methodConfig": [{"name": [{"service": "pkg.Svc", "method": "Do"}], "retryPolicy": policy}]})
        .to_string()
}

#[test]
fn what_a_policy_cannot_say_of_a_service_config_is_listed() {
    let with = |change: Value| grpc_policy(change);
    let cases = [
        (
            with(json!({"initialBackoff": "0.0005s"})),
            "initialBackoff: a policy counts whole milliseconds: 1ms in its place",
        ),
        (
            with(json!({"initialBackoff": "7200s", "maxBackoff": "7200s"})),
            "initialBackoff: a policy allows at most 1h",
        ),
        (with(json!({"maxBackoff": "86401s"})), "maxBackoff: a policy allows at most 24h"),
        (
            with(json!({"backoffMultiplier": 0.5})),
            "backoffMultiplier: waits of a policy do not shrink: 1 in its place",
        ),
        (
            with(json!({"backoffMultiplier": 0.0001})),
            "backoffMultiplier: waits of a policy do not shrink",
        ),
        (with(json!({"backoffMultiplier": 101})), "backoffMultiplier: a policy allows at most 100"),
        (
            with(json!({"backoffMultiplier": 1.2345})),
            "backoffMultiplier: a policy has three decimals: the others are cut off",
        ),
        (
            with(json!({"retryableStatusCodes": ["DATA_LOSS"]})),
            "retryableStatusCodes[0]: retryd never repeats DATA_LOSS: no repeat heals it",
        ),
        (
            with(json!({"retryableStatusCodes": ["Canceled"]})),
            "retryableStatusCodes[0]: retryd never repeats CANCELLED",
        ),
        (
            with(json!({"retryableStatusCodes": [14, 8]})),
            "retryableStatusCodes[1]: retryd repeats RESOURCE_EXHAUSTED only if the server said when",
        ),
        (with(json!({"retryableStatusCodes": [0]})), "retryableStatusCodes[0]: OK is no failure"),
        (
            with(json!({"retryableStatusCodes": ["ok"]})),
            "retryableStatusCodes[0]: OK is no failure",
        ),
        (
            with(json!({"perAttemptRecvTimeout": "1s"})),
            "perAttemptRecvTimeout: a policy has no timeouts",
        ),
        (with(json!({"jitter": 1})), "retryPolicy.jitter: retryd does not know this key"),
        (
            r#"{"methodConfig": [{"name": [{}], "hedgingPolicy": {"maxAttempts": 2}}]}"#.into(),
            "methodConfig[0].hedgingPolicy: a policy is asked after a failure and cannot hedge",
        ),
        (
            r#"{"methodConfig": [{"name": [{}], "timeout": "1s"}]}"#.into(),
            "1:34: methodConfig[0].timeout: a policy has no timeouts",
        ),
        (
            r#"{"methodConfig": [{"name": [{}], "waitForReady": true}]}"#.into(),
            "waitForReady: a policy is asked after a failure",
        ),
        (
            r#"{"methodConfig": [{"name": [{}], "maxRequestMessageBytes": 1}]}"#.into(),
            "maxRequestMessageBytes: no matter of retries",
        ),
        (
            r#"{"methodConfig": [{"name": [{}], "maxResponseMessageBytes": 1}]}"#.into(),
            "maxResponseMessageBytes: no matter of retries",
        ),
        (
            r#"{"methodConfig": [{"name": [{}], "retrypolicy": {}}]}"#.into(),
            "methodConfig[0].retrypolicy: retryd does not know this key",
        ),
        (
            r#"{"methodConfig": [{"name": [{"services": "a"}]}]}"#.into(),
            "name[0].services: retryd does not know this key",
        ),
        (
            r#"{"methodConfig": [{"name": []}]}"#.into(),
            "methodConfig[0]: it has no `name`, and gRPC skips it",
        ),
        (r#"{"methodConfig": [{}]}"#.into(), "methodConfig[0]: it has no `name`"),
        (r#"{"loadBalancingConfig": []}"#.into(), "loadBalancingConfig: no matter of retries"),
        (
            r#"{"loadBalancingPolicy": "round_robin"}"#.into(),
            "loadBalancingPolicy: no matter of retries",
        ),
        (r#"{"healthCheckConfig": {}}"#.into(), "healthCheckConfig: no matter of retries"),
        (r#"{"method_config": []}"#.into(), "method_config: gRPC does not read this spelling"),
        (
            r#"{"retryThrottling": {"maxTokens": 10, "tokenRatio": 1, "x": 1}}"#.into(),
            "retryThrottling.x: retryd does not know this key",
        ),
        ("{\"a\\u001bb\": 1}".into(), "`a\\u{1b}b`: retryd does not know this key"),
    ];
    for (input, expected) in cases {
        let (_, ended) = imported(GRPC, &input);
        assert_eq!(ended.code, 1, "{input}\n{}", ended.err);
        let told = ended.err.lines().filter(|line| line.starts_with("cannot be said: -:"));
        assert!(told.clone().any(|line| line.contains(expected)), "{input}: {}", ended.err);
        // The file says so, too.
        assert!(ended.out.contains(expected), "{input}: {}", ended.out);
    }
}

#[test]
fn what_differs_from_grpc_everywhere_is_a_note() {
    let idempotency = "note: gRPC repeats a listed status whatever the method does";
    let not_repeated = "note: gRPC repeats nothing without a retry policy";
    let throttle = "note: gRPC keeps one throttle for each client process and server name";
    let cases = [
        (
            grpc_policy(json!({})),
            vec![
                idempotency,
                not_repeated,
                "note: gRPC waits 0.8 to 1.2 times",
                "note: a pushback of the server only delays",
            ],
        ),
        (
            grpc_policy(json!({"maxAttempts": 6})),
            vec!["note: gRPC takes more than 5 `maxAttempts` for 5"],
        ),
        ("{}".to_owned(), vec![not_repeated]),
        (
            r#"{"retryThrottling": {"maxTokens": 3, "tokenRatio": 1}}"#.to_owned(),
            vec![throttle, "note: failures that were never sent count in a throttle"],
        ),
        (
            r#"{"retryThrottling": {"maxTokens": 2, "tokenRatio": 1}}"#.to_owned(),
            vec!["note: a throttle of less than 3 tokens never grants"],
        ),
    ];
    for (input, expected) in cases {
        let (_, ended) = imported(GRPC, &input);
        assert_eq!(ended.code, 0, "{input}\n{}", ended.err);
        for note in expected {
            assert!(ended.err.contains(note), "{input} lacks {note}: {}", ended.err);
        }
    }
    assert!(!imported(GRPC, "{}").1.err.contains(idempotency));
}

#[test]
fn a_service_config_that_grpc_refuses_is_refused_with_every_place() {
    let cases: [(String, &[&str]); 14] = [
        (
            "{\"methodConfig\": [{\"name\": [{\"method\": \"Do\"}], \"retryPolicy\": {\n\"maxAttempts\": 1,\n\"initialBackoff\": \"0s\",\n\"maxBackoff\": 5,\n\"backoffMultiplier\": -1,\n\"retryableStatusCodes\": [17, \"UNAVAILBLE\"]}}]}".into(),
            &["-:1:29", "-:2:16", "-:3:19", "-:4:15", "-:5:22", "-:6:26", "-:6:30",
              "`methodConfig[0].retryPolicy.maxAttempts` must be a whole number from 2",
              "must be a duration above 0", "must be a number above 0", "has a `method` without a `service`",
              "must be a whole number from 0 to 16", "is no status of gRPC: `UNAVAILBLE`"],
        ),
        (r#"{"methodConfig": [{"name": [{}], "retryPolicy": {}}]}"#.into(), &["needs `maxAttempts`", "needs `initialBackoff`", "needs `maxBackoff`", "needs `backoffMultiplier`", "needs `retryableStatusCodes`"]),
        (grpc_policy(json!({"retryableStatusCodes": []})), &["must list a status"]),
        (grpc_policy(json!({"retryableStatusCodes": "UNAVAILABLE"})), &["must be a list, not text"]),
        (r#"{"methodConfig": [{"name": [{"service": "a"}, {"service": "a", "method": ""}]}]}"#.into(), &["names `a/*` a second time", "-:1:47"]),
        (r#"{"methodConfig": [{"name": [{"service": "a*"}]}]}"#.into(), &["is no name of gRPC: `a*`"]),
        (r#"{"methodConfig": [{"name": [{"service": 1}]}]}"#.into(), &["must be text, not a number"]),
        (r#"{"methodConfig": [{"name": [{}], "retryPolicy": {}, "hedgingPolicy": {}}]}"#.into(), &["stands beside a `retryPolicy`"]),
        (r#"{"retryThrottling": {"maxTokens": 1001, "tokenRatio": 0}}"#.into(), &["maxTokens` must be a whole number from 1 to 1000", "tokenRatio` must be a number above 0"]),
        (r#"{"retryThrottling": {"maxTokens": 10.5, "tokenRatio": 0.0009}}"#.into(), &["maxTokens` must be a whole number", "must be at least 0.001"]),
        (r#"[{"serviceConfig": {}}]"#.into(), &["this is a list of choices (gRFC A2)"]),
        ("{}\n---\n{}".into(), &["a service config is one mapping"]),
        (r#"{"methodConfig": [{}], "methodConfig": []}"#.into(), &["stands here a second time", "-:1:24"]),
        ("{".into(), &["-:1:"]),
    ];
    for (input, expected) in cases {
        let ended = retryd(&["import", GRPC, "-"], &input);
        assert_eq!((ended.code, ended.out.as_str()), (2, ""), "{input}\n{}", ended.err);
        for words in expected {
            assert!(ended.err.contains(words), "{input} lacks {words}: {}", ended.err);
        }
    }
    let ended = retryd(&["import", GRPC, "no-such-file"], "");
    assert_eq!(ended.code, 2);
    assert!(ended.err.contains("no-such-file"), "{}", ended.err);
}

#[test]
fn a_file_that_no_policy_file_can_hold_is_refused() {
    let names: Vec<Value> =
        (0..1_000).map(|place| json!({"service": format!("s{place}")})).collect();
    let input = json!({"methodConfig": [{"name": names}]}).to_string();
    let ended = retryd(&["import", GRPC, "-"], &input);
    assert_eq!((ended.code, ended.out.as_str()), (2, ""), "{}", ended.err);
    assert!(ended.err.contains("more than 1000 policies"), "{}", ended.err);
}

/// gRPC takes the most specific name wherever it stands; a policy file is read from its top.
#[test]
fn policies_stand_in_the_order_of_their_names() {
    let retry = |attempts: u32| {
        json!({"maxAttempts": attempts, "initialBackoff": "1s", "maxBackoff": "1s",
               "backoffMultiplier": 1, "retryableStatusCodes": ["ABORTED"]})
    };
    let input = json!({"methodConfig": [
        {"name": [{}], "retryPolicy": retry(2)},
        {"name": [{"service": "a.B"}], "retryPolicy": retry(3)},
        {"name": [{"service": "a.B", "method": "Do"}, {"service": "c.D", "method": "Do"}], "retryPolicy": retry(4)},
        {"name": [{"service": "c.D"}]},
    ]});
    let (policies, _) = imported(GRPC, &input.to_string());
    for (operation, attempts) in
        [("a.B/Do", 4), ("a.B/Else", 3), ("c.D/Do", 4), ("c.D/Else", 1), ("e.F/Do", 2)]
    {
        let rules = policies.find("any", operation).rules;
        assert_eq!(rules.attempts_max, attempts, "{operation}");
    }
}

/// A route configuration of Envoy whose only route has this retry policy.
fn envoy_policy(policy: &Value) -> String {
    json!({"virtual_hosts": [{"domains": ["*"], "routes": [
        {"match": {"prefix": "/"}, "route": {"cluster": "c", "retry_policy": policy}}]}]})
    .to_string()
}

#[test]
fn what_a_policy_cannot_say_of_a_route_is_listed() {
    let with = |policy: Value| envoy_policy(&policy);
    let route = |matching: Value| {
        json!({"virtualHosts": [{"routes": [{"match": matching, "route": {}}]}]}).to_string()
    };
    let cases = [
        (with(json!({"retry_on": "5xx"})), "retry_on: retryd never repeats 501, 505, 506, 508, 510, 511"),
        (with(json!({"retry_on": "cancelled"})), "`cancelled`: retryd never repeats it"),
        (with(json!({"retry_on": "resource-exhausted"})), "`resource-exhausted`: retryd repeats it only if"),
        (with(json!({"retry_on": "retriable-headers"})), "`retriable-headers`: a policy cannot look at"),
        (with(json!({"retry_on": "reset-before-request"})), "`reset-before-request`: retryd has no name for that failure"),
        (with(json!({"retry_on": "envoy-ratelimited"})), "`envoy-ratelimited`: retryd has no name"),
        (with(json!({"retry_on": "http3-post-connect-failure"})), "`http3-post-connect-failure`: retryd has no name"),
        (with(json!({"retry_on": "5xxx"})), "`5xxx`: retryd does not know this word"),
        (with(json!({"retriable_status_codes": [503]})), "retriable_status_codes: without `retriable-status-codes`"),
        (with(json!({"retry_on": "retriable-status-codes", "retriableStatusCodes": [400]})), "retriableStatusCodes[0]: retryd never repeats 400"),
        (with(json!({"per_try_timeout": "1s"})), "per_try_timeout: a policy has no timeouts"),
        (with(json!({"perTryIdleTimeout": "1s"})), "perTryIdleTimeout: a policy has no timeouts"),
        (with(json!({"retriable_headers": []})), "retriable_headers: a policy cannot look at the headers of a response"),
        (with(json!({"retry_priority": {}})), "retry_priority: which host gets the next attempt"),
        (with(json!({"retry_options_predicates": []})), "retry_options_predicates: which host"),
        (with(json!({"retriable_request_headers": []})), "retriable_request_headers: a policy cannot look at a request"),
        (with(json!({"retries": 1})), "retry_policy.retries: retryd does not know this key"),
        (with(json!({"retry_back_off": {"base_interval": "1s", "x": 1}})), "retry_back_off.x: retryd does not know"),
        (with(json!({"rate_limited_retry_back_off": {"reset_headers": [{"name": "Retry-After", "format": "UNIX_TIMESTAMP"}]}})), "reset_headers[0]: of the headers that say when"),
        (with(json!({"rate_limited_retry_back_off": {"x": 1}})), "rate_limited_retry_back_off.x: retryd does not know"),
        (route(json!({"prefix": "/a", "headers": []})), "match.headers: a policy matches names alone"),
        (route(json!({"safe_regex": {"regex": ".*"}})), "match.safe_regex: a policy matches names alone"),
        (route(json!({})), "match: it has no path that a policy could match"),
        (route(json!({"prefix": "/a", "case_sensitive": false})), "case_sensitive: names are compared byte by byte"),
        (route(json!({"path_separated_prefix": "/a"})), "path_separated_prefix: the policy is for what is below"),
        (json!({"virtual_hosts": [{"domains": ["shop.test"], "routes": []}]}).to_string(), "domains: a policy knows no domains"),
        (json!({"virtual_hosts": [{"retry_policy_typed_config": {}, "routes": []}]}).to_string(), "typed_config: retryd does not read extensions"),
        (json!({"virtual_hosts": [{"routes": [{"match": {"prefix": "/"}}, {"match": {"path": "/a"}}]}]}).to_string(), "routes[1]: a route above it matches all of that"),
        (json!({"virtual_hosts": [{"routes": [{"match": {"prefix": "/"}, "route": {"timeout": "1s"}}]}]}).to_string(), "route.timeout: a policy has no timeouts"),
        (json!({"virtual_hosts": [{"routes": [{"match": {"prefix": "/"}, "route": {"idle_timeout": "1s"}}]}]}).to_string(), "route.idle_timeout: a policy has no timeouts"),
        (json!({"virtual_hosts": [{"routes": [{"match": {"prefix": "/"}, "route": {"hedge_policy": {}}}]}]}).to_string(), "hedge_policy: a policy is asked after a failure"),
        (json!({"virtual_hosts": [], "clusters": [{"circuit_breakers": {"thresholds": [{"retry_budget": {}}]}}]}).to_string(), "thresholds[0].retry_budget: Envoy counts retries in flight"),
        (json!({"virtual_hosts": [], "clusters": [{"circuit_breakers": {"thresholds": [{"maxRetries": 3}]}}]}).to_string(), "thresholds[0].maxRetries: Envoy counts retries in flight"),
    ];
    for (input, expected) in cases {
        let (_, ended) = imported("envoy", &input);
        assert_eq!(ended.code, 1, "{input}\n{}", ended.err);
        let told = ended.err.lines().filter(|line| line.starts_with("cannot be said: -:"));
        assert!(told.clone().any(|line| line.contains(expected)), "{input}: {}", ended.err);
    }
    // What a policy cannot look at must not make it repeat more.
    let guarded = json!({"retry_on": "reset", "retriable_request_headers": [{"name": "x"}]});
    let (policies, _) = imported("envoy", &envoy_policy(&guarded));
    assert_eq!(policies.find("t", "/").rules.attempts_max, 1);
}

#[test]
fn a_route_is_said_as_far_as_it_goes() {
    let whole = json!({"retryOn": "gateway-error", "numRetries": "2", "retry_back_off": {"base_interval": "0.2s"}});
    let (policies, ended) = imported("envoy", &envoy_policy(&whole));
    assert_eq!(ended.code, 0, "{}", ended.err);
    let rules = policies.find("t", "anything").rules;
    assert_eq!((rules.attempts_max, rules.backoff.base_ms, rules.backoff.max_ms), (3, 200, 2_000));
    // One retry, of waits from 25 ms, is what Envoy does by itself; without a policy it repeats nothing.
    let (policies, _) = imported("envoy", &envoy_policy(&json!({"retry_on": "reset"})));
    let rules = policies.find("t", "anything").rules;
    assert_eq!((rules.attempts_max, rules.backoff.base_ms, rules.backoff.max_ms), (2, 25, 250));
    let none = r#"{"virtual_hosts": [{"routes": [{"match": {"prefix": "/"}}]}]}"#;
    assert_eq!(imported("envoy", none).0.find("t", "x").rules.attempts_max, 1);
}

#[test]
fn a_route_configuration_that_envoy_refuses_is_refused() {
    let cases = [
        ("{}".to_owned(), "there are no `virtual_hosts` in it"),
        (
            r#"{"virtual_hosts": [{"routes": [{}]}]}"#.to_owned(),
            "`virtual_hosts[0].routes[0]` needs `match`",
        ),
        (
            r#"{"virtual_hosts": [{"routes": [{"match": {"path": "/*"}}]}]}"#.to_owned(),
            "has a character that no path has",
        ),
        (
            envoy_policy(&json!({"num_retries": -1})),
            "num_retries` must be a whole number from 0 to 999",
        ),
        (envoy_policy(&json!({"retry_on": 5})), "retry_on` must be text"),
        (envoy_policy(&json!({"retry_back_off": {}})), "retry_back_off` needs `base_interval`"),
        (
            envoy_policy(&json!({"retry_back_off": {"base_interval": "0s"}})),
            "must be a duration above 0",
        ),
        (
            envoy_policy(&json!({"retry_back_off": {"base_interval": "2s", "max_interval": "1s"}})),
            "must not be below `base_interval`",
        ),
    ];
    for (input, expected) in cases {
        let ended = retryd(&["import", "envoy", "-"], &input);
        assert_eq!((ended.code, ended.out.as_str()), (2, ""), "{input}\n{}", ended.err);
        assert!(ended.err.contains(expected), "{input}: {}", ended.err);
    }
}

/// A temporary file with these bytes.
fn file(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

fn exported(policy: &str, options: &[&str]) -> (Value, Ended) {
    let file = file(policy);
    let path = file.path().to_str().unwrap();
    let ended = retryd(&[&["export", GRPC, "--policy", path], options].concat(), "");
    assert_eq!(ended.code, 0, "{}", ended.err);
    (serde_json::from_str(&ended.out).unwrap(), ended)
}

#[test]
fn without_a_policy_file_the_embedded_one_is_exported() {
    let ended = retryd(&["export", GRPC], "");
    assert_eq!(ended.code, 0, "{}", ended.err);
    let config: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(config["methodConfig"], json!([{"name": [{}]}]));
    assert_eq!(config["retryThrottling"], json!({"maxTokens": 10, "tokenRatio": 0.1}));
}

const POLICY: &str = r#"
version: 1
budgets:
  - {name: share, scope: tenant}
policies:
  - name: catalog
    match: {operation: catalog.v1.Catalog/*}
    max_attempts: 9
    backoff: {base: 0s, max: 1m30s, multiplier: 1.6}
    retry_on: {grpc: [UNAVAILABLE, ABORTED, RESOURCE_EXHAUSTED]}
    budgets: [share]
  - name: charge
    match: {operation: payments.v1.Payments/Charge}
    refusal_statuses: {grpc: [UNAVAILABLE]}
  - name: once
    match: {operation: payments.v1.Payments/*}
    max_attempts: 1
  - name: rest
"#;

#[test]
fn what_is_not_proven_is_not_repeated() {
    let (config, ended) = exported(POLICY, &[]);
    let expected = json!([
        // A status that the policy takes as proof.
        {"name": [{"service": "payments.v1.Payments", "method": "Charge"}],
         "retryPolicy": {"maxAttempts": 3, "initialBackoff": "0.1s", "maxBackoff": "5s",
                         "backoffMultiplier": 2.0, "retryableStatusCodes": ["UNAVAILABLE"]}},
        {"name": [{"service": "catalog.v1.Catalog"}]},
        {"name": [{"service": "payments.v1.Payments"}]},
        {"name": [{}]},
    ]);
    assert_eq!(config["methodConfig"], expected);
    for line in [
        "cannot be said: `catalog.v1.Catalog/*`: UNAVAILABLE does not prove that nothing was done",
        "cannot be said: `catalog.v1.Catalog/*`: RESOURCE_EXHAUSTED is repeated only with a hint",
        "cannot be said: `catalog.v1.Catalog/*`: `max_attempts: 9` is more than 5",
        "cannot be said: budget `share`: clients cannot keep it without retryd; a throttle of 10 tokens",
        "note: while retryd answers, its clients switch the retries of gRPC off",
        "note: what never left the client",
        "note: gRPC waits 0.8 to 1.2 times the backoff",
    ] {
        assert!(ended.err.contains(line), "no {line}: {}", ended.err);
    }
}

#[test]
fn an_operation_that_is_vouched_for_is_repeated() {
    let (config, ended) = exported(POLICY, &["--idempotent", "catalog.v1.Catalog/*"]);
    let short = "cannot be said: `catalog.v1.Catalog/*`: waits below 10ms";
    assert!(ended.err.contains(short), "{}", ended.err);
    let catalog = json!({"maxAttempts": 5, "initialBackoff": "0.01s", "maxBackoff": "90s",
        "backoffMultiplier": 1.6, "retryableStatusCodes": ["ABORTED", "UNAVAILABLE"]});
    assert_eq!(config["methodConfig"][1]["retryPolicy"], catalog);
    assert_eq!(config["methodConfig"][3]["retryPolicy"], Value::Null);

    // One that the file does not name has an entry of its own.
    let (config, _) = exported(POLICY, &["--idempotent", "stock.v1.Stock/Count"]);
    let count = &config["methodConfig"][1];
    assert_eq!(count["name"], json!([{"service": "stock.v1.Stock", "method": "Count"}]));
    assert_eq!(count["retryPolicy"]["maxAttempts"], 3);
    let ended = retryd(&["export", GRPC, "--idempotent", "GET /orders"], "");
    assert_eq!(ended.code, 2);
    assert!(ended.err.contains("pkg.Service/Method"), "{}", ended.err);
}

/// A name stands for calls of several policies: none of them allows what the fallback does not.
#[test]
fn the_strictest_of_the_policies_holds() {
    let retry = "retry_on: {grpc: [UNAVAILABLE, ABORTED]}";
    let cases = [
        // Of one tenant, which gRPC cannot see.
        ("{name: a, match: {tenant: x}, max_attempts: 1}", Value::Null, "is for some tenants"),
        ("{name: a, match: {tenant: x}, max_attempts: 2}", json!(2), "is for some tenants"),
        // Of some methods, which gRPC cannot name.
        ("{name: a, match: {operation: \"*/Get*\"}, max_attempts: 2}", json!(2), "is for `*/Get*`"),
        // Not met: it begins otherwise.
        ("{name: a, match: {operation: \"other*\"}, max_attempts: 2}", json!(4), "is for `other*`"),
        (
            "{name: a, match: {operation: \"*/Other\", tenant: x}, max_attempts: 1}",
            Value::Null,
            "is for some tenants",
        ),
        // It only observes.
        ("{name: a, match: {operation: pkg.Svc/*}, mode: shadow}", Value::Null, "only observes"),
    ];
    for (policy, attempts, words) in cases {
        let file = format!(
            "version: 1\npolicies:\n  - {policy}\n  - {{name: b, max_attempts: 4, {retry}}}\n"
        );
        let (config, ended) = exported(&file, &["--idempotent", "*", "--idempotent", "pkg.Svc/*"]);
        let service = config["methodConfig"]
            .as_array()
            .unwrap()
            .iter()
            .find(|entry| entry["name"][0]["service"] == "pkg.Svc")
            .unwrap();
        assert_eq!(service["retryPolicy"]["maxAttempts"], attempts, "{policy}: {config}");
        assert!(ended.err.contains(words), "{policy}: {}", ended.err);
    }
    // Statuses: only those of all.
    let file = format!(
        "version: 1\npolicies:\n  - {{name: a, match: {{tenant: x}}, retry_on: {{grpc: [ABORTED, UNKNOWN]}}}}\n  - {{name: b, {retry}}}\n"
    );
    let (config, _) = exported(&file, &["--idempotent", "*"]);
    assert_eq!(
        config["methodConfig"][0]["retryPolicy"]["retryableStatusCodes"],
        json!(["ABORTED"])
    );
}

#[test]
fn one_throttle_is_kept_and_two_are_not() {
    let one = "version: 1\nbudgets: [{name: t, scope: global, throttle: {max_tokens: 100, token_ratio: 0.546}}]\npolicies: [{name: a, budgets: [t]}]\n";
    let (config, ended) = exported(one, &[]);
    assert_eq!(config["retryThrottling"], json!({"maxTokens": 100, "tokenRatio": 0.546}));
    assert!(!ended.err.contains("budget `t`"), "{}", ended.err);
    let two = one.replace(
        "budgets: [{",
        "budgets: [{name: u, scope: global, throttle: {max_tokens: 50, token_ratio: 1}}, {",
    );
    let (config, ended) = exported(&two, &[]);
    assert_eq!(config["retryThrottling"], json!({"maxTokens": 10, "tokenRatio": 0.1}));
    for budget in ["budget `t`", "budget `u`"] {
        assert!(ended.err.contains(budget), "{}", ended.err);
    }
}

#[test]
fn what_was_imported_is_exported_again() {
    let config = json!({
        "methodConfig": [
            {"name": [{"service": "a.B", "method": "Do"}],
             "retryPolicy": {"maxAttempts": 4, "initialBackoff": "0.1s", "maxBackoff": "1s",
                             "backoffMultiplier": 2.0, "retryableStatusCodes": ["ABORTED", "UNAVAILABLE"]}},
            {"name": [{"service": "a.B"}]},
            {"name": [{}],
             "retryPolicy": {"maxAttempts": 2, "initialBackoff": "0.05s", "maxBackoff": "90s",
                             "backoffMultiplier": 1.125, "retryableStatusCodes": ["INTERNAL"]}},
        ],
        "retryThrottling": {"maxTokens": 10, "tokenRatio": 0.1},
    });
    let (_, ended) = imported(GRPC, &config.to_string());
    assert_eq!(ended.code, 0, "{}", ended.err);
    let (again, _) = exported(&ended.out, &["--idempotent", "*"]);
    assert_eq!(again, config);
}

#[test]
fn what_was_exported_is_imported() {
    for options in [&[][..], &["--idempotent", "*"]] {
        let example = fs::read_to_string(samples().join("../policies/example.yaml")).unwrap();
        for policy in [POLICY, &example] {
            let (config, _) = exported(policy, options);
            let (policies, ended) = imported(GRPC, &config.to_string());
            assert_eq!(ended.code, 0, "{}", ended.err);
            assert_eq!(
                policies.policies().count(),
                config["methodConfig"].as_array().unwrap().len()
            );
        }
    }
}

#[test]
fn bad_use() {
    for arguments in [
        &["import"][..],
        &["import", GRPC],
        &["import", "nginx", "-"],
        &["export"],
        &["export", GRPC, "--policy", "no-such-file"],
    ] {
        let ended = retryd(arguments, "");
        assert_eq!(ended.code, 2, "{arguments:?}: {}", ended.err);
        assert!(ended.err.contains("error"), "{arguments:?}: {}", ended.err);
    }
}
