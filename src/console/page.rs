//! What all pages have in common.
use std::time::{Duration, SystemTime};

use askama::Template;
use axum::{
    http::StatusCode,
    response::{Html, IntoResponse, Response},
};

/// Shown at the foot of every page.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A page that only says something.
#[derive(Debug, Template)]
#[template(path = "message.html")]
pub(super) struct Message {
    pub(super) title: &'static str,
    pub(super) text: &'static str,
}

impl Message {
    /// None of those at the top.
    fn tab(&self) -> &'static str {
        ""
    }
}

/// Answers with a page.
pub(super) fn show(status: StatusCode, page: &impl Template) -> Response {
    match page.render() {
        Ok(text) => (status, Html(text)).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

/// Such as `Thu, 01 Jan 2026 00:00:30 GMT`.
pub(super) fn date(unix_ms: u64) -> String {
    httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + Duration::from_millis(unix_ms))
}
