//! The page that asks: a context as text or by its common fields, and the answer of every rule.
use std::{sync::Arc, time::Duration};

use askama::Template;
use axum::{
    body::{Body, to_bytes},
    extract::{RawQuery, State},
    http::StatusCode,
    response::Response,
};
use tokio::time::timeout;
use url::form_urlencoded;

use super::Running;
use super::answer::Answer;
use super::context::{self, NotAContext};
use super::fields::Fields;
use super::page::{self, Message};
use crate::budget::Store;
use crate::wire::pb;
use crate::wire::refusal::Refusal;

/// How long a form may take to arrive.
const FORM_WAIT_MAX: Duration = Duration::from_secs(10);

#[derive(Template)]
#[template(path = "ask.html")]
struct Page {
    text: String,
    fields: Fields,
    by_fields: bool,
    outcome: Option<Outcome>,
}

enum Outcome {
    Decided(Box<Answer>),
    Refused(Vec<pb::FieldViolation>),
    Unreadable(NotAContext),
}

impl Page {
    /// Which link at the top leads here.
    fn tab(&self) -> &'static str {
        "ask"
    }

    fn is_wrong(&self) -> bool {
        matches!(self.outcome, Some(Outcome::Refused(_) | Outcome::Unreadable(_)))
    }

    fn show(self) -> Response {
        let status =
            if self.is_wrong() { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
        page::show(status, &self)
    }
}

/// The page as it begins, or the answer to the fields in its address.
pub(super) async fn form<S: Store>(
    State(running): State<Arc<Running<S>>>,
    RawQuery(query): RawQuery,
) -> Response {
    let by_fields = query.as_ref().is_some_and(|query| !query.is_empty());
    let fields = match query {
        Some(query) if by_fields => Fields::parse(&query),
        Some(_) | None => Fields::example(),
    };
    let text = fields.to_json();
    let outcome = by_fields.then(|| running.ask(&text));
    Page { text, fields, by_fields, outcome }.show()
}

/// The answer to a text. Nothing is changed by it; it is too long for an address.
pub(super) async fn text<S: Store>(State(running): State<Arc<Running<S>>>, body: Body) -> Response {
    let form_bytes_max = form_bytes_max(running.context_bytes_max());
    let Ok(read) = timeout(FORM_WAIT_MAX, to_bytes(body, form_bytes_max)).await else {
        let text = "The form did not arrive within ten seconds.";
        return page::show(StatusCode::REQUEST_TIMEOUT, &Message { title: "Too slow", text });
    };
    let Ok(form) = read else {
        let text =
            "The text is more than twice as long as a context may be. Go back to shorten it.";
        return page::show(StatusCode::PAYLOAD_TOO_LARGE, &Message { title: "Too long", text });
    };
    let text = form_urlencoded::parse(&form).find(|(name, _)| name == "context");
    let text = text.map(|(_, text)| text.into_owned()).unwrap_or_default();
    let outcome = Some(running.ask(&text));
    Page { text, fields: Fields::example(), by_fields: false, outcome }.show()
}

/// Encoding for a form makes at most three bytes of each, and the name of the field comes on top. Up
/// to twice of what is read, the text comes back with the reason why it is too long.
fn form_bytes_max(context_bytes_max: usize) -> usize {
    context_bytes_max.saturating_mul(6).saturating_add(64)
}

impl<S: Store> Running<S> {
    /// A text is as long as a message may be. A context whose names and ids have their full length
    /// takes a tenth of the default.
    fn context_bytes_max(&self) -> usize {
        self.console.retryd.sizes().context_bytes_max
    }

    fn ask(&self, text: &str) -> Outcome {
        let context = match context::read(text, self.context_bytes_max()) {
            Ok(context) => context,
            Err(unreadable) => return Outcome::Unreadable(unreadable),
        };
        match self.decide(&context) {
            Ok(answer) => Outcome::Decided(Box::new(answer)),
            Err(refusal) => Outcome::Refused(pb::Refusal::from(refusal).violations),
        }
    }

    fn decide(&self, context: &pb::RetryContext) -> Result<Answer, Refusal> {
        let (decision, budgets) = self.console.retryd.preview(context)?;
        Ok(Answer::new(context, decision, budgets))
    }
}
