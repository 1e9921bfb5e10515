//! Scenario files that are refused, and why.
use retryd::simulate::Scenario;

fn refused(text: &str) -> String {
    Scenario::parse("s.yaml", text.as_bytes()).unwrap_err().to_string()
}

#[test]
fn every_wrong_value_is_named_with_its_path() {
    let report = refused(
        "
duration: 5
clients: {count: 0, spread: uniform, without_key_percent: 101, deadline: 1.5s}
service: {workers: few, queue: -1}
outage: {work_percent: 0, from: 2h}
recovered: {for: 10ms}
retryd: {replicas: 0, question: 1}
grid: {clients: [20, none], outage: [5]}
",
    );
    for key in [
        "`duration`",
        "`clients.count`",
        "`clients.spread` must be random or even",
        "`clients.without_key_percent` must be a whole number from 0 to 100, not `101`",
        "`clients.deadline`",
        "`service.workers` must be a whole number from 1 to 100000, not the text `few`",
        "`service.queue`",
        "`outage.work_percent`",
        "`outage.from` must be a duration from 0s to 1h",
        "`recovered.for`",
        "`retryd.replicas`",
        "`retryd.question`",
        "`grid.clients`",
        "`grid.outage`",
    ] {
        assert!(report.contains(key), "{key}: {report}");
    }
    assert!(report.contains("s.yaml:4:"), "with its line: {report}");
}

#[test]
fn unknown_keys_and_other_shapes_are_refused() {
    for (text, told) in [
        ("clients: {clients: 3}", "unknown key `clients`"),
        ("outages: {}", "unknown key `outages`; did you mean `outage`?"),
        ("duration:", "this key has no value"),
        ("clients: []", "wrong type"),
        ("grid: {clients: 3}", "wrong type: a list is expected here"),
        ("duration: 1m\nduration: 2m", "a second time"),
    ] {
        let report = refused(text);
        assert!(report.contains(told), "{text}: {report}");
    }
}

#[test]
fn what_holds_between_keys_is_checked() {
    for (text, told) in [
        ("clients: {attempt_timeout: 6s}", "`clients.deadline` is shorter"),
        ("duration: 75s\ngrid: {outage: [41s]}", "`duration` is too short"),
        ("duration: 1h\ngrid: {calls_per_second: [100000]}", "more than 10000000 calls"),
        (
            "grid: {clients: [1,2,3,4,5,6,7,8,9,10], without_key_percent: [1,2,3,4,5,6,7,8,9,10,11,12,13]}",
            "`grid` has 1040 points; at most 1000",
        ),
    ] {
        let report = refused(text);
        assert!(report.contains(told), "{text}: {report}");
    }
}

#[test]
fn the_policy_is_checked_as_a_policy_file_is() {
    let report = refused(
        "retryd:\n  policy: |\n    version: 1\n    policies:\n      - name: A\n        budgets: [none]\n",
    );
    assert!(report.contains("`retryd.policy`, line 3 of it: a name is"), "{report}");
    assert!(report.contains("`retryd.policy`, line 4 of it: "), "{report}");
    // What is no text is refused as that, and not read as a policy file too.
    let report = refused("retryd: {policy: 3}");
    assert!(report.contains("`retryd.policy` must be text"), "{report}");
    assert_eq!(report.matches("retryd.policy").count(), 1, "{report}");
}

#[test]
fn what_a_file_does_not_say_keeps_its_default() {
    assert_eq!(Scenario::parse("s.yaml", b"").unwrap(), Scenario::default());
    let scenario = Scenario::parse("s.yaml", b"clients: {count: 7}").unwrap();
    assert_eq!(scenario.clients.count, 7);
    let mut default = Scenario::default();
    default.clients.count = 7;
    assert_eq!(scenario, default);
}
