//! Mutual TLS and the policy file's `callers`: each question is answered to whoever may ask it.
use std::time::Duration;

use retryd::wire::pb::{
    AcquireRetriesRequest, GetBudgetRequest, ListBudgetsRequest, ReleaseRetriesRequest,
    ReportUsageRequest, RetryContext, StreamedDecision, TenantBudget, TenantUsage, Usage, Verdict,
    WatchBudgetRequest, release_retries_request::Grant, streamed_decision, usage_result,
};
use tokio::time::{sleep, timeout};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::{Code, Request, Status, Streaming};
use tonic_types::StatusExt as _;

use crate::{
    certificates::{Caller, Certificates},
    support::{Process, SOON, context, policy_file},
};

/// Each tenant has 200 retries for an hour, and all of them together as many as anybody asks for.
const POLICY: &str = "version: 1
budgets:
  - {name: own, scope: tenant, ratio: {interval: 1h, min_retry_rate: {count: 200, interval: 1h}}}
  - {name: sum, scope: global, token_bucket: {capacity: 100000, costs: {transient: 1, throttling: 1, timeout: 1}}}
policies: [{name: all, budgets: [own, sum]}]
";
const CALLERS: &str = "callers:
  - {identity: 'spiffe://prod.example/ns/shop/*', tenants: ['shop-*']}
  - {identity: batch.example, tenants: [batch]}
operators: ['spiffe://prod.example/ns/platform/sa/oncall']
";

fn policy(name: &str, callers: &str) -> String {
    policy_file(name, &format!("{POLICY}{callers}"))
}

/// Callers by the names of their certificates.
fn certificates() -> Certificates {
    let certificates = Certificates::make();
    for (name, extension) in [
        ("shop", "subjectAltName=URI:spiffe://prod.example/ns/shop/sa/web"),
        ("oncall", "subjectAltName=URI:spiffe://prod.example/ns/platform/sa/oncall"),
        ("stranger", "subjectAltName=URI:spiffe://prod.example/ns/stranger,DNS:stranger.example"),
        ("batch", "subjectAltName=DNS:other.example,DNS:batch.example"),
        ("both", "subjectAltName=DNS:batch.example,URI:spiffe://prod.example/ns/shop/sa/cron"),
        // Its common name is its only one.
        ("batch.example", "extendedKeyUsage=clientAuth"),
    ] {
        certificates.sign(name, "ca", extension);
    }
    certificates
}

fn is_foreign(status: &Status) -> bool {
    let details = status.get_error_details();
    let info = details.error_info().is_some_and(|info| {
        (info.domain.as_str(), info.reason.as_str()) == ("retryd", "TENANT_FOREIGN")
    });
    status.code() == Code::PermissionDenied && info && details.bad_request().is_none()
}

/// By the way of whole messages, and by that of calls with something unusual about them.
async fn decide(caller: &Caller, context: RetryContext) -> Result<Verdict, Status> {
    let mut routed = Request::new(RetryContext { dry_run: true, ..context.clone() });
    routed.metadata_mut().insert("grpc-encoding", "identity".parse().unwrap());
    let mut client = caller.decisions();
    let routed = client.decide(routed).await.map(|answer| answer.get_ref().verdict());
    let at_once = client.decide(context).await.map(|answer| answer.get_ref().verdict());
    assert_eq!(
        routed.as_ref().map_err(|status| (status.code(), status.details())),
        at_once.as_ref().map_err(|status| (status.code(), status.details()))
    );
    at_once
}

fn entry(tenant: &str, requests: u64) -> TenantUsage {
    let usage = Some(Usage { requests, ..Default::default() });
    TenantUsage { tenant: tenant.to_owned(), operation: "op".to_owned(), usage }
}

fn get(tenant: &str) -> GetBudgetRequest {
    GetBudgetRequest { tenant: tenant.to_owned(), operation: "op".to_owned() }
}

fn watch(tenant: &str) -> WatchBudgetRequest {
    WatchBudgetRequest { tenant: tenant.to_owned(), operation: "op".to_owned() }
}

async fn list(caller: &Caller) -> Result<Vec<TenantBudget>, Status> {
    let all = ListBudgetsRequest { page_size: 1_000, ..Default::default() };
    caller.budgets().list_budgets(all).await.map(|answer| answer.into_inner().budgets)
}

/// What is foreign is told before what is wrong besides, and changes nothing.
#[tokio::test]
async fn every_method_refuses_a_foreign_tenant_and_serves_the_own() {
    let certificates = certificates();
    let process = certificates.start(&policy("callers-methods.yaml", CALLERS));
    let shop = certificates.caller(&process, "shop").await;
    let mut budgets = shop.budgets();

    assert_eq!(decide(&shop, context("shop-eu")).await.unwrap(), Verdict::Retry);
    for tenant in ["bank", "shop", "", "Shop-eu", "a\nb"] {
        let wrong_besides = RetryContext { attempts_made: 0, ..context(tenant) };
        for context in [context(tenant), wrong_besides] {
            assert!(is_foreign(&decide(&shop, context).await.unwrap_err()), "{tenant}");
        }
        let acquire = AcquireRetriesRequest { tenant: tenant.to_owned(), ..Default::default() };
        assert!(is_foreign(&budgets.acquire_retries(acquire).await.unwrap_err()), "{tenant}");
        let release = ReleaseRetriesRequest { tenant: tenant.to_owned(), ..Default::default() };
        assert!(is_foreign(&budgets.release_retries(release).await.unwrap_err()), "{tenant}");
        let shown = GetBudgetRequest { operation: String::new(), ..get(tenant) };
        assert!(is_foreign(&budgets.get_budget(shown).await.unwrap_err()), "{tenant}");
        let watched = WatchBudgetRequest { operation: String::new(), ..watch(tenant) };
        assert!(is_foreign(&budgets.watch_budget(watched).await.unwrap_err()), "{tenant}");
    }
    let counted = "retryd_requests_refused_total{reason=\"TENANT_FOREIGN\"}";
    process.metric_is(counted, 5 * (2 * 2 + 4)).await;

    let own = RetryContext { attempts_made: 0, ..context("shop-eu") };
    assert_eq!(decide(&shop, own).await.unwrap_err().code(), Code::InvalidArgument);
    let tenant = "shop-eu".to_owned();
    let acquire = AcquireRetriesRequest { tenant, operation: "op".to_owned(), wanted: 9 };
    let acquired = budgets.acquire_retries(acquire).await.unwrap().into_inner();
    assert_eq!(acquired.granted, 9);
    let release = ReleaseRetriesRequest {
        tenant: "shop-eu".to_owned(),
        operation: "op".to_owned(),
        unused: 9,
        grant: Some(Grant::Lease(acquired.lease)),
    };
    budgets.release_retries(release).await.unwrap();
    let shown = budgets.get_budget(get("shop-eu")).await.unwrap().into_inner();
    assert_eq!(shown.budgets.len(), 2, "its own, and the one that it shares");
    let mut watched = budgets.watch_budget(watch("shop-eu")).await.unwrap().into_inner();
    assert_eq!(watched.message().await.unwrap().unwrap().budgets, shown.budgets);
    // Its own, and the sum.
    process.metric_is("retryd_balances", 2).await;
}

#[tokio::test]
async fn a_report_is_refused_entry_by_entry() {
    let certificates = certificates();
    let process = certificates.start(&policy("callers-report.yaml", CALLERS));
    let shop = certificates.caller(&process, "shop").await;
    let wrong = |tenant: &str| TenantUsage { operation: String::new(), ..entry(tenant, 1) };
    let named = |usage: Vec<TenantUsage>| ReportUsageRequest { usage, report_id: "r".to_owned() };
    let mut budgets = shop.budgets();

    // Whoever sends nothing that is his does not use up the name of another's report.
    let foreign = budgets.report_usage(named(vec![entry("bank", 7)])).await.unwrap();
    assert_eq!(codes(&foreign.into_inner().results), [7]);
    // Nor does an entry that is wrong.
    let refused = budgets.report_usage(named(vec![wrong("shop-eu")])).await.unwrap();
    assert_eq!(codes(&refused.into_inner().results), [3]);
    let entries =
        vec![entry("bank", 1_000), entry("shop-eu", 1_000), wrong("bank"), wrong("shop-eu")];
    let mixed = budgets.report_usage(named(entries)).await.unwrap().into_inner();
    assert_eq!(codes(&mixed.results), [7, 0, 7, 3]);

    let available = async |tenant| {
        let oncall = certificates.caller(&process, "oncall").await;
        let shown = oncall.budgets().get_budget(get(tenant)).await.unwrap().into_inner();
        shown.budgets[0].retries_available
    };
    // 20 % of what was reported, and the floor.
    assert_eq!(available("shop-eu").await, 200 + 200);
    assert_eq!(available("bank").await, 200);
}

/// Before what is wrong with the whole, as with everything else.
#[tokio::test]
async fn whoever_may_do_nothing_is_not_told_what_is_wrong_with_a_report() {
    let certificates = certificates();
    let process = certificates.start(&policy("callers-stranger.yaml", CALLERS));
    let named = |usage, report_id| ReportUsageRequest { usage, report_id };
    let wrong = [
        named(vec![], String::new()),
        named(vec![entry("shop-eu", 1)], "x".repeat(10_000)),
        named(vec![entry("shop-eu", 1); 1_001], String::new()),
    ];
    let stranger = certificates.caller(&process, "stranger").await;
    let shop = certificates.caller(&process, "shop").await;
    for report in wrong {
        let told = stranger.budgets().report_usage(report.clone()).await.unwrap_err();
        assert!(is_foreign(&told), "{told:?}");
        let told = shop.budgets().report_usage(report).await.unwrap_err();
        assert_eq!(told.code(), Code::InvalidArgument, "{told:?}");
    }
    let counted = "retryd_requests_refused_total{reason=\"TENANT_FOREIGN\"}";
    process.metric_is(counted, 3).await;
}

/// The code of each refusal, or 0.
fn codes(results: &[retryd::wire::pb::UsageResult]) -> Vec<u32> {
    let code = |outcome: &Option<usage_result::Outcome>| match outcome {
        Some(usage_result::Outcome::Refusal(refusal)) => {
            assert_eq!(refusal.violations.is_empty(), refusal.grpc_code == 7);
            refusal.grpc_code
        }
        _ => 0,
    };
    results.iter().map(|result| code(&result.outcome)).collect()
}

/// The code of a refusal, or 0.
fn code(answer: &StreamedDecision) -> u32 {
    match &answer.outcome {
        Some(streamed_decision::Outcome::Refusal(refusal)) => refusal.grpc_code,
        _ => 0,
    }
}

async fn next(answers: &mut Streaming<StreamedDecision>) -> u32 {
    let answer = timeout(SOON, answers.message()).await.expect("no answer in time");
    code(&answer.unwrap().expect("the stream goes on"))
}

#[tokio::test]
async fn a_stream_is_refused_question_by_question() {
    let certificates = certificates();
    let process = certificates.start(&policy("callers-stream.yaml", CALLERS));
    let shop = certificates.caller(&process, "shop").await;
    let wrong = |tenant| RetryContext { attempts_made: 0, ..context(tenant) };
    let questions =
        [context("shop-eu"), context("bank"), wrong("bank"), wrong("shop-eu"), context("shop-us")];
    let answers = shop.decisions().decide_stream(tokio_stream::iter(questions)).await.unwrap();
    let mut answers = answers.into_inner();
    for expected in [0, 7, 7, 3, 0] {
        assert_eq!(next(&mut answers).await, expected);
    }
    assert_eq!(answers.message().await.unwrap(), None);
}

#[tokio::test]
async fn a_list_shows_what_the_caller_may_see() {
    let certificates = certificates();
    let process = certificates.start(&policy("callers-list.yaml", CALLERS));
    let oncall = certificates.caller(&process, "oncall").await;
    for tenant in ["shop-a", "bank", "shop-b", "batch"] {
        assert_eq!(decide(&oncall, context(tenant)).await.unwrap(), Verdict::Retry);
    }
    let tenants = |rows: Vec<TenantBudget>| {
        let mut tenants: Vec<String> = rows.into_iter().map(|row| row.tenant).collect();
        tenants.sort();
        tenants
    };
    let shop = certificates.caller(&process, "shop").await;
    assert_eq!(tenants(list(&shop).await.unwrap()), ["shop-a", "shop-b"]);
    // With the sum, which belongs to no tenant.
    let all = ["", "bank", "batch", "shop-a", "shop-b"];
    assert_eq!(tenants(list(&oncall).await.unwrap()), all);

    // Pages are of what the caller sees.
    let (mut seen, mut page_token) = (Vec::new(), String::new());
    loop {
        let page = ListBudgetsRequest { page_size: 1, page_token };
        let page = shop.budgets().list_budgets(page).await.unwrap().into_inner();
        seen.extend(page.budgets);
        page_token = page.next_page_token;
        if page_token.is_empty() {
            break;
        }
    }
    assert_eq!(tenants(seen), ["shop-a", "shop-b"]);
    let stranger = certificates.caller(&process, "stranger").await;
    let broken = ListBudgetsRequest { page_size: 9_999, ..Default::default() };
    assert!(is_foreign(&stranger.budgets().list_budgets(broken).await.unwrap_err()));
}

#[tokio::test]
async fn a_caller_is_who_its_alternative_names_say() {
    let certificates = certificates();
    let process = certificates.start(&policy("callers-names.yaml", CALLERS));
    for (name, allowed) in [
        ("shop", &["shop-eu"][..]),
        ("batch", &["batch"]),
        ("both", &["shop-eu", "batch"]),
        ("oncall", &["shop-eu", "batch", "bank"]),
        ("stranger", &[]),
        ("batch.example", &[]),
    ] {
        let caller = certificates.caller(&process, name).await;
        for tenant in ["shop-eu", "batch", "bank"] {
            let answer = decide(&caller, context(tenant)).await;
            if allowed.contains(&tenant) {
                assert_eq!(answer.unwrap(), Verdict::Retry, "{name} for {tenant}");
            } else {
                assert!(is_foreign(&answer.unwrap_err()), "{name} for {tenant}");
            }
        }
        assert_eq!(list(&caller).await.is_ok(), !allowed.is_empty(), "{name}");
    }
}

#[tokio::test]
async fn other_callers_hold_at_once_for_what_is_open() {
    let certificates = certificates();
    let path = policy("callers-reload.yaml", CALLERS);
    let process = certificates.start(&path);
    let shop = certificates.caller(&process, "shop").await;
    assert_eq!(decide(&shop, context("shop-eu")).await.unwrap(), Verdict::Retry);
    let (ask, questions) = tokio::sync::mpsc::unbounded_channel();
    ask.send(context("shop-eu")).unwrap();
    let questions = UnboundedReceiverStream::new(questions);
    let answers = shop.decisions().decide_stream(questions).await.unwrap();
    let mut answers = answers.into_inner();
    assert_eq!(next(&mut answers).await, 0);
    let watched = shop.budgets().watch_budget(watch("shop-eu")).await.unwrap();
    let mut watched = watched.into_inner();
    watched.message().await.unwrap().unwrap();

    // Neither without `callers` nor broken: what was in force stays.
    for (callers, told) in
        [("", "no `callers`"), ("callers: [{identity: ''}]\n", "callers-reload.yaml:")]
    {
        policy("callers-reload.yaml", callers);
        process.signal("HUP");
        process.logged(told);
        assert_eq!(decide(&shop, context("shop-eu")).await.unwrap(), Verdict::Retry);
        assert!(is_foreign(&decide(&shop, context("bank")).await.unwrap_err()));
    }
    policy("callers-reload.yaml", &CALLERS.replace("shop-*", "bank"));
    process.signal("HUP");
    process.logged("the policy file is in force");

    assert_eq!(decide(&shop, context("bank")).await.unwrap(), Verdict::Retry);
    assert!(is_foreign(&decide(&shop, context("shop-eu")).await.unwrap_err()));
    for (tenant, expected) in [("shop-eu", 7), ("bank", 0)] {
        ask.send(context(tenant)).unwrap();
        assert_eq!(next(&mut answers).await, expected);
    }
    let ending = timeout(SOON, async {
        loop {
            match watched.message().await {
                // A change that it was still allowed to see.
                Ok(Some(_)) => sleep(Duration::from_millis(1)).await,
                ending => break ending,
            }
        }
    });
    assert!(is_foreign(&ending.await.expect("it ends").unwrap_err()));
}

async fn granted_of_a_hundred(caller: &Caller, tenant: &str) -> usize {
    let mut granted = 0;
    for _ in 0..100 {
        let answer = caller.decisions().decide(context(tenant)).await.unwrap();
        granted += usize::from(answer.get_ref().verdict() == Verdict::Retry);
    }
    granted
}

#[tokio::test]
async fn b58_invented_tenants_are_refused_to_whoever_has_a_certificate() {
    let certificates = certificates();
    let policy = policy("callers-invented.yaml", CALLERS);
    let process = certificates.start_with(&policy, &["--max-balances", "1000"]);
    let shop = certificates.caller(&process, "shop").await;
    assert_eq!(granted_of_a_hundred(&shop, "shop-eu").await, 100);
    let before = process.resident_bytes();

    let invented = (0..10_000).map(|place| context(&format!("invented-{place}")));
    let answers = shop.decisions().decide_stream(tokio_stream::iter(invented)).await.unwrap();
    let mut answers = answers.into_inner();
    let mut refused = 0;
    while let Some(answer) = timeout(SOON, answers.message()).await.unwrap().unwrap() {
        assert_eq!(code(&answer), 7);
        refused += 1;
    }
    assert_eq!(refused, 10_000);
    process.metric_is("retryd_balances", 2).await;
    assert_eq!(process.metric("retryd_overflow_uses_total").await, 0);
    let counted = "retryd_requests_refused_total{reason=\"TENANT_FOREIGN\"}";
    process.metric_is(counted, 10_000).await;
    let grown = process.resident_bytes().saturating_sub(before);
    assert!(grown < 16 << 20, "{grown} bytes");
    assert_eq!(granted_of_a_hundred(&shop, "shop-eu").await, 100, "it keeps its own");
}

/// The example, as it stands.
#[tokio::test]
async fn the_example_policy_file_is_served() {
    let certificates = certificates();
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/policies/example.yaml");
    let process: Process = certificates.start(example);
    process.logged("client certificates: `callers` says who may ask for which tenants");
    let shop = certificates.caller(&process, "shop").await;
    assert_eq!(decide(&shop, context("shop-eu")).await.unwrap(), Verdict::Retry);
    assert!(is_foreign(&decide(&shop, context("bank")).await.unwrap_err()));
}
