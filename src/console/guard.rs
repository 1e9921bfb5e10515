//! Whose requests are answered, and what every answer says about itself.
//!
//! Whoever reaches the port may read, and what stands between it and the web is the address that it
//! listens on. A browser is inside that border and runs code of strangers: so a request must name a
//! host that no stranger can point here (against DNS rebinding), and must not come from another site.
use std::{net::IpAddr, sync::Arc};

use axum::{
    extract::{Request, State},
    http::{
        HeaderMap, HeaderName, HeaderValue, Method, StatusCode,
        header::{
            CACHE_CONTROL, CONTENT_SECURITY_POLICY, HOST, ORIGIN, REFERRER_POLICY,
            X_CONTENT_TYPE_OPTIONS,
        },
        uri::Authority,
    },
    middleware::Next,
    response::Response,
};

use super::page::{self, Message};

/// Nothing from elsewhere, nothing inline, and no page around it.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; \
     img-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

const SAID_OF_EVERY_ANSWER: [(HeaderName, HeaderValue); 5] = [
    (CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    // Not `no-referrer`: then a form of the console itself would come from the origin `null`.
    (REFERRER_POLICY, HeaderValue::from_static("same-origin")),
    (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        HeaderValue::from_static("same-origin"),
    ),
];

/// The names by which the console may be asked for.
#[derive(Debug)]
pub(super) struct Hosts(Vec<String>);

impl Hosts {
    pub(super) fn new(names: Vec<String>) -> Hosts {
        Hosts(names)
    }

    /// An IP address is where the browser really is, whatever a name server says.
    fn allow(&self, host: &str) -> bool {
        let Ok(authority) = host.parse::<Authority>() else { return false };
        let name = authority.host();
        let ip = name.strip_prefix('[').and_then(|ip| ip.strip_suffix(']')).unwrap_or(name);
        ip.parse::<IpAddr>().is_ok()
            || name.eq_ignore_ascii_case("localhost")
            || self.0.iter().any(|known| known.eq_ignore_ascii_case(name))
    }
}

pub(super) async fn guard(
    State(hosts): State<Arc<Hosts>>,
    request: Request,
    next: Next,
) -> Response {
    let mut response = match refusal(&hosts, request.method(), request.headers()) {
        Some((status, message)) => page::show(status, &message),
        None => next.run(request).await,
    };
    response.headers_mut().extend(SAID_OF_EVERY_ANSWER);
    response
}

fn refusal(hosts: &Hosts, method: &Method, headers: &HeaderMap) -> Option<(StatusCode, Message)> {
    let host = text(headers, &HOST).unwrap_or_default();
    if !hosts.allow(host) {
        let message = Message {
            title: "Not under this name",
            text: "The console answers to IP addresses and to localhost. `retryd serve --console-host NAME` adds a name.",
        };
        return Some((StatusCode::MISDIRECTED_REQUEST, message));
    }
    if is_foreign(host, method, headers) {
        let message = Message {
            title: "Not from another site",
            text: "Another site's page has sent this request. Open the console itself.",
        };
        return Some((StatusCode::FORBIDDEN, message));
    }
    None
}

/// Browsers say where a request comes from. Following a link is all that another site may do.
fn is_foreign(host: &str, method: &Method, headers: &HeaderMap) -> bool {
    let follows_a_link = matches!(*method, Method::GET | Method::HEAD)
        && text(headers, &HeaderName::from_static("sec-fetch-mode")) == Some("navigate");
    match text(headers, &HeaderName::from_static("sec-fetch-site")) {
        Some("same-origin" | "none") => false,
        Some(_) => !follows_a_link,
        // An old browser, or none.
        None => text(headers, &ORIGIN).is_some_and(|origin| {
            origin.split_once("://").is_none_or(|(_, authority)| authority != host)
        }),
    }
}

fn text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_no_stranger_can_point_here_are_answered() {
        let hosts = Hosts::new(vec!["retryd.internal".to_owned()]);
        let cases = [
            ("127.0.0.1:9090", true),
            ("127.0.0.1", true),
            ("[::1]:9090", true),
            ("10.1.2.3:9090", true),
            ("localhost:9090", true),
            ("LOCALHOST", true),
            ("retryd.internal:80", true),
            ("evil.example", false),
            ("localhost.evil.example:9090", false),
            ("127.0.0.1.evil.example", false),
            ("evil.example@127.0.0.2.evil", false),
            ("not an authority", false),
            ("", false),
        ];
        for (host, expected) in cases {
            assert_eq!(hosts.allow(host), expected, "{host}");
        }
    }

    #[test]
    fn another_site_may_link_here_and_do_nothing_else() {
        let site = "sec-fetch-site";
        let cases = [
            (Method::POST, &[][..], false),
            (Method::POST, &[(site, "same-origin")], false),
            (Method::POST, &[(site, "cross-site"), ("sec-fetch-mode", "navigate")], true),
            (Method::POST, &[(site, "same-site")], true),
            (Method::GET, &[(site, "none")], false),
            (Method::GET, &[(site, "cross-site"), ("sec-fetch-mode", "navigate")], false),
            (Method::GET, &[(site, "cross-site"), ("sec-fetch-mode", "no-cors")], true),
            (Method::POST, &[("origin", "http://localhost:9090")], false),
            (Method::POST, &[("origin", "http://localhost:9091")], true),
            (Method::POST, &[("origin", "https://evil.example")], true),
            (Method::POST, &[("origin", "null")], true),
        ];
        for (method, headers, expected) in cases {
            let named = headers.iter().map(|(name, value)| {
                (HeaderName::from_static(name), HeaderValue::from_static(value))
            });
            let map: HeaderMap = named.collect();
            assert_eq!(
                is_foreign("localhost:9090", &method, &map),
                expected,
                "{method} {headers:?}"
            );
        }
    }
}
