//! What is in force, and what happens now.
use std::sync::Arc;

use axum::http::StatusCode;
use retryd::{
    budget::{Sharing, StoreState},
    console::PolicyFile,
    wire::pb::{ListBudgetsRequest, RetryContext},
};

use crate::support::{POLICY, Scene};

fn row(cells: &[&str]) -> Vec<String> {
    cells.iter().map(|cell| (*cell).to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn balances_are_listed_with_the_emptiest_first() {
    let scene = Scene::new();
    scene.get("/console").await.has("No balance is in use");
    scene.decide("half");
    scene.decide("empty");
    scene.decide("empty");
    scene.later(3).await;
    let rows = scene.get("/console").await.rows();
    let balances: Vec<&[String]> =
        rows.iter().filter(|row| row[0] == "per-tenant").map(|row| &row[1..5]).collect();
    assert_eq!(balances, [row(&["empty", "all", "0", "2"]), row(&["half", "all", "1", "2"])]);
}

#[tokio::test(start_paused = true)]
async fn no_more_than_a_hundred_balances_are_shown() {
    let scene = Scene::new();
    for place in 0..150 {
        scene.decide(&format!("t-{place}"));
    }
    let rows = scene.get("/console").await.rows();
    assert_eq!(rows.iter().filter(|row| row[0] == "per-tenant").count(), 100);
}

/// However many look, all balances are gone over at most once in two seconds.
#[tokio::test(start_paused = true)]
async fn one_list_serves_everybody_for_two_seconds() {
    let scene = Scene::new();
    scene.decide("first");
    scene.get("/console").await.has("first");
    scene.decide("second");
    scene.get("/console").await.has_not("second");
    scene.later(2).await;
    scene.get("/console").await.has("second");
    let all = scene.retryd.list_budgets(&ListBudgetsRequest::default()).unwrap();
    assert_eq!(all.budgets.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn names_that_callers_choose_are_shown_and_never_taken_for_markup() {
    let scene = Scene::new();
    let long = "x".repeat(128);
    for name in ["<script>alert(1)</script>", "\"onload=\"x", "pohs\u{202e}", &long] {
        scene.decide(name);
    }
    let page = scene.get("/console").await;
    page.has("&#60;script&#62;alert(1)&#60;/script&#62;");
    page.has("&#34;onload=&#34;x");
    page.has("pohs\\u{202e}");
    page.has(&long);
    page.has_not("<script>");
    page.has_not("\u{202e}");
}

#[tokio::test(start_paused = true)]
async fn refusals_are_counted_in_the_window_in_which_they_came() {
    let scene = Scene::new();
    scene.get("/console").await.has("Nothing was refused since the start.");
    for _ in 0..5 {
        scene.decide("shop");
    }
    scene.retryd.decide(&RetryContext::default()).unwrap_err();
    let reasons = |page: crate::support::Page| -> Vec<Vec<String>> {
        let rows = page.rows().into_iter().filter(|row| row.len() == 5 && row[2] != "Last minute");
        rows.map(|row| [&row[..1], &row[2..]].concat()).collect()
    };
    let exhausted = "BUDGET_EXHAUSTED";
    let page = scene.get("/console").await;
    page.has("5 decided, 3 of them with no; 1 refused without a decision");
    assert_eq!(
        reasons(page),
        [row(&[exhausted, "3", "3", "3"]), row(&["CONTEXT_INVALID", "1", "1", "1"])]
    );
    // The samples come every five seconds.
    for _ in 0..15 {
        scene.later(5).await;
    }
    scene.decide("shop");
    assert_eq!(reasons(scene.get("/console").await)[0], row(&[exhausted, "1", "4", "4"]));
    for _ in 0..130 {
        scene.later(5).await;
    }
    assert_eq!(reasons(scene.get("/console").await)[0], row(&[exhausted, "0", "0", "4"]));
}

#[tokio::test]
async fn the_policies_in_force_are_shown_in_the_words_of_the_file() {
    let page = Scene::new().get("/console/policies").await;
    assert_eq!(page.status, StatusCode::OK);
    let rows = page.rows();
    let policies: Vec<&Vec<String>> =
        rows.iter().filter(|row| row[0].parse::<u32>().is_ok()).collect();
    assert_eq!(
        policies,
        [
            &row(&["1", "payments", "*", "pay*", "2", "per-tenant", "enforce"]),
            &row(&["2", "everything-else", "*", "*", "3", "per-tenant", "enforce"]),
        ]
    );
    page.has("id=\"policy-payments\"");
    page.has("{base: 100ms, multiplier: 2, max: 5s, jitter: none}");
    page.has("token_bucket: {capacity: 2, costs: {transient: 1, throttling: 1, timeout: 1}}");
    page.has("over any time T, the costs of retries granted");
}

#[tokio::test]
async fn who_may_ask_for_which_tenants_is_shown() {
    let shown = async |callers: &str| {
        let policy = format!("version: 1\npolicies: [{{name: all}}]\n{callers}");
        let scene = Scene::with(&policy, None, PolicyFile::default());
        scene.get("/console/policies").await
    };
    shown("").await.has("Whoever reaches the port may ask for every tenant.");
    shown("callers: []").await.has("None: nobody may ask.");
    let page = shown(
        "callers: [{identity: 'spiffe://prod.example/<shop>/*', tenants: [shop-*, eu]}]\n\
         operators: [ops.example]",
    )
    .await;
    page.has_not("Whoever reaches the port");
    let rows = page.rows();
    assert!(
        rows.contains(&row(&["spiffe://prod.example/&#60;shop&#62;/*", "shop-*, eu"])),
        "{rows:?}"
    );
    assert!(rows.contains(&row(&["ops.example", "every tenant, as an operator"])), "{rows:?}");
}

#[tokio::test]
async fn a_refused_policy_file_is_told_with_its_error() {
    let scene = Scene::with(POLICY, None, PolicyFile::default());
    let page = scene.get("/console").await;
    page.has("embedded in the binary");
    page.has("0 applied, 0 refused");
    page.has_not("is refused");
    let file = PolicyFile {
        path: Some("/etc/retryd/<policy>.yaml".to_owned()),
        applied: 2,
        refused: 1,
        error: Some("error: <tenants> is no list".to_owned()),
    };
    let page = Scene::with(POLICY, None, file).get("/console").await;
    page.has("/etc/retryd/&#60;policy&#62;.yaml");
    page.has("2 applied, 1 refused");
    page.has("<strong>The file as it is now is refused.</strong>");
    page.has("error: &#60;tenants&#62; is no list");
}

#[tokio::test]
async fn the_store_is_shown_where_there_is_one() {
    Scene::new().get("/console").await.has("counted in this process alone");
    let sharing = Arc::new(Sharing::new(3));
    let StoreState { is_lost, replicas, .. } = sharing.state();
    assert_eq!((is_lost, replicas), (true, 3), "nobody has answered yet");
    let page = Scene::with(POLICY, Some(sharing), PolicyFile::default()).get("/console").await;
    page.has("<strong class=\"tag bad\">Lost</strong>");
    page.has("<dt>Replicas</dt><dd>3</dd>");
}
