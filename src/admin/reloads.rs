//! How reloads of the policy file went: counted, and kept for people to read.
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use parking_lot::Mutex;
use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::{Registry, Unit},
};

/// What became of reloads.
#[derive(Debug)]
pub struct Reloads {
    applied: Counter,
    refused: Counter,
    successful: Gauge,
    success_seconds: Gauge,
    success_unix_ms: AtomicU64,
    error: Mutex<Option<Arc<ReloadError>>>,
}

/// Why what is at the policy path is not in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReloadError {
    /// The whole report, over some lines, with those of the file that are wrong.
    pub text: Box<str>,
    /// The same without lines of the file.
    pub brief: Box<str>,
    /// When it was found, in milliseconds since 1970.
    pub unix_ms: u64,
}

pub(super) type Outcomes = Family<[(&'static str, &'static str); 1], Counter>;

impl Reloads {
    pub(super) fn register(registry: &mut Registry) -> Reloads {
        let outcomes = Outcomes::default();
        registry.register("policy_reloads", "Reloads of the policy file", outcomes.clone());
        let successful = Gauge::default();
        successful.set(1);
        let help = "Whether what is at the policy path is in force";
        registry.register("policy_last_reload_successful", help, successful.clone());
        let success_seconds = Gauge::default();
        let name = "policy_last_reload_success_timestamp";
        let help = "When the policy in force was read";
        registry.register_with_unit(name, help, Unit::Seconds, success_seconds.clone());
        Reloads { successful, success_seconds, ..Reloads::by(&outcomes) }
    }

    /// Of which only the outcomes show, in this family.
    pub(super) fn by(outcomes: &Outcomes) -> Reloads {
        Reloads {
            applied: outcomes.get_or_create_owned(&[("outcome", "applied")]),
            refused: outcomes.get_or_create_owned(&[("outcome", "refused")]),
            successful: Gauge::default(),
            success_seconds: Gauge::default(),
            success_unix_ms: AtomicU64::new(0),
            error: Mutex::default(),
        }
    }

    /// What is at the policy path is in force.
    pub fn applied(&self) {
        self.applied.inc();
        *self.error.lock() = None;
        self.successful.set(1);
    }

    /// What is at the policy path was refused: the last good one stays.
    pub fn refused(&self, error: ReloadError) {
        self.refused.inc();
        *self.error.lock() = Some(Arc::new(error));
        self.successful.set(0);
    }

    /// How many were applied, and how many refused.
    pub fn counts(&self) -> (u64, u64) {
        (self.applied.get(), self.refused.get())
    }

    /// Why the policy in force is not what is at the path. `None`: it is.
    pub fn error(&self) -> Option<Arc<ReloadError>> {
        self.error.lock().clone()
    }

    /// When the policy in force was read, at the start or later, in milliseconds since 1970.
    pub fn success_unix_ms(&self) -> u64 {
        self.success_unix_ms.load(Ordering::Relaxed)
    }

    pub(super) fn set_success(&self, unix_ms: u64) {
        self.success_unix_ms.store(unix_ms, Ordering::Relaxed);
        self.success_seconds.set(i64::try_from(unix_ms / 1000).unwrap_or(i64::MAX));
    }
}
