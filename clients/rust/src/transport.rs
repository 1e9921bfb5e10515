//! What an error of tonic, hyper or h2 proves about the attempt: read from types, never from what
//! a server could have written.
use std::{error::Error, io, iter::successors};

use h2::Reason;
use hyper_util::client::legacy;
use tonic::Status;
use tower_service::Service;

use crate::{
    call::Failed,
    pb::{Evidence, Failure, FailureCategory as Category, failure},
};

/// The errors of the connector that tonic and hyper-util connect with.
type HttpConnectError = <legacy::connect::HttpConnector as Service<http::Uri>>::Error;

/// What a failed attempt is without an answer. After the headers of one, nothing proves that no
/// work was done.
pub(crate) fn describe(error: &(dyn Error + 'static), headers_came: bool) -> Failed {
    let known = causes(error).find_map(classify);
    let (category, evidence, status) = match known {
        Some((category, evidence)) => (category, evidence, None),
        None => match causes(error).find_map(|cause| cause.downcast_ref::<Status>()) {
            Some(status) => (Category::Status, Evidence::Unspecified, Some(code(status))),
            // Permanent: what is not understood is not repeated.
            None => (Category::ResponseUnreadable, Evidence::MaybeProcessed, None),
        },
    };
    let evidence = if headers_came { Evidence::MaybeProcessed } else { evidence };
    let category = match category {
        Category::StreamRefused if headers_came => Category::ConnectionReset,
        category => category,
    };
    Failed { failure: Failure { category: category.into(), status }, evidence, hint: None }
}

fn classify(cause: &(dyn Error + 'static)) -> Option<(Category, Evidence)> {
    if cause.is::<tonic::TimeoutExpired>() {
        return Some((Category::AttemptTimeout, Evidence::MaybeProcessed));
    }
    let no_connection = cause.is::<tonic::ConnectError>()
        || cause.downcast_ref::<legacy::Error>().is_some_and(legacy::Error::is_connect);
    if no_connection {
        return Some((connect(cause), Evidence::NotSent));
    }
    if let Some(error) = cause.downcast_ref::<h2::Error>() {
        return Some(http2(error));
    }
    if let Some(error) = cause.downcast_ref::<hyper::Error>() {
        return hyper(error);
    }
    let lost = cause.is::<io::Error>();
    lost.then_some((Category::ConnectionReset, Evidence::MaybeProcessed))
}

fn connect(error: &(dyn Error + 'static)) -> Category {
    // The type proves that the text is the connector's own; it has no other mark for this.
    let is_dns = |cause: &(dyn Error + 'static)| {
        cause.is::<HttpConnectError>() && cause.to_string() == "dns error"
    };
    // How tokio-rustls hands on the errors of rustls.
    let is_tls = |cause: &(dyn Error + 'static)| {
        let io = cause.downcast_ref::<io::Error>();
        io.is_some_and(|error| error.kind() == io::ErrorKind::InvalidData)
    };
    if causes(error).any(is_dns) {
        Category::NameResolution
    } else if causes(error).any(is_tls) {
        Category::TlsHandshake
    } else {
        Category::Connect
    }
}

fn http2(error: &h2::Error) -> (Category, Evidence) {
    // h2 ends only those streams by a GOAWAY of the server that lie above its last one.
    let above = error.is_go_away() && error.is_remote();
    let refused = error.is_reset() && error.reason() == Some(Reason::REFUSED_STREAM);
    if above || (refused && error.is_remote()) {
        (Category::StreamRefused, Evidence::Refused)
    } else if error.is_library() {
        (Category::ProtocolViolation, Evidence::MaybeProcessed)
    } else {
        (Category::ConnectionReset, Evidence::MaybeProcessed)
    }
}

/// `None`: its source knows more.
fn hyper(error: &hyper::Error) -> Option<(Category, Evidence)> {
    let http2 = error.source().and_then(|source| source.downcast_ref::<h2::Error>());
    if error.is_canceled() {
        // hyper says this of requests only that it has not begun to write.
        Some((Category::ConnectionReset, Evidence::NotSent))
    } else if http2.is_some() {
        None
    } else if error.is_parse() {
        Some((Category::ProtocolViolation, Evidence::MaybeProcessed))
    } else if error.is_user() {
        Some((Category::RequestRejected, Evidence::MaybeProcessed))
    } else {
        Some((Category::ConnectionReset, Evidence::MaybeProcessed))
    }
}

fn code(status: &Status) -> failure::Status {
    failure::Status::GrpcCode(u32::try_from(i32::from(status.code())).unwrap_or_default())
}

/// An error and what caused it, from the outside to the inside.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    successors(Some(error), |&error| error.source())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(error: impl Error + 'static, headers_came: bool, wanted: (Category, Evidence)) {
        let failed = describe(&error, headers_came);
        assert_eq!((failed.failure.category(), failed.evidence), wanted, "{error:?}");
    }

    fn connect_error(kind: io::ErrorKind, text: &'static str) -> tonic::ConnectError {
        tonic::ConnectError(io::Error::new(kind, text).into())
    }

    #[test]
    fn a_text_that_is_not_the_connectors_proves_nothing() {
        let error = connect_error(io::ErrorKind::Other, "dns error");
        check(error, false, (Category::Connect, Evidence::NotSent));
        let error = io::Error::other("tcp connect error: Connection refused");
        check(error, false, (Category::ConnectionReset, Evidence::MaybeProcessed));
    }

    #[test]
    fn a_failed_handshake_sent_nothing() {
        let error = connect_error(io::ErrorKind::InvalidData, "alert");
        check(error, false, (Category::TlsHandshake, Evidence::NotSent));
    }

    #[test]
    fn a_reason_without_a_frame_of_the_server_proves_nothing() {
        let error = h2::Error::from(Reason::REFUSED_STREAM);
        check(error, false, (Category::ConnectionReset, Evidence::MaybeProcessed));
    }

    #[test]
    fn nothing_is_proven_after_headers() {
        let error = connect_error(io::ErrorKind::Other, "strange");
        check(error, true, (Category::Connect, Evidence::MaybeProcessed));
    }

    #[test]
    fn what_another_layer_made_is_judged_by_its_code() {
        let failed = describe(&Status::unauthenticated("connection refused"), false);
        assert_eq!(failed.failure.status, Some(failure::Status::GrpcCode(16)));
        assert_eq!(failed.evidence, Evidence::Unspecified);
    }
}
