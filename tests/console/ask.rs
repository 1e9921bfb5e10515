//! A context in, the rules that were asked out.
use axum::{
    body::Body,
    http::{Request, StatusCode, header::HOST},
};
use retryd::{console::PolicyFile, engine::Rule, service::Sizes, wire::pb::Verdict};

use crate::support::{POLICY, Page, Scene};

const CONNECT: &str = r#"{
  "tenant": "shop", "operation": "pay", "attemptsMade": 1, "bodyReplayable": true,
  "failure": {"category": "FAILURE_CATEGORY_CONNECT"}
}"#;

/// Each rule with its answer.
fn answers(page: &Page) -> Vec<(String, String)> {
    let is_rule = |row: &Vec<String>| row[0].parse::<u32>().is_ok();
    page.rows().into_iter().filter(is_rule).map(|row| (row[1].clone(), row[2].clone())).collect()
}

#[tokio::test]
async fn a_yes_shows_every_rule_and_the_wait() {
    let page = Scene::new().ask(CONNECT).await;
    assert_eq!(page.status, StatusCode::OK);
    page.has("Retry after 100ms");
    page.has("No rule objected.");
    page.has("per-tenant: 2 of 2 retries left");
    let answers = answers(&page);
    let names: Vec<&str> = answers.iter().map(|(rule, _)| &**rule).collect();
    assert_eq!(names, Rule::ALL.map(Rule::name));
    let last = answers.len() - 1;
    assert!(answers[..last].iter().all(|(_, answer)| answer == "passed"), "{answers:?}");
    assert_eq!(answers[last].1, "retry");
}

#[tokio::test]
async fn people_may_ask_for_the_tenants_of_callers_with_certificates() {
    let policy = format!("{POLICY}callers:\n  - {{identity: batch.example, tenants: [other]}}\n");
    let page = Scene::with(&policy, None, PolicyFile::default()).ask(CONNECT).await;
    assert_eq!(page.status, StatusCode::OK);
    page.has("Retry after 100ms");
    page.has("per-tenant: 2 of 2 retries left");
}

#[tokio::test]
async fn a_no_shows_who_objected_what_it_saw_and_who_was_not_asked() {
    let page = Scene::new().ask(&CONNECT.replace("1,", "2,")).await;
    page.has("Do not retry");
    page.has(Rule::AttemptsExhausted.sentence());
    page.has("attempts_made 2 of max 2");
    page.has("/console/policies#policy-payments");
    let answers = answers(&page);
    assert_eq!(answers.len(), Rule::ALL.len());
    assert_eq!(answers[0].1, "objected");
    assert!(answers[1..].iter().all(|(_, answer)| answer == "not asked"), "{answers:?}");
}

#[tokio::test]
async fn asking_here_charges_nothing_whatever_the_context_says() {
    let scene = Scene::new();
    let insistent =
        CONNECT.replace("\"tenant\"", "\"dryRun\": false, \"callId\": \"c\", \"tenant\"");
    for _ in 0..5 {
        scene.ask(&insistent).await.has("Retry after");
    }
    assert_eq!(scene.decide("shop"), Verdict::Retry);
    assert_eq!(scene.decide("shop"), Verdict::Retry);
    assert_eq!(scene.decide("shop"), Verdict::DoNotRetry);
    scene.ask(CONNECT).await.has("budget per-tenant would not grant one more retry");
}

#[tokio::test]
async fn the_fields_say_what_the_text_says() {
    let scene = Scene::new();
    let query = "tenant=shop&operation=pay&attempts_made=1&body_replayable=on&failure=CONNECT";
    let page = scene.get(&format!("/console/ask?{query}")).await;
    page.has("Retry after 100ms");
    page.has("&#34;FAILURE_CATEGORY_CONNECT&#34;");
    page.has("<details open>");
    page.has("<option value=\"CONNECT\" selected>");
    page.has("name=\"body_replayable\" checked");
    page.has_not("name=\"declared\" checked");
    assert_eq!(answers(&page), answers(&scene.ask(CONNECT).await));
}

#[tokio::test]
async fn the_page_begins_with_an_example_and_asks_nothing() {
    let scene = Scene::new();
    for path in ["/console/ask", "/console/ask?"] {
        let page = scene.get(path).await;
        assert_eq!(page.status, StatusCode::OK);
        page.has("payments.v1.Payments/Charge");
        page.has_not("Every rule");
    }
    assert_eq!(scene.metrics.decisions().iter().sum::<u64>(), 0);
}

#[tokio::test]
async fn a_text_that_cannot_be_read_stays_with_the_place_that_is_wrong() {
    let text = "{\n  \"tenant\": \"</textarea><script>alert(1)</script>\",\n  \"oops\": 1\n}";
    let page = Scene::new().ask(text).await;
    assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
    page.has("<title>Error: ");
    page.has("Line 3, column 8: unknown field `oops`");
    page.has("aria-invalid=\"true\"");
    page.has("&#60;/textarea&#62;&#60;script&#62;alert(1)&#60;/script&#62;");
    page.has_not("<script>");
}

#[tokio::test]
async fn a_refused_context_shows_every_wrong_field() {
    let scene = Scene::new();
    let page =
        scene.ask(r#"{"tenant": "", "operation": "pay", "failure": {"httpStatus": 99}}"#).await;
    assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
    let rows = page.rows();
    for row in [
        ["tenant", "required"],
        ["attempts_made", "must be at least 1"],
        ["failure.http_status", "must be 100 to 599"],
    ] {
        assert!(rows.contains(&row.map(str::to_owned).to_vec()), "{row:?} in {rows:?}");
    }
    page.has("&#34;httpStatus&#34;: 99");
}

#[tokio::test]
async fn a_text_that_is_too_long_comes_back_and_one_that_is_far_too_long_does_not() {
    let scene = Scene::new();
    let long = format!("{{\"tenant\": \"{}\"}}", "é".repeat(8_192));
    let page = scene.ask(&long).await;
    assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
    page.has("at most 16384 are read");
    page.has(&"é".repeat(8_192));
    let request = Request::post("/console/ask").header(HOST, "localhost");
    let body = Body::from("context=".to_owned() + &"x".repeat(100_000));
    let page = scene.send(request.body(body).unwrap()).await;
    assert_eq!(page.status, StatusCode::PAYLOAD_TOO_LARGE);
}

/// `--max-context-bytes` is said once, for calls and for people.
#[tokio::test]
async fn a_text_may_be_as_long_as_a_message() {
    let sizes = Sizes { context_bytes_max: 65_536, ..Sizes::default() };
    let scene = Scene::of_sizes(POLICY, None, PolicyFile::default(), sizes);
    let padded = |length: usize| CONNECT.to_owned() + &" ".repeat(length - CONNECT.len());
    assert_eq!(scene.ask(&padded(65_536)).await.status, StatusCode::OK);
    let page = scene.ask(&padded(65_537)).await;
    assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
    page.has("at most 65536 are read");
}

#[tokio::test(start_paused = true)]
async fn a_form_that_never_arrives_is_not_waited_for() {
    let scene = Scene::new();
    let never = Body::from_stream(tokio_stream::pending::<Result<Vec<u8>, std::io::Error>>());
    let request = Request::post("/console/ask").header(HOST, "localhost").body(never).unwrap();
    assert_eq!(scene.send(request).await.status, StatusCode::REQUEST_TIMEOUT);
}
