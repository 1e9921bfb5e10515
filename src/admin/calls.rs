//! How long calls took, by method and status: `grpc.server.call.duration` of gRFC A66, with its buckets.
//!
//! The library's histogram takes a lock at each call. Here a call is two additions.
use std::{
    array, fmt,
    sync::atomic::{AtomicU64, Ordering},
};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric as _, NoLabelSet},
    metrics::{MetricType, gauge::ConstGauge},
    registry::Unit,
};

/// The methods that are served, and all others together.
const METHODS: [&str; 13] = [
    "retryd.v1.RetryService/Decide",
    "retryd.v1.RetryService/DecideStream",
    "retryd.v1.BudgetService/ReportUsage",
    "retryd.v1.BudgetService/AcquireRetries",
    "retryd.v1.BudgetService/ReleaseRetries",
    "retryd.v1.BudgetService/GetBudget",
    "retryd.v1.BudgetService/ListBudgets",
    "retryd.v1.BudgetService/WatchBudget",
    "grpc.health.v1.Health/Check",
    "grpc.health.v1.Health/Watch",
    "grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
    "_other",
];

/// gRPC's status codes, by number.
const STATUSES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

/// The upper bounds of gRFC A66, in microseconds. Above the last one there is one bucket more.
const BOUNDS_US: [u32; 41] = [
    0,
    10,
    50,
    100,
    300,
    600,
    800,
    1_000,
    2_000,
    3_000,
    4_000,
    5_000,
    6_000,
    8_000,
    10_000,
    13_000,
    16_000,
    20_000,
    25_000,
    30_000,
    40_000,
    50_000,
    65_000,
    80_000,
    100_000,
    130_000,
    160_000,
    200_000,
    250_000,
    300_000,
    400_000,
    500_000,
    650_000,
    800_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    20_000_000,
    50_000_000,
    100_000_000,
];
const NS_A_US: u64 = 1_000;
const NS_A_SECOND: f64 = 1e9;

/// A method, as far as calls of it are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Method(usize);

impl Method {
    /// The method of a path such as `/retryd.v1.RetryService/Decide`.
    pub fn of(path: &str) -> Method {
        let name = path.strip_prefix('/').unwrap_or_default();
        let other = METHODS.len() - 1;
        Method(METHODS.iter().position(|method| *method == name).unwrap_or(other))
    }

    /// Its name, without the first slash. Of all others together: `_other`.
    pub fn name(self) -> &'static str {
        METHODS.get(self.0).copied().unwrap_or("_other")
    }
}

/// The name of a gRPC status code.
pub fn status_name(code: usize) -> &'static str {
    STATUSES.get(code).copied().unwrap_or("UNKNOWN")
}

/// All calls of the process.
#[derive(Debug)]
pub struct Calls {
    methods: Box<[Calling]>,
}

/// The calls of one method.
#[derive(Debug)]
struct Calling {
    begun: AtomicU64,
    ended: [Durations; STATUSES.len()],
}

/// Calls that ended in one way, in buckets.
#[derive(Debug)]
struct Durations {
    buckets: [AtomicU64; BOUNDS_US.len() + 1],
    sum_ns: AtomicU64,
}

impl Calls {
    pub(super) fn new() -> Calls {
        let calling =
            || Calling { begun: AtomicU64::new(0), ended: array::from_fn(|_| Durations::new()) };
        Calls { methods: METHODS.iter().map(|_| calling()).collect() }
    }

    /// A call has come.
    pub fn begun(&self, Method(method): Method) {
        if let Some(calling) = self.methods.get(method) {
            calling.begun.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// It has ended, after so long, with this status code.
    pub fn ended(&self, Method(method): Method, status: usize, after_ns: u64) {
        let durations = self.methods.get(method).and_then(|calling| calling.ended.get(status));
        if let Some(durations) = durations {
            durations.add(after_ns);
        }
    }
}

impl Durations {
    fn new() -> Durations {
        Durations { buckets: array::from_fn(|_| AtomicU64::new(0)), sum_ns: AtomicU64::new(0) }
    }

    fn add(&self, ns: u64) {
        let place = BOUNDS_US.partition_point(|bound| u64::from(*bound) * NS_A_US < ns);
        if let Some(bucket) = self.buckets.get(place) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        self.sum_ns.fetch_add(ns, Ordering::Relaxed);
    }

    fn count(&self) -> u64 {
        self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed)).sum()
    }

    /// The counts, each with its bound in seconds. They add up to the count that is told with them.
    fn buckets(&self) -> Vec<(f64, u64)> {
        let bounds = BOUNDS_US.iter().map(|bound| f64::from(*bound) / 1e6).chain([f64::INFINITY]);
        bounds.zip(self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed))).collect()
    }
}

impl Collector for Calls {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let (name, help) = ("rpc_server_call_duration", "How long calls took, from head to end");
        let kind = MetricType::Histogram;
        let mut written = encoder.encode_descriptor(name, help, Some(&Unit::Seconds), kind)?;
        for (method, calling) in METHODS.iter().zip(&self.methods) {
            for (status, durations) in STATUSES.iter().zip(&calling.ended) {
                let buckets = durations.buckets();
                let count = buckets.iter().map(|(_, count)| count).sum();
                if count == 0 {
                    continue;
                }
                let sum = durations.sum_ns.load(Ordering::Relaxed) as f64 / NS_A_SECOND;
                written
                    .encode_family(&[("method", *method), ("status", *status)])?
                    .encode_histogram::<NoLabelSet>(sum, count, &buckets, None)?;
            }
        }
        let (name, help) = ("rpc_server_calls_in_flight", "Calls and streams that have not ended");
        let mut written = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (method, calling) in METHODS.iter().zip(&self.methods) {
            let ended: u64 = calling.ended.iter().map(Durations::count).sum();
            let in_flight = calling.begun.load(Ordering::Relaxed).saturating_sub(ended);
            let in_flight = i64::try_from(in_flight).unwrap_or(i64::MAX);
            ConstGauge::new(in_flight).encode(written.encode_family(&[("method", *method)])?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
