//! What one message may hold.
pub use crate::wire::budget::REPORT_ENTRIES_MAX;

/// The largest messages that are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Bytes of a message of RetryService. Default: [`CONTEXT_BYTES_MAX`].
    pub context_bytes_max: usize,
    /// Bytes of a message of BudgetService. Default: [`REPORT_BYTES_MAX`].
    pub report_bytes_max: usize,
    /// Entries of a report, of which the contract allows [`REPORT_ENTRIES_MAX`]. Default: all of them.
    pub report_entries_max: usize,
}

/// Bytes of a message of RetryService.
pub const CONTEXT_BYTES_MAX: usize = 16 * 1024;
/// Bytes of a message of BudgetService. A report with as many entries as the contract allows, each with
/// names of usual lengths, fits in.
pub const REPORT_BYTES_MAX: usize = 512 * 1024;

impl Default for Sizes {
    fn default() -> Sizes {
        Sizes {
            context_bytes_max: CONTEXT_BYTES_MAX,
            report_bytes_max: REPORT_BYTES_MAX,
            report_entries_max: REPORT_ENTRIES_MAX,
        }
    }
}
