//! What has happened already, so that asking twice about it pays once: attempts, reports, leases.
//!
//! Whoever is asked about waits in line: the memory of an attempt or a lease is locked first, and
//! the balances after it.
use std::iter;

use smallvec::SmallVec;

use super::grant::Grant;
use super::recent::{Bounds, Recent};

/// Repeats of one attempt that cost nothing. A constant `call_id` must not lift a budget.
const FREE_REPEATS: u8 = 3;

const MIB: usize = 1 << 20;
const ATTEMPTS: Bounds = Bounds { entries_max: 250_000, bytes_max: 64 * MIB, kept_ms: 10_000 };
const REPORTS: Bounds = Bounds { entries_max: 100_000, bytes_max: 32 * MIB, kept_ms: 600_000 };
const LEASES: Bounds =
    Bounds { entries_max: 100_000, bytes_max: 64 * MIB, kept_ms: LEASE_VALID_MS_MAX };

/// The longest that retries taken ahead are good for.
pub const LEASE_VALID_MS_MAX: u64 = 10_000;

/// The memory of one process, for a while and within bounds. Forgetting charges again, never less.
pub struct Once {
    attempts: Recent<Attempt>,
    reports: Recent<()>,
    leases: Recent<Lease>,
}

struct Attempt {
    free_repeats: u8,
    grant: Grant,
}

struct Lease {
    grant: Grant,
    until_ms: u64,
}

/// Names one attempt, byte by byte.
#[derive(Clone, Copy, Debug)]
pub struct AttemptName<'a> {
    /// Whose attempt it is.
    pub tenant: &'a str,
    /// What was called.
    pub operation: &'a str,
    /// The call's own name. Empty: it has none, and every ask is about a new attempt.
    pub call_id: &'a str,
    /// Attempts already sent.
    pub attempts_made: u32,
}

/// Names one report.
#[derive(Clone, Copy, Debug)]
pub struct ReportName<'a> {
    /// What the caller has proven to be: nobody uses up the ids of another. Empty: nothing.
    pub caller: &'a [Box<str>],
    /// Its own name. Empty: it has none, and counts whenever it comes.
    pub id: &'a str,
}

/// Names retries taken ahead.
#[derive(Clone, Copy, Debug)]
pub struct LeaseName<'a> {
    /// Who took them.
    pub tenant: &'a str,
    /// For what.
    pub operation: &'a str,
    /// The name that they were given.
    pub lease: &'a str,
}

/// Names what was granted.
#[derive(Clone, Copy, Debug)]
pub enum GrantName<'a> {
    /// Retries taken ahead.
    Lease(LeaseName<'a>),
    /// The retry of an attempt.
    Attempt(AttemptName<'a>),
}

/// How often an attempt was asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// For the first time: it earns, counts and pays.
    First,
    /// Again: nothing is earned, counted or paid a second time.
    Repeat,
    /// Too often: it counts and pays like a new one. What it reports was counted with the first.
    Further,
}

impl Once {
    /// Nothing has happened yet.
    pub fn new() -> Once {
        Once {
            attempts: Recent::new(ATTEMPTS),
            reports: Recent::new(REPORTS),
            leases: Recent::new(LEASES),
        }
    }

    /// Decides about an attempt while no other ask of it is decided. `decide` gets what the
    /// attempt was granted so far, and adds what it grants now.
    pub fn ask<R>(
        &self,
        attempt: AttemptName<'_>,
        dry_run: bool,
        now_ms: u64,
        decide: impl FnOnce(Turn, Option<&mut Grant>) -> R,
    ) -> R {
        if attempt.call_id.is_empty() {
            return decide(Turn::First, None);
        }
        let key = attempt.key();
        let mut hold = self.attempts.hold(&key);
        match hold.get_mut(now_ms) {
            None => {
                let mut grant = Grant::default();
                let decided = decide(Turn::First, Some(&mut grant));
                if !dry_run {
                    hold.insert(Attempt { free_repeats: FREE_REPEATS, grant }, now_ms);
                }
                decided
            }
            Some(Attempt { free_repeats: 0, .. }) => {
                // Not the memory's business any more, so nobody waits for it.
                drop(hold);
                decide(Turn::Further, None)
            }
            Some(attempt) => {
                if !dry_run {
                    attempt.free_repeats -= 1;
                }
                decide(Turn::Repeat, Some(&mut attempt.grant))
            }
        }
    }

    /// Whether this report is counted. A report without an id always is.
    pub fn is_new_report(&self, report: ReportName<'_>, now_ms: u64) -> bool {
        if report.id.is_empty() {
            return true;
        }
        let key = report.key();
        let mut hold = self.reports.hold(&key);
        let is_new = hold.get_mut(now_ms).is_none();
        if is_new {
            hold.insert((), now_ms);
        }
        is_new
    }

    /// Remembers retries taken ahead, which may be given back before `until_ms`.
    pub fn lend(&self, name: LeaseName<'_>, grant: Grant, until_ms: u64, now_ms: u64) {
        self.leases.hold(&name.key()).insert(Lease { grant, until_ms }, now_ms);
    }

    /// Has `take_off` give back what was granted under this name, and tells how many retries it
    /// took off. 0 if nothing is known under this name, or its time is over.
    pub fn release(
        &self,
        name: GrantName<'_>,
        now_ms: u64,
        take_off: impl FnOnce(&mut Grant) -> u32,
    ) -> u32 {
        match name {
            GrantName::Attempt(attempt) => {
                let key = attempt.key();
                let mut hold = self.attempts.hold(&key);
                hold.get_mut(now_ms).map_or(0, |attempt| take_off(&mut attempt.grant))
            }
            GrantName::Lease(lease) => {
                let key = lease.key();
                let mut hold = self.leases.hold(&key);
                let lease = hold.get_mut(now_ms).filter(|lease| now_ms < lease.until_ms);
                lease.map_or(0, |lease| take_off(&mut lease.grant))
            }
        }
    }
}

impl Default for Once {
    fn default() -> Once {
        Once::new()
    }
}

impl std::fmt::Debug for Once {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Once").finish_non_exhaustive()
    }
}

/// Room for the longest names that the border lets in.
type Key = SmallVec<[u8; 512]>;

impl AttemptName<'_> {
    fn key(&self) -> Key {
        let attempts_made = self.attempts_made.to_be_bytes();
        joined([self.tenant, self.operation, self.call_id].map(str::as_bytes), &attempts_made)
    }
}

impl ReportName<'_> {
    fn key(&self) -> Key {
        // The id is the caller's to choose: last, it could stand for one more name.
        let names = self.caller.iter().map(|name| name.as_bytes());
        joined(iter::once(self.id.as_bytes()).chain(names), &[])
    }
}

impl LeaseName<'_> {
    fn key(&self) -> Key {
        joined([self.tenant, self.operation].map(str::as_bytes), self.lease.as_bytes())
    }
}

/// Lengths come first: a separator could stand in a name.
fn joined<'p>(parts: impl IntoIterator<Item = &'p [u8]>, last: &[u8]) -> Key {
    let mut key = Key::new();
    for part in parts {
        key.extend_from_slice(&part.len().to_be_bytes());
        key.extend_from_slice(part);
    }
    key.extend_from_slice(last);
    key
}
