//! What the pages load: compiled in, so that nothing comes from elsewhere.
use axum::{
    Router,
    http::header::CONTENT_TYPE,
    response::{IntoResponse, Response},
    routing::get,
};

/// The look of every page, also of one that is a file.
pub(crate) const STYLE: &str = include_str!("assets/console.css");

pub(super) fn router() -> Router {
    Router::new()
        .route("/console/console.css", get(style))
        .route("/console/console.js", get(script))
        .route("/console/icon.svg", get(icon))
}

async fn style() -> Response {
    asset("text/css; charset=utf-8", STYLE)
}

async fn script() -> Response {
    asset("text/javascript; charset=utf-8", include_str!("assets/console.js"))
}

async fn icon() -> Response {
    asset("image/svg+xml", include_str!("assets/icon.svg"))
}

fn asset(media_type: &'static str, text: &'static str) -> Response {
    ([(CONTENT_TYPE, media_type)], text).into_response()
}
