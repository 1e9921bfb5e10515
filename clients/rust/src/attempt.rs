//! One attempt: sent, awaited up to its limit, and read as far as it takes to know how it ended.
use std::{error::Error, fmt, future::poll_fn};

use http::{HeaderMap, Response, StatusCode};
use http_body::Body;
use tokio::time::sleep_until;
use tonic::{Code, Status};
use tower_service::Service;

use crate::{
    BoxError,
    body::Begun,
    call::{Failed, Limit},
    hints,
    pb::{Evidence, Failure, FailureCategory as Category, failure},
    transport,
};

/// What the layer tells by the content-type of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Grpc,
    Http,
}

/// How an attempt ended, and what is handed on if it was the last.
pub(crate) struct Outcome<R: Body> {
    pub(crate) failed: Option<Failed>,
    pub(crate) result: Result<Response<Begun<R>>, BoxError>,
}

/// Sends one attempt.
pub(crate) async fn send<S, B, R>(
    service: &mut S,
    request: http::Request<B>,
    protocol: Protocol,
    limit: Option<Limit>,
) -> Outcome<R>
where
    S: Service<http::Request<B>, Response = Response<R>>,
    S::Error: Into<BoxError>,
    R: Body + Unpin,
    R::Error: Error + 'static,
{
    let Some(limit) = limit else { return answer(service, request, protocol).await };
    let (Limit::Attempt(at) | Limit::Call(at)) = limit;
    tokio::select! {
        // First, so that it is always this clock that ends an attempt, and never tonic's own.
        biased;
        () = sleep_until(at) => timed_out(protocol, limit),
        outcome = answer(service, request, protocol) => outcome,
    }
}

async fn answer<S, B, R>(
    service: &mut S,
    request: http::Request<B>,
    protocol: Protocol,
) -> Outcome<R>
where
    S: Service<http::Request<B>, Response = Response<R>>,
    S::Error: Into<BoxError>,
    R: Body + Unpin,
    R::Error: Error + 'static,
{
    match exchange(service, request).await {
        Ok(response) => {
            let mut response = response.map(Begun::untouched);
            let failed = match protocol {
                Protocol::Http => http_failure(&response),
                Protocol::Grpc => grpc_failure(&mut response).await,
            };
            Outcome { failed, result: Ok(response) }
        }
        Err(error) => {
            Outcome { failed: Some(transport::describe(&*error, false)), result: Err(error) }
        }
    }
}

/// A request and its answer, without a look at either.
pub(crate) async fn exchange<S, B, R>(
    service: &mut S,
    request: http::Request<B>,
) -> Result<Response<R>, BoxError>
where
    S: Service<http::Request<B>, Response = Response<R>>,
    S::Error: Into<BoxError>,
{
    poll_fn(|cx| service.poll_ready(cx)).await.map_err(Into::into)?;
    service.call(request).await.map_err(Into::into)
}

fn http_failure<R>(response: &Response<R>) -> Option<Failed> {
    let is_failure = 400 <= response.status().as_u16();
    is_failure.then(|| by_http_status(response))
}

fn by_http_status<R>(response: &Response<R>) -> Failed {
    let status = response.status().as_u16();
    if 599 < status {
        // No status of HTTP's, and none that retryd takes.
        let failure = Failure { category: Category::ProtocolViolation.into(), status: None };
        return Failed { failure, evidence: Evidence::MaybeProcessed, hint: None };
    }
    Failed {
        failure: Failure {
            category: Category::Status.into(),
            status: Some(failure::Status::HttpStatus(status.into())),
        },
        evidence: Evidence::Unspecified,
        hint: hints::read(response.headers(), None),
    }
}

/// The status stands in the headers, or in trailers that come without a message. A message means
/// that the answer has begun.
async fn grpc_failure<R>(response: &mut Response<Begun<R>>) -> Option<Failed>
where
    R: Body + Unpin,
    R::Error: Error + 'static,
{
    if let Some(code) = grpc_status(response.headers()) {
        return status_failure(code, response.headers(), None);
    }
    if response.status() != StatusCode::OK {
        // Something on the way answered in the server's place.
        return Some(by_http_status(response));
    }
    let headers = response.headers().clone();
    match response.body_mut().first().await {
        Some(Ok(frame)) => {
            let trailers = frame.trailers_ref()?;
            let code = grpc_status(trailers).unwrap_or(Code::Unknown);
            status_failure(code, &headers, Some(trailers))
        }
        Some(Err(error)) => Some(transport::describe(error, true)),
        // No status at all, which tonic calls UNKNOWN.
        None => status_failure(Code::Unknown, &headers, None),
    }
}

fn status_failure(code: Code, headers: &HeaderMap, trailers: Option<&HeaderMap>) -> Option<Failed> {
    (code != Code::Ok).then(|| Failed {
        failure: Failure { category: Category::Status.into(), status: Some(grpc_code(code)) },
        evidence: Evidence::Unspecified,
        hint: hints::read(headers, trailers),
    })
}

fn grpc_status(headers: &HeaderMap) -> Option<Code> {
    headers.get(Status::GRPC_STATUS).map(|value| Code::from_bytes(value.as_bytes()))
}

fn grpc_code(code: Code) -> failure::Status {
    failure::Status::GrpcCode(u32::try_from(i32::from(code)).unwrap_or_default())
}

/// Nobody knows what the server makes of it.
fn timed_out<R: Body>(protocol: Protocol, limit: Limit) -> Outcome<R> {
    let status = (protocol == Protocol::Grpc).then_some(grpc_code(Code::DeadlineExceeded));
    let category = match (limit, protocol) {
        (Limit::Call(_), Protocol::Grpc) => Category::Status,
        (Limit::Attempt(_), _) | (Limit::Call(_), Protocol::Http) => Category::AttemptTimeout,
    };
    let error: BoxError = match protocol {
        Protocol::Grpc => Status::deadline_exceeded(TimedOut.to_string()).into(),
        Protocol::Http => TimedOut.into(),
    };
    let failure = Failure { category: category.into(), status };
    let evidence = Evidence::MaybeProcessed;
    Outcome { failed: Some(Failed { failure, evidence, hint: None }), result: Err(error) }
}

/// The `attempt_timeout`, or the call's deadline, passed without an answer.
#[derive(Clone, Copy, Debug)]
pub struct TimedOut;

impl fmt::Display for TimedOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no answer in time")
    }
}

impl Error for TimedOut {}
