//! What a match of a route takes, as patterns over names.
use std::cmp::Reverse;

use super::super::at::At;
use super::super::http;
use super::super::reader::Reader;
use super::object::word;
use crate::policy::Pattern;

const CONDITION: &str = "a policy matches names alone: this match is left out, and what it takes goes on \
    to the next";
const EXPRESSION: &str = "a policy knows no regular expressions: this match is left out, and what it takes \
    goes on to the next";

pub(super) struct Matched {
    pub(super) rank: Rank,
    pub(super) patterns: Vec<Pattern>,
}

/// Of two matches that take a request, Gateway API goes by the one that stands first here, whatever
/// their order in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    Exact,
    /// So many characters of a path, or of the name of a service.
    Prefix(Reverse<usize>),
    /// A method of any service.
    Method,
    Everything,
}

impl Matched {
    pub(super) fn everything() -> Matched {
        Matched { rank: Rank::Everything, patterns: vec![Pattern::everything()] }
    }

    fn of(rank: Rank, patterns: &[String]) -> Matched {
        let patterns = patterns.iter().filter_map(|text| Pattern::new(text)).collect();
        Matched { rank, patterns }
    }
}

/// A match of an HTTPRoute, if it asks for nothing but a path.
pub(super) fn http(reader: &mut Reader, at: At<'_>) -> Option<Matched> {
    let mut fields = reader.fields(at);
    let path = fields.take("path");
    let matched = path.map_or_else(|| Some(Matched::everything()), |at| path_of(reader, at));
    let is_path = fields.left() == 0;
    reader.leave_rest(fields, |_| CONDITION);
    matched.filter(|_| is_path)
}

fn path_of(reader: &mut Reader, at: At<'_>) -> Option<Matched> {
    let mut fields = reader.fields(at.clone());
    let how = word(reader, &mut fields, "type", Some("PathPrefix"));
    let path = word(reader, &mut fields, "value", Some("/"));
    reader.leave_rest(fields, |_| "retryd does not know this key");
    let (how, path) = (how?, path?);
    if how == "RegularExpression" {
        reader.leave(&at, EXPRESSION);
        return None;
    }
    if !path.starts_with('/') || !path.bytes().all(|byte| byte.is_ascii_graphic()) {
        reader.refuse(&at, "must have a path as its `value`, such as `/orders`");
        return None;
    }
    if path.contains('*') {
        reader.leave(&at, "to a policy `*` stands for any text: this match is left out");
        return None;
    }
    match how {
        "Exact" => Some(Matched::of(Rank::Exact, &[http::operation(path).to_owned()])),
        // `/orders` takes itself and what is below it, but not `/orders-old`.
        "PathPrefix" => Some(match path.trim_end_matches('/') {
            "" => Matched::everything(),
            path => {
                let operation = http::operation(path);
                let rank = Rank::Prefix(Reverse(path.len()));
                Matched::of(rank, &[operation.to_owned(), format!("{operation}/*")])
            }
        }),
        _ => {
            reader.refuse(&at, "must have the `type` Exact, PathPrefix or RegularExpression");
            None
        }
    }
}

/// A match of a GRPCRoute, if it asks for nothing but a service and a method.
pub(super) fn grpc(reader: &mut Reader, at: At<'_>) -> Option<Matched> {
    let mut fields = reader.fields(at);
    let method = fields.take("method");
    let matched = method.map_or_else(|| Some(Matched::everything()), |at| method_of(reader, at));
    let is_method = fields.left() == 0;
    reader.leave_rest(fields, |_| CONDITION);
    matched.filter(|_| is_method)
}

fn method_of(reader: &mut Reader, at: At<'_>) -> Option<Matched> {
    let mut fields = reader.fields(at.clone());
    let how = word(reader, &mut fields, "type", Some("Exact"));
    let service = word(reader, &mut fields, "service", Some(""));
    let method = word(reader, &mut fields, "method", Some(""));
    reader.leave_rest(fields, |_| "retryd does not know this key");
    let (how, service, method) = (how?, service?, method?);
    if how == "RegularExpression" {
        reader.leave(&at, EXPRESSION);
        return None;
    }
    if how != "Exact" {
        reader.refuse(&at, "must have the `type` Exact or RegularExpression");
        return None;
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_.".contains(c);
    if !service.chars().chain(method.chars()).all(is_plain) {
        reader.refuse(&at, "must have names of gRPC as its `service` and `method`");
        return None;
    }
    Some(match (service, method) {
        ("", "") => Matched::everything(),
        ("", method) => Matched::of(Rank::Method, &[format!("*/{method}")]),
        (service, "") => {
            Matched::of(Rank::Prefix(Reverse(service.len())), &[format!("{service}/*")])
        }
        (service, method) => Matched::of(Rank::Exact, &[format!("{service}/{method}")]),
    })
}
