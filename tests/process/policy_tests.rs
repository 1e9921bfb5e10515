//! `retryd test`: cases beside a policy, what fails of them, and how bad files are refused.
use std::{fs, path::PathBuf, process::Command};

use quick_junit::{NonSuccessKind, Report, TestCaseStatus};

/// A folder of a test's own.
struct Folder(PathBuf);

impl Folder {
    /// With a policy whose wait is exact, and whose tenants have ten retries a second.
    fn new(name: &str) -> Folder {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("policy-tests").join(name);
        fs::remove_dir_all(&folder).ok();
        fs::create_dir_all(&folder).unwrap();
        let folder = Folder(folder);
        folder.write("policy.yaml", POLICY);
        folder
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }

    /// The output of `retryd test` on the folder, with its path as `DIR`.
    fn test(&self, arguments: &[&str]) -> (i32, String, String) {
        let ended = Command::new(env!("CARGO_BIN_EXE_retryd"))
            .args(["test", self.path()])
            .args(arguments)
            .output()
            .unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().replace(self.path(), "DIR");
        (ended.status.code().unwrap(), text(ended.stdout), text(ended.stderr))
    }
}

const POLICY: &str = "\
version: 1
budgets:
  - name: per-tenant
    scope: tenant
    ratio: {percent: 20, interval: 10s, min_retry_rate: {count: 10, interval: 1s}}
policies:
  - name: spread
    match: {operation: spread}
    backoff: {base: 100ms, jitter: full}
    max_attempts: 5
  - name: everything
    backoff: {base: 100ms, jitter: none}
    budgets: [per-tenant]
";

const BASE: &str = "\
base:
  tenant: shop
  operation: op
  attempts_made: 1
  body_replayable: true
  failure: {category: CONNECT}
cases:
";

/// What `cases` end with, on [`BASE`].
#[track_caller]
fn passes(name: &str, cases: &str) {
    let folder = Folder::new(name);
    folder.write("a.test.yaml", &format!("{BASE}{cases}"));
    let (code, out, error) = folder.test(&[]);
    assert_eq!((code, &*error), (0, ""), "{out}");
}

#[test]
fn the_examples_pass() {
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/policies");
    let ended =
        Command::new(env!("CARGO_BIN_EXE_retryd")).args(["test", examples]).output().unwrap();
    let out = String::from_utf8(ended.stdout).unwrap();
    assert_eq!(ended.status.code(), Some(0), "{out}");
    assert!(out.ends_with("\n21 passed\n"), "{out}");
}

#[test]
fn the_file_in_the_readme_passes() {
    let readme = include_str!("../../README.md");
    let (_, block) = readme.split_once("```yaml\nbase:").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    let folder = Folder::new("readme");
    folder.write("policy.yaml", include_str!("../../examples/policies/policy.yaml"));
    folder.write("readme.test.yaml", &format!("base:{block}"));
    assert_eq!(
        folder.test(&[]),
        (0, "DIR/readme.test.yaml: 4 passed\n\n4 passed\n".to_owned(), String::new())
    );
}

#[test]
fn a_folder_is_searched_and_summed_up() {
    let folder = Folder::new("summed-up");
    let yes = format!("{BASE}  - {{name: yes, expect: {{verdict: RETRY}}}}\n");
    folder.write("b.test.yaml", &yes);
    folder.write("deep/er/a.test.yml", &format!("policy: ../../policy.yaml\n{yes}"));
    folder.write(".hidden/a.test.yaml", "not: read");
    folder.write("notes.yaml", "not: read");
    let (code, out, error) = folder.test(&[]);
    assert_eq!((code, &*error), (0, ""));
    assert_eq!(out, "DIR/b.test.yaml: 1 passed\nDIR/deep/er/a.test.yml: 1 passed\n\n2 passed\n");

    // The same file by another way is one file; further folders are added.
    let other = Folder::new("summed-up-other");
    other.write("a.test.yaml", &yes);
    let file = folder.0.join("b.test.yaml");
    let (_, out, _) = folder.test(&[file.to_str().unwrap(), other.path()]);
    assert!(out.ends_with("\n3 passed\n"), "{out}");
}

#[test]
fn what_differs_is_told_and_nothing_else() {
    let folder = Folder::new("differs");
    let cases = "
  - name: right
    expect: {reason: RETRYABLE}
  - name: wrong answer
    context: {body_replayable: false}
    expect: {verdict: RETRY, reason: REASON_RETRYABLE, delay: 1m30s, policy: everything}
  - name: wrong history
    before:
      - {ask: {}, repeat: 20, granted: 11}
      - {ask: {}, repeat: 2, expect: {verdict: RETRY}}
    expect: {budget: {retries_available: 3}, delay_source: null, failure_class: TRANSIENT}
  - name: wrong budget
    context: {operation: spread}
    expect: {budget: {retries_available: 3}}
";
    folder.write("a.test.yaml", &format!("{BASE}{cases}"));
    let (code, out, error) = folder.test(&[]);
    let expected = "\
DIR/a.test.yaml: 1 passed, 3 failed

FAILED DIR/a.test.yaml:11: wrong answer
  verdict: expected RETRY, got DO_NOT_RETRY
  reason: expected RETRYABLE, got BODY_NOT_REPLAYABLE
  delay: expected 1m30s, got none
  BODY_NOT_REPLAYABLE saw: body_replayable false

FAILED DIR/a.test.yaml:14: wrong history
  before[0] (line 16): granted: expected 11, got 10
  before[1] (line 17), time 1: verdict: expected RETRY, got DO_NOT_RETRY
  budget.retries_available: expected 3, got 0
  BUDGET_EXHAUSTED saw: budget per-tenant would not grant one more retry

FAILED DIR/a.test.yaml:19: wrong budget
  budget: expected {retries_available: 3}, got none

1 passed, 3 failed
";
    assert_eq!((code, &*error, &*out), (1, "", expected));
}

#[test]
fn junit_tells_the_same() {
    let folder = Folder::new("junit");
    let cases = "
  - {name: right, expect: {verdict: RETRY}}
  - {name: 'wrong <&> \"é\"', expect: {verdict: DO_NOT_RETRY}}
";
    let path = folder.write("a.test.yaml", &format!("{BASE}{cases}"));
    let file = folder.0.join("junit.xml");
    let (code, ..) = folder.test(&["--junit", file.to_str().unwrap()]);
    assert_eq!(code, 1);
    let report = Report::deserialize_from_str(&fs::read_to_string(file).unwrap()).unwrap();
    assert_eq!((report.tests, report.failures, report.errors), (2, 1, 0));
    let [suite] = &report.test_suites[..] else { panic!("{report:?}") };
    assert_eq!(suite.name.as_str(), path);
    let [right, wrong] = &suite.test_cases[..] else { panic!("{suite:?}") };
    assert_eq!(right.name.as_str(), "right");
    assert!(matches!(right.status, TestCaseStatus::Success { .. }));
    assert_eq!(wrong.name.as_str(), "wrong <&> \"é\"");
    let TestCaseStatus::NonSuccess { kind, message, description, .. } = &wrong.status else {
        panic!("{wrong:?}")
    };
    assert_eq!(*kind, NonSuccessKind::Failure);
    assert_eq!(message.as_ref().unwrap().as_str(), format!("{path}:10: 1 value differs"));
    let description = description.as_ref().unwrap().as_str();
    assert!(description.contains("verdict: expected DO_NOT_RETRY, got RETRY"), "{description}");
    let (code, _, error) = folder.test(&["--junit", "no/such/folder/junit.xml"]);
    assert_eq!(code, 2);
    assert!(error.contains("cannot write `no/such/folder/junit.xml`"), "{error}");
}

#[test]
fn budgets_drain_and_refill_along_a_history() {
    passes(
        "history",
        "
  - name: drained
    before:
      - {ask: {}, repeat: 20, granted: 10}
    expect: {reason: BUDGET_EXHAUSTED, budget: {budget: per-tenant, retries_available: 0}}
  - name: refilled
    before:
      - {ask: {}, repeat: 20, granted: 10}
      - {advance: 33ms, repeat: 3}
      - {ask: {}, granted: 0}
      - {advance: 901ms}
      - {ask: {}, repeat: 9, granted: 9}
    expect: {verdict: RETRY, budget: {retriesAvailable: 0}}
  - name: earned
    before:
      - {report: {usage: {requests: 25}}, repeat: 2, expect: {budget: {retries_capacity: 10}}}
      - {ask: {}, repeat: 30, granted: 20}
    expect: {reason: BUDGET_EXHAUSTED}
  - name: a dry run charges nothing
    context: {dry_run: true}
    before: [{ask: {dryRun: true}, repeat: 20, granted: 20}]
    expect: {verdict: RETRY}
",
    );
}

#[test]
fn cases_share_no_budget() {
    let drained = |name: &str| {
        format!(
            "  - {{name: {name}, before: [{{ask: {{}}, repeat: 10, granted: 10}}], \
             expect: {{reason: BUDGET_EXHAUSTED}}}}\n"
        )
    };
    passes("fresh", &format!("{}{}", drained("one"), drained("two")));
}

#[test]
fn asks_and_reports_of_a_history_are_about_the_tenant_of_the_case() {
    passes(
        "tenant",
        "
  - name: the same tenant
    context: {tenant: other}
    before: [{ask: {}, repeat: 10}]
    expect: {reason: BUDGET_EXHAUSTED}
  - name: another tenant
    context: {tenant: other}
    before: [{ask: {tenant: shop}, repeat: 10}, {report: {tenant: shop, usage: {requests: 99}}}]
    expect: {budget: {retries_available: 9}}
",
    );
}

#[test]
fn clock_and_draw_make_a_wait_exact() {
    passes(
        "exact",
        "
  - {name: shortest, draw: 0, context: {operation: spread}, expect: {delay: 1ms}}
  - {name: longest, draw: 4294967295, context: {operation: spread}, expect: {delay: 100ms}}
  - {name: half, draw: 50%, context: {operation: spread}, expect: {delay: 51ms}}
  - {name: half as a number, draw: 2147483648, context: {operation: spread}, expect: {delay: 51ms}}
  - {name: none given, context: {operation: spread}, expect: {delay: 0.1s}}
  - name: a date is measured from the clock
    clock: 2031-05-06T07:08:09+02:00
    context: {hint: {retryAfterHeader: 'Tue, 06 May 2031 05:09:09 GMT'}}
    expect: {delay: 1m, delay_source: SERVER_HINT}
  - name: the clock moves on
    clock: 2031-05-06T07:08:09.500+02:00
    context: {hint: {retryAfterHeader: 'Tue, 06 May 2031 05:09:09 GMT'}}
    before: [{advance: 1s500ms, repeat: 5}]
    expect: {delay: 52s}
",
    );
}

#[test]
fn contexts_are_proto_json_and_its_friendlier_spellings() {
    passes(
        "spellings",
        "
  - name: full names and lower camel case
    context:
      attemptsMade: '2'
      failure: {category: FAILURE_CATEGORY_STATUS, httpStatus: 503}
      evidence: EVIDENCE_REFUSED
      remainingDeadline: 0.300s
      usage: {period: 1.5s}
      explain: true
    expect:
      verdict: VERDICT_RETRY
      reason: REASON_RETRYABLE
      delay: 0.200s
      delaySource: DELAY_SOURCE_BACKOFF
      steps: [{rule: ATTEMPTS_EXHAUSTED}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {rule: RETRYABLE}]
  - name: short names and snake case
    context:
      attempts_made: 2
      failure: {category: STATUS, http_status: 503}
      evidence: REFUSED
      remaining_deadline: 300ms
      hint: {retry_after: 240ms}
    expect: {verdict: RETRY, delay: 240ms, delay_source: SERVER_HINT, steps: null, shadow: false, detail: ''}
  - name: null takes a field of the base away
    context: {bodyReplayable: null}
    expect: {reason: BODY_NOT_REPLAYABLE, delay: null}
  - name: a deadline that has passed
    context: {remaining_deadline: -1s}
    expect: {reason: DEADLINE_TOO_NEAR}
",
    );
}

#[test]
fn a_filter_picks_cases_by_name() {
    let folder = Folder::new("filter");
    let cases = "  - {name: good one, expect: {verdict: RETRY}}\n  - {name: bad one, expect: {verdict: DO_NOT_RETRY}}\n";
    folder.write("a.test.yaml", &format!("{BASE}{cases}"));
    let (code, out, _) = folder.test(&["--filter", "good"]);
    assert_eq!((code, &*out), (0, "DIR/a.test.yaml: 1 passed\n\n1 passed\n"));
    assert_eq!(folder.test(&["--filter", "bad"]).0, 1);
    let (code, _, error) = folder.test(&["--filter", "ugly"]);
    assert_eq!((code, &*error), (2, "error: no case has `ugly` in its name\n"));
}

/// `cases` on [`BASE`], whose first case begins in line 8, is refused with these words.
#[track_caller]
fn refused(name: &str, cases: &str, words: &[&str]) {
    refused_file(name, &format!("{BASE}{cases}\n"), words);
}

#[track_caller]
fn refused_file(name: &str, text: &str, words: &[&str]) {
    let folder = Folder::new(name);
    folder.write("a.test.yaml", text);
    let junit = folder.0.join("junit.xml");
    let (code, out, error) = folder.test(&["--junit", junit.to_str().unwrap()]);
    assert_eq!((code, &*out), (2, ""), "{error}");
    for word in words {
        assert!(error.contains(word), "no `{word}` in: {error}");
    }
    assert!(!junit.exists());
}

#[test]
fn a_bad_file_is_refused_with_the_place() {
    let case = |rest: &str| format!("  - {{name: a, {rest}}}");
    for (name, rest, words) in [
        (
            "key-case",
            "expects: {}",
            &["a.test.yaml:8:15", "unknown key `expects`; did you mean `expect`?"][..],
        ),
        (
            "key-context",
            "context: {attempts_mode: 1}, expect: {shadow: false}",
            &[":8:25", "unknown key `attempts_mode`; did you mean `attempts_made`?"],
        ),
        (
            "key-deep",
            "context: {failure: {http: 1}}, expect: {shadow: false}",
            &[":8:35", "unknown key `http`"],
        ),
        ("key-expect", "expect: {delays: 1s}", &[":8:24", "did you mean `delay`?"]),
        (
            "type-number",
            "context: {attempts_made: one}, expect: {shadow: false}",
            &[":8:40", "a number in the range of this field"],
        ),
        (
            "type-range",
            "context: {attempts_made: -1}, expect: {shadow: false}",
            &[":8:40", "a number in the range of this field"],
        ),
        (
            "type-text",
            "context: {tenant: 5}, expect: {shadow: false}",
            &[":8:33", "put it in quotes"],
        ),
        (
            "type-map",
            "context: {failure: 503}, expect: {shadow: false}",
            &[":8:34", "a mapping is expected"],
        ),
        ("type-list", "before: {}, expect: {shadow: false}", &[":8:23", "a list is expected"]),
        (
            "type-context",
            "context: 5, expect: {shadow: false}",
            &[":8:24", "a mapping is expected"],
        ),
        (
            "reason",
            "expect: {reason: BUDGET_EXAUSTED}",
            &[":8:32", "unknown name `BUDGET_EXAUSTED`; did you mean `BUDGET_EXHAUSTED`?"],
        ),
        ("reason-full", "expect: {reason: REASON_NONE}", &[":8:32", "unknown name `NONE`"]),
        (
            "duration",
            "expect: {delay: soon}",
            &[":8:31", "write a duration such as `100ms`", "not `soon`"],
        ),
        (
            "advance",
            "before: [{advance: -1s}], expect: {shadow: false}",
            &[":8:34", "`-1s` is no time that passes"],
        ),
        (
            "clock",
            "clock: yesterday, expect: {shadow: false}",
            &[":8:22", "`clock` must be a time"],
        ),
        ("draw", "draw: 4294967296, expect: {shadow: false}", &[":8:21", "`draw` must be"]),
        ("draw-percent", "draw: 101%, expect: {shadow: false}", &[":8:21", "`draw` must be"]),
        (
            "repeat",
            "before: [{ask: {}, repeat: 0}], expect: {shadow: false}",
            &[":8:42", "`repeat` must be a whole number from 1 to 1000000"],
        ),
        (
            "granted",
            "before: [{ask: {}, granted: 2}], expect: {shadow: false}",
            &[":8:43", "`granted` must be a whole number from 0 to 1"],
        ),
        (
            "granted-what",
            "before: [{advance: 1s, granted: 1}], expect: {shadow: false}",
            &[":8:47", "only an `ask` is granted"],
        ),
        (
            "step",
            "before: [{ask: {}, advance: 1s}], expect: {shadow: false}",
            &[":8:24", "one of `ask`, `report` and `advance`"],
        ),
        (
            "context",
            "context: {attempts_made: 0, failure: {http_status: 42}}, expect: {shadow: false}",
            &[":8:40", "`attempts_made` must be at least 1", ":8:66", "`failure.http_status`"],
        ),
        (
            "report",
            "before: [{report: {usage: {requests: 1000000001}}}], expect: {shadow: false}",
            &[":8:52", "`usage.requests` more than 1000000000"],
        ),
        (
            "both-spellings",
            "context: {explain: true, dry_run: true, dryRun: true}, expect: {shadow: false}",
            &[":8:5", "the key `dry_run` has been given"],
        ),
        (
            "one-of",
            "context: {failure: {http_status: 503, grpc_code: 14}}, expect: {shadow: false}",
            &[":8:34", "the key `grpc_code` has been given here, or one that excludes it"],
        ),
        ("no-expect", "context: {}", &[":8:15", "the key `expect` is missing"]),
        ("nothing", "expect: {}", &[":8:23", "`expect` names nothing"]),
    ] {
        refused(name, &case(rest), words);
    }
    let twice = "  - {name: a, expect: {shadow: false}}\n  - {name: a, expect: {shadow: false}}";
    refused("twice", twice, &[":9:12", "another case named `a`"]);
    refused("none", "  []", &["no tests found"]);
    refused_file("empty", "", &["the file is empty"]);
    refused_file(
        "base",
        "base: {tenants: a}\ncases: [{name: a, expect: {shadow: false}}]",
        &[":1:8", "unknown key `tenants`"],
    );
}

#[test]
fn a_bad_policy_is_refused_with_its_place() {
    let case = "cases: [{name: a, context: {tenant: t, operation: o, attempts_made: 1, failure: {http_status: 503}}, expect: {verdict: RETRY}}]\n";
    let folder = Folder::new("bad-policy");
    folder.write("policy.yaml", "version: 1\npolicies:\n  - {name: a, max_attempts: 0}\n");
    folder.write("a.test.yaml", case);
    folder.write("b.test.yaml", case);
    let (code, out, error) = folder.test(&[]);
    assert_eq!((code, &*out), (2, ""));
    assert_eq!(error.matches("DIR/policy.yaml:3:29").count(), 1, "{error}");

    let missing = format!("policy: other.yaml\n{case}");
    refused_file(
        "no-policy",
        &missing,
        &["a.test.yaml:1:9", "cannot read the policy", "other.yaml"],
    );
}

#[test]
fn no_tests_are_no_success() {
    let folder = Folder::new("nothing");
    let (code, _, error) = folder.test(&[]);
    assert_eq!(code, 2);
    assert_eq!(error, "error: no tests found: `DIR` holds no file `*.test.yaml`\n");
    let (code, _, error) = folder.test(&["no-such-folder"]);
    assert_eq!(code, 2, "{error}");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let folder = Folder::new("unread");
    for (verdict, expected) in [("RETRY", 0), ("DO_NOT_RETRY", 1)] {
        let case = format!("{BASE}  - {{name: a, expect: {{verdict: {verdict}}}}}\n");
        folder.write("a.test.yaml", &case);
        let ended = Command::new(env!("CARGO_BIN_EXE_retryd"))
            .args(["test", folder.path()])
            .stdout(std::io::pipe().unwrap().1)
            .output()
            .unwrap();
        let error = String::from_utf8(ended.stderr).unwrap();
        assert_eq!((ended.status.code(), &*error), (Some(expected), ""));
    }
}
