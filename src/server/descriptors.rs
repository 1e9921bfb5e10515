//! File descriptors: each connection needs one.
use std::io;

/// Descriptors that are not connections: listeners, standard streams, the runtime, files.
const OTHERS: u64 = 64;

/// Raises the process's soft limit of open files to its hard limit, and warns if connections up
/// to `connections_max` would not fit. Returns the limit.
///
/// # Errors
///
/// If the system does not tell the limit, or refuses to raise it.
pub fn raise_descriptor_limit(connections_max: usize) -> io::Result<u64> {
    let limit = rlimit::increase_nofile_limit(u64::MAX)?;
    let needed = u64::try_from(connections_max).unwrap_or(u64::MAX).saturating_add(OTHERS);
    if limit < needed {
        tracing::warn!(limit, needed, "the limit of open files is below the limit of connections");
    }
    Ok(limit)
}
