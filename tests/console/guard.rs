//! Whose requests are answered, and what every answer says about itself.
use axum::{
    body::Body,
    http::{Request, StatusCode, header::HOST},
};

use crate::support::Scene;

#[tokio::test]
async fn every_answer_forbids_what_is_not_its_own() {
    let scene = Scene::new();
    for path in [
        "/",
        "/console",
        "/console/ask",
        "/console/ask?tenant=x",
        "/console/policies",
        "/console/console.css",
        "/console/console.js",
        "/console/icon.svg",
    ] {
        let page = scene.get(path).await;
        let header = |name: &str| page.headers.get(name).unwrap().to_str().unwrap().to_owned();
        assert_eq!(
            header("content-security-policy"),
            "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; \
             form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
            "{path}"
        );
        assert_eq!(header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(header("referrer-policy"), "same-origin", "{path}");
        assert_eq!(header("cache-control"), "no-store", "{path}");
        assert_eq!(header("cross-origin-resource-policy"), "same-origin", "{path}");
    }
}

/// The policy would block it, and then the page would lack it.
#[tokio::test]
async fn nothing_is_inline_and_nothing_comes_from_elsewhere() {
    let scene = Scene::new();
    for path in ["/console", "/console/ask", "/console/ask?tenant=x", "/console/policies"] {
        let page = scene.get(path).await;
        for word in ["<style", " style=", " onclick=", "<script>", "http:", "https:", "//"] {
            page.has_not(word);
        }
    }
}

#[tokio::test]
async fn a_name_that_a_stranger_can_point_here_is_not_answered() {
    let scene = Scene::new();
    let known = ["127.0.0.1:9090", "[::1]:9090", "localhost:9090", "console.internal"];
    let unknown = ["evil.example:9090", "localhost.evil.example", ""];
    let cases = known.map(|host| (host, StatusCode::OK)).into_iter();
    for (host, status) in cases.chain(unknown.map(|host| (host, StatusCode::MISDIRECTED_REQUEST))) {
        let request = Request::get("/console").header(HOST, host).body(Body::empty()).unwrap();
        let page = scene.send(request).await;
        assert_eq!(page.status, status, "{host}");
        assert!(page.headers.contains_key("content-security-policy"));
    }
    let nameless = scene.send(Request::get("/console").body(Body::empty()).unwrap()).await;
    assert_eq!(nameless.status, StatusCode::MISDIRECTED_REQUEST);
}

#[tokio::test]
async fn another_site_cannot_ask() {
    let scene = Scene::new();
    let request = || Request::post("/console/ask").header(HOST, "localhost:9090");
    for (name, value) in [
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
        ("origin", "http://localhost:8080"),
        ("origin", "null"),
    ] {
        let page = scene.send(request().header(name, value).body(Body::empty()).unwrap()).await;
        assert_eq!(page.status, StatusCode::FORBIDDEN, "{name}: {value}");
    }
    assert_eq!(scene.metrics.requests_refused().iter().sum::<u64>(), 0);
    let own = request().header("origin", "http://localhost:9090").body(Body::empty()).unwrap();
    assert_eq!(scene.send(own).await.status, StatusCode::UNPROCESSABLE_ENTITY);
}
