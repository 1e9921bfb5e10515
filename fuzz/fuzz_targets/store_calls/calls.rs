//! What is called. There are few names, so that callers meet.
use arbitrary::{Arbitrary, Result, Unstructured};
use retryd::wire::pb;

/// Whose budgets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Who {
    pub(crate) tenant: &'static str,
    pub(crate) operation: &'static str,
}

const fn who(tenant: &'static str, operation: &'static str) -> Who {
    Who { tenant, operation }
}

pub(crate) const EVERYBODY: [Who; 6] = [
    who("a", "x"),
    who("a", "y"),
    who("b", "x"),
    who("b", "y"),
    who("watched", "x"),
    who("watched", "y"),
];

#[derive(Clone, Debug)]
pub(crate) enum Call {
    Decide(Attempt),
    /// What was decided last, in the same bytes.
    Again,
    Report {
        id: &'static str,
        entries: Vec<(Who, pb::Usage)>,
    },
    Acquire {
        who: Who,
        wanted: u32,
    },
    /// Of the leases there were, one.
    Release {
        lease: usize,
        /// Not necessarily who has it.
        by: Option<Who>,
        unused: u32,
    },
    ReleaseDecided {
        who: Who,
        call_id: &'static str,
        attempts_made: u32,
        unused: u32,
    },
    /// At everybody's budgets, and at all balances in pages.
    Look {
        page_size: u32,
    },
    /// Goes by another policy file.
    Reload(usize),
    /// Time passes.
    Wait(u64),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempt {
    pub(crate) who: Who,
    pub(crate) call_id: &'static str,
    pub(crate) attempts_made: u32,
    pub(crate) usage: Option<pb::Usage>,
    failure: pb::Failure,
    is_forbidden: bool,
}

impl Attempt {
    pub(crate) fn context(&self, dry_run: bool) -> pb::RetryContext {
        let pushback = self.is_forbidden.then(|| "-1".to_owned());
        pb::RetryContext {
            tenant: self.who.tenant.to_owned(),
            operation: self.who.operation.to_owned(),
            attempts_made: self.attempts_made,
            body_replayable: true,
            idempotency: Some(pb::Idempotency { declared: true, ..Default::default() }),
            failure: Some(self.failure),
            hint: Some(pb::ServerHint { grpc_retry_pushback_ms: pushback, ..Default::default() }),
            usage: self.usage,
            call_id: self.call_id.to_owned(),
            explain: true,
            dry_run,
            ..Default::default()
        }
    }
}

impl<'a> Arbitrary<'a> for Call {
    fn arbitrary(bytes: &mut Unstructured<'a>) -> Result<Call> {
        Ok(match bytes.int_in_range(0..=13)? {
            0..=3 => Call::Decide(attempt(bytes)?),
            4 | 5 => Call::Again,
            6 => {
                let count = bytes.int_in_range(1..=3)?;
                let entry = |_| Ok((*bytes.choose(&EVERYBODY)?, usage(bytes)?));
                let entries = (0..count).map(entry).collect::<Result<_>>()?;
                Call::Report { id: bytes.choose(&["", "r", "s"])?, entries }
            }
            7 => Call::Acquire {
                who: *bytes.choose(&EVERYBODY)?,
                wanted: if bool::arbitrary(bytes)? {
                    bytes.int_in_range(1..=4)?
                } else {
                    bytes.int_in_range(1..=1_000)?
                },
            },
            8 => Call::Release {
                lease: usize::from(u8::arbitrary(bytes)?),
                by: if bytes.ratio(1_u8, 8_u8)? { Some(*bytes.choose(&EVERYBODY)?) } else { None },
                unused: bytes.int_in_range(1..=9)?,
            },
            9 => Call::ReleaseDecided {
                who: *bytes.choose(&EVERYBODY)?,
                call_id: bytes.choose(&["c", "d"])?,
                attempts_made: bytes.int_in_range(1..=3)?,
                unused: bytes.int_in_range(1..=2)?,
            },
            10 => Call::Look { page_size: bytes.int_in_range(1..=4)? },
            11 => Call::Reload(bytes.int_in_range(0..=2)?),
            _ => Call::Wait(match bytes.int_in_range(0..=4)? {
                0 => bytes.int_in_range(0..=2_000)?,
                1 => bytes.int_in_range(999..=1_001)?,
                2 => bytes.int_in_range(9_998..=10_001)?,
                3 => bytes.int_in_range(599_999..=601_001)?,
                _ => bytes.int_in_range(0..=100_000)?,
            }),
        })
    }
}

fn attempt(bytes: &mut Unstructured<'_>) -> Result<Attempt> {
    use pb::FailureCategory as Category;
    use pb::failure::Status;
    let of = |category: Category, status| pb::Failure { category: category.into(), status };
    let failures = [
        of(Category::Connect, None),
        of(Category::Unspecified, Some(Status::HttpStatus(503))),
        of(Category::Unspecified, Some(Status::HttpStatus(429))),
        of(Category::AttemptTimeout, None),
        of(Category::Unspecified, Some(Status::HttpStatus(400))),
    ];
    Ok(Attempt {
        who: *bytes.choose(&EVERYBODY)?,
        call_id: bytes.choose(&["", "c", "c", "d"])?,
        attempts_made: bytes.int_in_range(1..=3)?,
        usage: if bytes.ratio(1_u8, 4_u8)? { Some(usage(bytes)?) } else { None },
        failure: *bytes.choose(&failures)?,
        is_forbidden: bytes.ratio(1_u8, 8_u8)?,
    })
}

fn usage(bytes: &mut Unstructured<'_>) -> Result<pb::Usage> {
    let requests_max = if bool::arbitrary(bytes)? { 20 } else { 1_000_000_000 };
    let period = pbjson_types::Duration { seconds: bytes.int_in_range(1..=120)?, nanos: 0 };
    let requests = bytes.int_in_range(0..=requests_max)?;
    let retried_successes = bytes.int_in_range(0..=9)?;
    Ok(pb::Usage {
        requests,
        first_try_successes: bytes.int_in_range(0..=requests.min(9))?,
        retried_successes,
        retried_transient: bytes.int_in_range(0..=retried_successes)?,
        retried_throttling: 0,
        retried_timeout: 0,
        period: bool::arbitrary(bytes)?.then_some(period),
    })
}
