//! What routes of HTTP have in common: paths and statuses.
use super::at::At;
use super::reader::Reader;
use crate::engine::{Failure, HttpStatus, Judged, Rules};

/// The operation at a path. `/pkg.Svc/Method` is a method of gRPC, whose name has no first slash.
pub(super) fn operation(path: &str) -> &str {
    let plain = path.strip_prefix('/').unwrap_or(path);
    let is_grpc = plain.split('/').next().is_some_and(|service| service.contains('.'));
    if is_grpc { plain } else { path }
}

/// Lists the statuses that a repeat may heal, and tells the others.
pub(super) fn list(
    reader: &mut Reader,
    at: &At<'_>,
    rules: &mut Rules,
    statuses: impl Iterator<Item = u64>,
) {
    let mut permanent = Vec::new();
    for status in statuses.filter_map(|status| HttpStatus::new(u16::try_from(status).ok()?)) {
        if Judged::by(&Rules::default(), Failure::Http(status)).is_permanent() {
            permanent.push(status.get().to_string());
        } else {
            let listed = &mut rules.retry_on.statuses.http;
            *listed = listed.with(status);
        }
    }
    if !permanent.is_empty() {
        let why = format!("retryd never repeats {}: no repeat heals it", permanent.join(", "));
        reader.leave(at, why);
    }
}
