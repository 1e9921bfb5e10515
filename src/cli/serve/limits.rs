//! The options that bound what callers may take. docs/limits.md says what each of them means.
use clap::{Args, value_parser};

use crate::server;
use crate::service::{CONTEXT_BYTES_MAX, REPORT_BYTES_MAX, REPORT_ENTRIES_MAX, Sizes};

#[derive(Debug, Args)]
pub(super) struct Limits {
    /// Connections open at a time, 1 to 1000000; one more is closed at once
    #[arg(long, env = "RETRYD_MAX_CONNECTIONS", value_name = "N", default_value_t = 10_000)]
    #[arg(value_parser = value_parser!(u32).range(1..=1_000_000))]
    max_connections: u32,
    /// Connections open at a time from one IP address, 1 to 1000000; one more is closed at once
    #[arg(
        long,
        env = "RETRYD_MAX_CONNECTIONS_PER_PEER",
        value_name = "N",
        default_value_t = 1_000
    )]
    #[arg(value_parser = value_parser!(u32).range(1..=1_000_000))]
    max_connections_per_peer: u32,
    /// Calls and streams open at a time on one connection, 1 to 1000; clients wait with one more
    #[arg(long, env = "RETRYD_MAX_CALLS_PER_CONNECTION", value_name = "N", default_value_t = 128)]
    #[arg(value_parser = value_parser!(u32).range(1..=1_000))]
    max_calls_per_connection: u32,
    /// Calls that wait at a time, 1 to 1000000; one more is refused as OVERLOADED
    #[arg(long, env = "RETRYD_MAX_CALLS", value_name = "N", default_value_t = 20_000)]
    #[arg(value_parser = value_parser!(u32).range(1..=1_000_000))]
    max_calls: u32,
    /// Calls of BudgetService that wait at a time, 1 to 100000; one more is refused as OVERLOADED
    #[arg(long, env = "RETRYD_MAX_BUDGET_CALLS", value_name = "N", default_value_t = 1_000)]
    #[arg(value_parser = value_parser!(u32).range(1..=100_000))]
    max_budget_calls: u32,
    /// Streams open at a time, 1 to 1000000; one more is refused as OVERLOADED
    #[arg(long, env = "RETRYD_MAX_STREAMS", value_name = "N", default_value_t = 10_000)]
    #[arg(value_parser = value_parser!(u32).range(1..=1_000_000))]
    max_streams: u32,
    /// Bytes of a question (a RetryContext), 1024 to 65536
    #[arg(long, env = "RETRYD_MAX_CONTEXT_BYTES", value_name = "N")]
    #[arg(default_value_t = number(CONTEXT_BYTES_MAX))]
    #[arg(value_parser = value_parser!(u32).range(1024..=65_536))]
    max_context_bytes: u32,
    /// Bytes of a message to BudgetService, 1024 to 4194304
    #[arg(long, env = "RETRYD_MAX_REPORT_BYTES", value_name = "N")]
    #[arg(default_value_t = number(REPORT_BYTES_MAX))]
    #[arg(value_parser = value_parser!(u32).range(1024..=4_194_304))]
    max_report_bytes: u32,
    /// Entries of one report, 1 to 1000
    #[arg(long, env = "RETRYD_MAX_REPORT_ENTRIES", value_name = "N")]
    #[arg(default_value_t = number(REPORT_ENTRIES_MAX))]
    #[arg(value_parser = value_parser!(u32).range(1..=1_000))]
    max_report_entries: u32,
}

impl Limits {
    /// `others`, with these limits of connections and calls.
    pub(super) fn in_place_of(&self, others: server::Limits) -> server::Limits {
        server::Limits {
            connections_max: size(self.max_connections),
            connections_per_peer_max: size(self.max_connections_per_peer),
            calls_per_connection_max: self.max_calls_per_connection,
            calls_max: size(self.max_calls),
            budget_calls_max: size(self.max_budget_calls),
            streams_max: size(self.max_streams),
            ..others
        }
    }

    pub(super) fn sizes(&self) -> Sizes {
        Sizes {
            context_bytes_max: size(self.max_context_bytes),
            report_bytes_max: size(self.max_report_bytes),
            report_entries_max: size(self.max_report_entries),
        }
    }
}

fn size(limit: u32) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}

fn number(size: usize) -> u32 {
    u32::try_from(size).unwrap_or(u32::MAX)
}
