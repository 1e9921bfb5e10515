//! Policy files: what is read, and what is refused where, with which words.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that fails may panic"
)]
use std::{fs, path::Path};

use proptest::prelude::*;
use retryd::{
    budget::{Budget, BudgetId, Limits, OnStoreLoss, Scope, bucket, ratio, throttle},
    clock::Clock,
    engine::{Backoff, Categories, Category, GrpcCode, GrpcCodes, HttpStatuses, Jitter, Rules},
    policy::{
        BUDGETS_MAX, FILE_BYTES_MAX, Mode, POLICIES_MAX, Policies, Rejected, Warning, guarantee,
        shared_guarantee,
    },
};

fn parse(text: &str) -> Result<Policies, Rejected> {
    Policies::parse("policies.yaml", text.as_bytes())
}

/// The policy of a file with one policy, which has these `keys`.
fn rules(keys: &str) -> Rules {
    let file = format!("version: 1\npolicies:\n  - name: all\n    {keys}\n");
    parse(&file).unwrap_or_else(|rejected| panic!("{rejected}")).find("t", "o").rules
}

/// The budget of a file with one budget, which has these `keys`.
fn limits(keys: &str) -> Limits {
    let file = format!(
        "version: 1\nbudgets:\n  - name: one\n    scope: tenant\n    {keys}\npolicies: [{{name: all}}]\n"
    );
    parse(&file).unwrap_or_else(|rejected| panic!("{rejected}")).budgets()[0].limits
}

/// The `# expect LINE:COLUMN WORDS` lines at the head of a broken file.
fn expectations(text: &str) -> Vec<(usize, usize, &str)> {
    text.lines()
        .map_while(|line| line.strip_prefix("# expect "))
        .map(|expected| {
            let (place, words) = expected.split_once(' ').unwrap();
            let (line, column) = place.split_once(':').unwrap();
            (line.parse().unwrap(), column.parse().unwrap(), words)
        })
        .collect()
}

#[test]
fn every_broken_file_is_refused_where_it_is_broken() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/policies/broken");
    let mut wrong = Vec::new();
    let mut files = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let expected = expectations(&text);
        assert!(!expected.is_empty(), "{name} expects nothing");
        files += 1;
        let rejected = match Policies::parse(name, text.as_bytes()) {
            Ok(_) => {
                wrong.push(format!("{name} was accepted"));
                continue;
            }
            Err(rejected) => rejected,
        };
        let as_expected = expected.len() == rejected.problems().len()
            && rejected.problems().iter().zip(&expected).all(|(problem, (line, column, words))| {
                let place = problem.place.unwrap();
                (place.line, place.column) == (*line, *column) && problem.message.contains(words)
            });
        // The report for the reader says the same: file, line, column and the line itself.
        let is_told = expected.iter().all(|(line, column, words)| {
            let report = rejected.to_string();
            let itself = text.lines().nth(line - 1).unwrap().trim();
            report.contains(&format!("{name}:{line}:{column}"))
                && report.contains(words)
                && report.contains(itself)
        });
        if !as_expected || !is_told {
            wrong.push(format!("{name} expects {expected:?}, but:\n{rejected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(100 < files);
}

#[test]
fn the_example_is_read_as_it_is_written() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/policies/example.yaml");
    let policies = Policies::load(&path).unwrap();

    let ratio = |percent, count| {
        let floor = ratio::Floor { count, interval_ms: 1_000 };
        Limits::Ratio(ratio::Limits { percent, interval_ms: 10_000, floor })
    };
    let throttle = throttle::Limits { tokens_max: 10, token_ratio_thousandths: 100 };
    let bucket = bucket::Limits { capacity: 500, costs: bucket::Costs::AWS_2026 };
    let budgets: Vec<_> =
        policies.budgets().iter().map(|b| (&*b.name, b.scope, b.limits, b.on_store_loss)).collect();
    let local = OnStoreLoss::LocalShare;
    assert_eq!(
        budgets,
        [
            ("per-tenant", Scope::Tenant, ratio(20, 10), local),
            ("backstop", Scope::Global, ratio(10, 500), local),
            ("grpc-like", Scope::TenantOperation, Limits::Throttle(throttle), local),
            ("aws-like", Scope::Operation, Limits::TokenBucket(bucket), local),
        ]
    );

    let payments = policies.find("shop-eu", "payments.v1.Payments/Charge");
    assert_eq!(&*payments.name, "payments");
    assert_eq!(payments.payers.ids(), [BudgetId(0), BudgetId(2), BudgetId(1)]);
    assert_eq!(payments.mode, Mode::Enforce);
    let rules = payments.rules;
    assert_eq!(
        (rules.attempts_max, rules.min_attempt_budget_ms, rules.hint_ms_max),
        (2, 200, 300_000)
    );
    let backoff = Backoff {
        base_ms: 100,
        max_ms: 5_000,
        multiplier_thousandths: 2_000,
        jitter: Jitter::Full,
    };
    assert_eq!(rules.backoff, backoff);
    assert_eq!(rules.retry_on.statuses.http, HttpStatuses::of(&[429, 503]));
    assert_eq!(rules.retry_on.statuses.grpc, GrpcCodes::of(&[GrpcCode::Unavailable]));
    let categories = Categories::of(&[Category::Connect, Category::StreamRefused]);
    assert_eq!(rules.retry_on.categories, categories);
    assert_eq!(rules.refusal_statuses.http, HttpStatuses::of(&[425, 429]));

    for (tenant, operation) in
        [("shop-eu", "Other/Charge"), ("bank", "payments.v1.Payments/Charge"), ("", "")]
    {
        let policy = policies.find(tenant, operation);
        assert_eq!(&*policy.name, "everything-else");
        assert_eq!(policy.rules, Rules::default());
        assert_eq!(policy.payers.ids(), [BudgetId(0), BudgetId(1)]);
    }

    let callers = policies.callers().unwrap();
    assert_eq!(callers[0].identity.as_str(), "spiffe://prod.example/ns/shop/*");
    assert!(callers[0].tenants[0].matches("shop-eu"));
    assert!(policies.operators()[0].matches("spiffe://prod.example/ns/platform/sa/oncall"));
    let warnings: Vec<String> = policies.warnings().iter().map(ToString::to_string).collect();
    assert_eq!(warnings, ["no policy names budget `aws-like`"]);
}

#[test]
fn a_key_that_is_there_is_never_taken_for_absent() {
    let default = Rules::default();
    assert_eq!(rules("mode: enforce"), default);
    assert_eq!(rules("max_attempts: 1").attempts_max, 1);
    assert_eq!(rules("min_attempt_budget: 0s").min_attempt_budget_ms, 0);
    assert_eq!(rules("max_hint: 0s").hint_ms_max, 0);
    assert_eq!(rules("backoff: {base: 0s}").backoff, Backoff { base_ms: 0, ..default.backoff });
    assert_eq!(rules("backoff: {base: 500ms}").backoff.base_ms, 500);
    assert_eq!(rules("backoff: {base: 1500ms}").backoff.base_ms, 1_500);
    assert_eq!(rules("backoff: {base: 1s, max: 1s}").backoff.max_ms, 1_000);
    assert_eq!(rules("backoff: {multiplier: 1.125}").backoff.multiplier_thousandths, 1_125);
    assert_eq!(rules("backoff: {multiplier: 100}").backoff.multiplier_thousandths, 100_000);
    assert_eq!(rules("backoff: {jitter: none}").backoff.jitter, Jitter::None);

    let off = rules("retry_on: {http: [], grpc: [], failures: []}").retry_on;
    assert_eq!(off.statuses.http, HttpStatuses::of(&[]));
    assert_eq!(off.statuses.grpc, GrpcCodes::of(&[]));
    assert_eq!(off.categories, Categories::of(&[]));
    let one_list = rules("retry_on: {http: [520, 418, 404]}").retry_on;
    assert_eq!(one_list.statuses.http, HttpStatuses::of(&[404, 418, 520]));
    assert_eq!(one_list.statuses.grpc, default.retry_on.statuses.grpc);
    assert_eq!(one_list.categories, default.retry_on.categories);
    let by_number = rules("retry_on: {grpc: [14, ABORTED, 2]}").retry_on.statuses.grpc;
    let codes = [GrpcCode::Unavailable, GrpcCode::Aborted, GrpcCode::Unknown];
    assert_eq!(by_number, GrpcCodes::of(&codes));
    let refusals = rules("refusal_statuses: {http: [421, 425]}").refusal_statuses;
    assert_eq!(refusals.http, HttpStatuses::of(&[421, 425]));
    assert_eq!(refusals.grpc, default.refusal_statuses.grpc);
}

#[test]
fn budgets_take_their_defaults_and_their_limits() {
    let floor = ratio::Floor { count: 10, interval_ms: 1_000 };
    let default = ratio::Limits { percent: 20, interval_ms: 10_000, floor };
    for keys in ["", "ratio: {}", "ratio: {min_retry_rate: {}}"] {
        assert_eq!(limits(keys), Limits::Ratio(default), "{keys}");
    }
    let zero = "ratio: {percent: 0, interval: 1h, min_retry_rate: {count: 0, interval: 1h}}";
    let floor = ratio::Floor { count: 0, interval_ms: 3_600_000 };
    let hourly = ratio::Limits { percent: 0, interval_ms: 3_600_000, floor };
    assert_eq!(limits(zero), Limits::Ratio(hourly));

    let throttles = [("0.001", 1), ("0.2539", 253), ("1000.0009", 1_000_000), ("2", 2_000)];
    for (written, token_ratio_thousandths) in throttles {
        let expected = throttle::Limits { tokens_max: 3, token_ratio_thousandths };
        let keys = format!("throttle: {{max_tokens: 3, token_ratio: {written}}}");
        assert_eq!(limits(&keys), Limits::Throttle(expected), "{written}");
    }
    let own = bucket::Costs { transient: 1, throttling: 20, timeout: 3 };
    let buckets = [
        ("{}", 500, bucket::Costs::AWS_2026),
        ("{costs: aws-legacy}", 500, bucket::Costs::AWS_LEGACY),
        ("{capacity: 14}", 14, bucket::Costs::AWS_2026),
        ("{capacity: 10, costs: aws-legacy}", 10, bucket::Costs::AWS_LEGACY),
        ("{capacity: 20, costs: {transient: 1, throttling: 20, timeout: 3}}", 20, own),
    ];
    for (written, capacity, costs) in buckets {
        let expected = Limits::TokenBucket(bucket::Limits { capacity, costs });
        assert_eq!(limits(&format!("token_bucket: {written}")), expected, "{written}");
    }
}

#[test]
fn the_first_match_answers() {
    let policies = parse(
        "version: 1\npolicies:\n\
         - {name: pay, match: {tenant: 'shop-*', operation: '*/Pay'}}\n\
         - {name: shop, match: {tenant: 'shop-*'}}\n\
         - {name: pay-all, match: {operation: '*/Pay'}}\n\
         - {name: no, match: {tenant: no}}\n\
         - {name: '42', match: {tenant: '42'}}\n\
         - name: all\n",
    )
    .unwrap();
    let cases = [
        ("shop-eu", "v1/Pay", "pay"),
        ("shop-eu", "v1/List", "shop"),
        ("bank", "v1/Pay", "pay-all"),
        ("no", "v1/List", "no"),
        ("42", "v1/List", "42"),
        ("NO", "v1/List", "all"),
    ];
    for (tenant, operation, expected) in cases {
        assert_eq!(&*policies.find(tenant, operation).name, expected, "{tenant} {operation}");
    }
    assert_eq!(policies.policies().count(), 6);
    let asked = allocation_counter::measure(|| {
        assert_eq!(&*policies.find("bank", "v1/List").name, "all");
    });
    assert_eq!(asked.count_total, 0);
}

#[test]
fn what_is_perhaps_not_meant_is_said() {
    let policies = parse(
        "version: 1\nbudgets:\n- {name: own, scope: tenant}\n- {name: pair, scope: tenant_operation}\n\
         - {name: route, scope: operation}\n- {name: spare, scope: global}\npolicies:\n\
         - {name: bounded, match: {tenant: a}, budgets: [own, route]}\n\
         - {name: open, match: {tenant: b}, budgets: [own, pair], mode: shadow}\n\
         - {name: free, budgets: []}\ncallers: []\noperators: []\n",
    )
    .unwrap();
    let said: Vec<String> = policies.warnings().iter().map(ToString::to_string).collect();
    assert_eq!(said.len(), 3, "{said:?}");
    assert!(said[0].contains("`spare`"));
    assert!(said[1].contains("`open`") && said[1].contains("global or operation"));
    assert!(said[2].contains("`free`") && said[2].contains("no budget"));
    assert_eq!(policies.callers().map(<[_]>::len), Some(0), "an empty list is written, too");
    assert!(policies.policies().last().unwrap().payers.ids().is_empty());
}

#[test]
fn the_revision_is_of_the_bytes() {
    let file = "version: 1\npolicies: [{name: all}]\n";
    // printf 'version: 1\npolicies: [{name: all}]\n' | sha256sum
    assert_eq!(parse(file).unwrap().revision(), "a89183f958f4");
    let marked = parse(&format!("\u{feff}{file}")).unwrap();
    assert_ne!(marked.revision(), parse(file).unwrap().revision());
    assert!(parse(&file.replace('\n', "\r\n")).is_ok());
}

#[test]
fn aliases_are_read_and_errors_point_at_the_anchor() {
    let file = "version: 1\npolicies:\n\
                - {name: a, match: {tenant: a}, backoff: &slow {base: 1s, max: 10s}}\n\
                - {name: all, backoff: *slow, max_attempts: 7}\n";
    assert_eq!(parse(file).unwrap().find("b", "").rules.backoff.base_ms, 1_000);
    let rejected = parse(&file.replace("1s,", "2h,")).unwrap_err();
    let places: Vec<_> = rejected.problems().iter().map(|p| p.place.unwrap().line).collect();
    assert_eq!(places, [3, 3]);
}

#[test]
fn limits_of_the_file_are_kept() {
    let policies = |count: usize| {
        let narrow: String = (1..count)
            .map(|n| format!("- {{name: p{n}, match: {{tenant: 't{n}'}}, budgets: [b0]}}\n"))
            .collect();
        format!(
            "version: 1\nbudgets: [{{name: b0, scope: global}}]\npolicies:\n{narrow}- name: all\n"
        )
    };
    assert_eq!(parse(&policies(POLICIES_MAX)).unwrap().policies().count(), POLICIES_MAX);
    let rejected = parse(&policies(POLICIES_MAX + 1)).unwrap_err();
    assert!(rejected.to_string().contains("more than 1000 policies"), "{rejected}");

    let budgets = |count: usize| {
        let budgets: String =
            (0..count).map(|n| format!("- {{name: b{n}, scope: global}}\n")).collect();
        format!("version: 1\nbudgets:\n{budgets}policies: [{{name: all}}]\n")
    };
    assert_eq!(parse(&budgets(BUDGETS_MAX)).unwrap().budgets().len(), BUDGETS_MAX);
    let rejected = parse(&budgets(BUDGETS_MAX + 1)).unwrap_err();
    assert!(rejected.to_string().contains("more than 1000 budgets"), "{rejected}");

    let padded = |bytes: usize| {
        let file = "version: 1\npolicies: [{name: all}]\n#";
        format!("{file}{}", "x".repeat(bytes - file.len()))
    };
    assert!(parse(&padded(FILE_BYTES_MAX)).is_ok());
    let rejected = parse(&padded(FILE_BYTES_MAX + 1)).unwrap_err();
    assert!(rejected.to_string().contains("larger than 1048576 bytes"), "{rejected}");
}

/// Some seconds, since these run without optimisation and beside others. A bomb takes for ever.
const TAKES_MS_MAX: u64 = 20_000;

#[test]
fn bombs_are_refused_quickly() {
    let mut aliases = "version: 1\na0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for n in 1..12 {
        let again = format!("*a{}, ", n - 1).repeat(9);
        aliases.push_str(&format!("a{n}: &a{n} [{again}]\n"));
    }
    let long_lists = format!(
        "version: 1\noperators: &long [{}]\npolicies:\n{}",
        "x, ".repeat(5_000),
        "- {name: a, budgets: *long}\n".repeat(1_000)
    );
    let files = [
        ("aliases", aliases),
        ("aliases of a long list", long_lists),
        ("flow lists", format!("version: 1\npolicies: {}", "[".repeat(500_000))),
        ("flow mappings", format!("version: 1\npolicies: {}", "{a: ".repeat(200_000))),
        ("block lists", format!("version: 1\npolicies:\n{}", "- ".repeat(500_000))),
        (
            "nested match",
            format!("version: 1\npolicies: [{{match: {}", "{tenant: ".repeat(100_000)),
        ),
        ("many values", format!("version: 1\noperators: [{}]\npolicies: []", "a,".repeat(400_000))),
        ("one long word", format!("version: 1\n{}: 1", "x".repeat(1_000_000))),
        (
            "many problems",
            format!("version: 1\npolicies: [{{name: a, budgets: [{}]}}]", "z,".repeat(90_000)),
        ),
        (
            "many bad statuses",
            format!(
                "version: 1\npolicies: [{{name: a, retry_on: {{grpc: [{}]}}}}]",
                "UNAVAILABL,".repeat(60_000)
            ),
        ),
    ];
    let clock = Clock::system();
    for (name, file) in files {
        let started_ms = clock.now().monotonic_ms;
        let rejected = parse(&file).expect_err(name);
        let took_ms = clock.now().monotonic_ms - started_ms;
        assert!(took_ms < TAKES_MS_MAX, "{name} took {took_ms} ms");
        assert!(rejected.to_string().len() < 100_000, "{name}");
    }
}

#[test]
fn what_is_no_text_is_refused_with_its_place() {
    let rejected = Policies::parse("p.yaml", b"version: 1\npolicies: \xff\n").unwrap_err();
    let place = rejected.problems()[0].place.unwrap();
    assert_eq!((place.line, place.column), (2, 11));
    assert!(rejected.to_string().contains("p.yaml:2:11"), "{rejected}");
    for empty in ["", "# nothing\n", "\u{feff}"] {
        let rejected = parse(empty).unwrap_err();
        assert_eq!(rejected.problems()[0].message, "the file is empty", "{empty:?}");
    }
    let rejected = Policies::load(Path::new("no/such/file.yaml")).unwrap_err();
    assert!(rejected.to_string().contains("no/such/file.yaml"), "{rejected}");
}

/// A budget named `one`.
fn budget(scope: &str, rest: &str) -> Budget {
    let file = format!(
        "version: 1\nbudgets: [{{name: one, scope: {scope}, {rest}}}]\npolicies: [{{name: all}}]\n"
    );
    parse(&file).unwrap().budgets()[0].clone()
}

#[test]
fn every_model_says_what_bounds_it() {
    let said = |scope: &str, model: &str| guarantee(&budget(scope, model));
    let cases = [
        (
            "tenant",
            "ratio: {}",
            "<= 20 % of the requests reported in (T + 10s) + 10 x (1 + T / 1s); per tenant, per process",
        ),
        (
            "global",
            "ratio: {interval: 1m30s, min_retry_rate: {count: 0}}",
            "<= 20 % of the requests reported in (T + 1m30s); all calls together, per process",
        ),
        ("operation", "ratio: {percent: 0}", "<= 10 x (1 + T / 1s); per operation, per process"),
        ("tenant", "ratio: {percent: 0, min_retry_rate: {count: 0}}", "grants nothing"),
        (
            "tenant_operation",
            "throttle: {max_tokens: 10, token_ratio: 0.1}",
            "< 5 + 0.1 x successes reported in T; per tenant and operation, per process",
        ),
        ("tenant", "throttle: {max_tokens: 10, token_ratio: 0.1}", "at most 4 from full"),
        ("tenant", "throttle: {max_tokens: 3, token_ratio: 1}", "< 1.5 + 1 x successes"),
        (
            "global",
            "token_bucket: {}",
            "<= 500 + 1 x first-try successes + the cost of each retried success",
        ),
        ("global", "token_bucket: {costs: aws-legacy}", "at most 100 from full"),
    ];
    for (scope, model, words) in cases {
        let text = said(scope, model);
        assert!(text.contains(words), "{model} says: {text}");
    }
}

#[test]
fn every_model_says_what_bounds_it_over_replicas() {
    const SMALL: &str = "ratio: {percent: 0, min_retry_rate: {count: 2, interval: 10s}}";
    const NO_FLOOR: &str = "ratio: {min_retry_rate: {count: 0}}";
    const THROTTLE: &str = "throttle: {max_tokens: 10, token_ratio: 0.1}";
    let cases = [
        (3, "ratio: {}", "requests reported in (T + 10s) + 10 x (1 + T / 1s) + 3; per tenant"),
        (1, "ratio: {}", "requests reported in (T + 10s) + 10 x (1 + T / 1s) + 1; per tenant"),
        (3, "ratio: {}", "The + 3 is one for each replica"),
        (3, "ratio: {}", "a replica that restarts counts as one more"),
        (3, "ratio: {}", "what the requests reported to it have earned and its share of the floor"),
        (3, "ratio: {}", "cut off for a time t of T add 10/3 x (1 + t / 1s)."),
        (5, "ratio: {}", "cut off for a time t of T add 2 x (1 + t / 1s)."),
        (1, "ratio: {}", "cut off for a time t of T add 10 x (1 + t / 1s)."),
        (10, "ratio: {}", "cut off for a time t of T add 1 x (1 + t / 1s)."),
        (11, "ratio: {}", "cut off for a time t of T add 1 + 10/11 x t / 1s."),
        (
            3,
            "ratio: {}",
            "adds 10 if a replica that had not used the balance asks first. For acquired retries add",
        ),
        (3, SMALL, "<= 2 x (1 + T / 10s) + 3;"),
        (3, SMALL, "spends its share of the floor"),
        (3, SMALL, "add 1 + 2/3 x t / 10s."),
        (3, NO_FLOOR, "requests reported in (T + 10s) + 3;"),
        (
            3,
            NO_FLOOR,
            "have earned, and nothing else (`on_store_loss: local_share`): nothing to add. For",
        ),
        (3, THROTTLE, "an estimate and no allotment"),
        (3, THROTTLE, "hears of the others every 100ms"),
        (3, THROTTLE, "< 3 x (5 + 0.1 x successes reported or heard of in T); per tenant"),
        (3, THROTTLE, "at most 3 x 4 = 12 from full"),
        (1, THROTTLE, "at most 1 x 4 = 4 from full"),
        (3, THROTTLE, "goes on by its copy"),
        (3, "token_bucket: {}", "<= 500 + 3 x 14 + 1 x first-try successes + the cost of each"),
        (1, "token_bucket: {}", "<= 500 + 1 x 14 + 1 x first-try successes + the cost of each"),
        (3, "token_bucket: {costs: aws-legacy}", "<= 500 + 3 x 10 + 1 x first-try successes"),
        (3, "token_bucket: {}", "at most 100 + 3 from full"),
        (3, "token_bucket: {}", "nobody used for 10m starts full again (add 500 each time)"),
        (3, "token_bucket: {}", "spends what it earns itself, and saves at most 166 of it"),
        (3, "token_bucket: {}", "adds 500 if a replica that had not used the balance asks first."),
    ];
    for (replicas, model, words) in cases {
        let text = shared_guarantee(&budget("tenant", model), replicas);
        assert!(text.contains(words), "{model} over {replicas} says: {text}");
        assert!(text.contains("`on_store_loss: local_share`"), "{model} says: {text}");
    }
    let nothing = budget("tenant", "ratio: {percent: 0, min_retry_rate: {count: 0}}");
    assert_eq!(shared_guarantee(&nothing, 3), "grants nothing");
}

#[test]
fn a_budget_that_denies_adds_nothing_in_an_outage() {
    let cases = [
        ("ratio: {}", "have earned, and nothing else (`on_store_loss: deny`): nothing to add."),
        ("ratio: {percent: 0}", " grants nothing (`on_store_loss: deny`): nothing to add."),
        (
            "throttle: {max_tokens: 10, token_ratio: 0.1}",
            " grants nothing (`on_store_loss: deny`).",
        ),
        ("token_bucket: {}", " grants nothing (`on_store_loss: deny`)."),
    ];
    for (model, words) in cases {
        let text = shared_guarantee(&budget("global", &format!("{model}, on_store_loss: deny")), 3);
        assert!(text.contains(words), "{model} says: {text}");
        for word in ["local_share", "cut off for", "its copy, and one", "earns itself"] {
            assert!(!text.contains(word), "{model} says `{word}`: {text}");
        }
    }
}

#[test]
fn a_guarantee_says_for_what_it_holds() {
    let scopes = [
        ("tenant", "per tenant", " Every tenant has a floor of its own."),
        (
            "tenant_operation",
            "per tenant and operation",
            " Every pair of tenant and operation has a floor of its own.",
        ),
        ("operation", "per operation", " Every operation has a floor of its own."),
        ("global", "all calls together", ""),
    ];
    let models = ["ratio: {}", "throttle: {max_tokens: 10, token_ratio: 0.1}", "token_bucket: {}"];
    for (scope, each, floors) in scopes {
        for (at, model) in models.iter().enumerate() {
            let budget = budget(scope, model);
            let floors = if at == 0 { floors } else { "" };
            let said = [
                (guarantee(&budget), "per process"),
                (shared_guarantee(&budget, 1), "over 1 replica"),
                (shared_guarantee(&budget, 3), "over all 3 replicas"),
            ];
            for (text, who) in said {
                let words = format!("; {each}, {who}.{floors} ");
                assert!(text.contains(&words), "`{words}` is not in: {text}");
                assert_eq!(text.contains("a floor of its own"), !floors.is_empty(), "{text}");
            }
        }
    }
}

#[test]
fn a_floor_smaller_than_the_replicas_is_warned_of() {
    let floor = |count: u32| format!("ratio: {{min_retry_rate: {{count: {count}}}}}");
    let cases = [
        (floor(0), 3, false),
        (floor(1), 1, false),
        (floor(1), 2, true),
        (floor(2), 3, true),
        (floor(3), 3, false),
        (floor(4), 3, false),
        ("throttle: {max_tokens: 3, token_ratio: 1}".to_owned(), 1_000, false),
        ("token_bucket: {capacity: 20}".to_owned(), 1_000, false),
    ];
    for (model, replicas, is_warned_of) in cases {
        let warned: Vec<_> = Warning::of_sharing(&[budget("global", &model)], replicas).collect();
        assert_eq!(warned.len(), usize::from(is_warned_of), "{model} over {replicas}: {warned:?}");
    }
    let warning = Warning::SmallFloor { budget: "one".into(), count: 2, replicas: 3 };
    let budgets = [budget("tenant", "ratio: {}"), budget("tenant", &floor(2))];
    let words = "budget `one` has a floor of 2, which is smaller than 3 replicas: ";
    assert!(warning.to_string().starts_with(words), "{warning}");
    assert_eq!(Warning::of_sharing(&budgets, 3).collect::<Vec<_>>(), [warning]);
}

proptest! {
    #[test]
    fn a_broken_example_is_read_or_refused_with_places(
        at in 0..1_800usize,
        gone in 0..30usize,
        patch in prop_oneof![
            "[ \\t\\n:,&*!|>'\"%@`{}\\[\\]#?-]{0,6}",
            "(~|null|\\.nan|-1|0|\\*|<<: |&a |\\*a|---\\n|!!str |\u{feff}|é|\r|\u{85})",
        ],
    ) {
        let mut bytes = include_bytes!("policies/example.yaml").to_vec();
        let end = bytes.len().min(at + gone);
        bytes.splice(at.min(end)..end, patch.into_bytes());
        if let Err(rejected) = Policies::parse("p.yaml", &bytes) {
            prop_assert!(!rejected.problems().is_empty());
            prop_assert!(rejected.to_string().contains("p.yaml:"), "{}", rejected);
        }
    }
}
