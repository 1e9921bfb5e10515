//! What the contract says, in its own words and numbers. Of the engine it knows the facts alone.
use retryd::engine::{
    Backoff, Categories, Category, Class, Coverage, Evidence, Facts, Failure, GrpcCode, GrpcCodes,
    HttpStatuses, Idempotency, Jitter, RetryOn, Rules, Statuses, Wait,
};

/// The answer to one attempt: the name of the reason, and the delay of a yes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) reason: &'static str,
    pub(crate) delay: Option<(Source, u64)>,
    pub(crate) counts: bool,
    pub(crate) class: Class,
    pub(crate) evidence: Evidence,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Source {
    Backoff,
    ServerHint,
}

/// Section 1: every rule in the order of asking, and whether it objects.
pub(crate) fn objections(policy: &Policy, f: &Facts<'_>) -> [(&'static str, bool); 14] {
    let Idempotency { declared, key_registered, key_sent } = f.idempotency;
    let evidence = evidence(policy, f);
    let maybe_processed = matches!(evidence, Evidence::MaybeProcessed | Evidence::Processed);
    let safely_idempotent = declared || (key_registered && key_sent);
    let (h, b) = (hint_ms(f), backoff_ms(f));
    [
        ("ATTEMPTS_EXHAUSTED", f.attempts_made >= f.rules.attempts_max),
        ("BUDGET_EXHAUSTED", matches!(f.budget, Coverage::Exhausted(_))),
        ("BODY_NOT_REPLAYABLE", !f.body_replayable),
        ("FIRST_BYTE_DELIVERED", f.first_byte_delivered),
        ("RUNTIME_DRAINING", f.runtime_draining),
        ("DEADLINE_TOO_NEAR", f.remaining_ms.is_some_and(|ms| ms <= f.rules.min_attempt_budget_ms)),
        ("PERMANENT_FAILURE", is_permanent(f.failure.failure())),
        ("IDEMPOTENCY_KEY_NOT_SENT", maybe_processed && !declared && key_registered && !key_sent),
        ("MAYBE_PROCESSED", maybe_processed && !safely_idempotent),
        ("SERVER_FORBIDS", f.hint.wait == Wait::Forbidden),
        ("NOT_RETRYABLE", !is_retryable(policy, f)),
        ("HINT_TOO_LONG", h > u128::from(f.rules.hint_ms_max)),
        ("HINT_BEYOND_DEADLINE", h > b && !fits(f, h)),
        ("BACKOFF_BEYOND_DEADLINE", !fits(f, b)),
    ]
}

/// The first objection in order.
pub(crate) fn answer(policy: &Policy, f: &Facts<'_>) -> Answer {
    let objections = objections(policy, f);
    let first = objections.iter().find(|(_, objects)| *objects);
    let [.., (_, permanent), _, _, (_, forbids), (_, not_retryable), _, _, _] = objections;
    Answer {
        reason: first.map_or("RETRYABLE", |(rule, _)| rule),
        delay: first.is_none().then(|| delay(f)),
        counts: forbids || (!permanent && !not_retryable),
        class: class(f.failure.failure()),
        evidence: evidence(policy, f),
    }
}

/// Section 6: the backoff, or a longer hint with the backoff on top, as far as it fits.
fn delay(f: &Facts<'_>) -> (Source, u64) {
    let (h, b) = (hint_ms(f), backoff_ms(f));
    let longest = match f.remaining_ms {
        None => u128::from(u64::MAX),
        Some(ms) => u128::from(ms) - u128::from(f.rules.min_attempt_budget_ms) - 1,
    };
    let (source, delay_ms) = match f.rules.backoff.jitter {
        _ if h <= b => (Source::Backoff, b),
        Jitter::None => (Source::ServerHint, h),
        Jitter::Full | Jitter::Equal => (Source::ServerHint, longest.min(h + b)),
    };
    (source, u64::try_from(delay_ms).unwrap())
}

/// Section 6, in integers too wide to overflow.
pub(crate) fn backoff_ms(f: &Facts<'_>) -> u128 {
    let Backoff { base_ms, max_ms, multiplier_thousandths, jitter } = f.rules.backoff;
    let (max, r) = (u128::from(max_ms), u128::from(f.draw));
    let mut d = max.min(base_ms.into());
    for _ in 1..f.attempts_made {
        let next = max.min((d * u128::from(multiplier_thousandths)).div_ceil(1_000));
        if next == d {
            break;
        }
        d = next;
    }
    let h = d.div_ceil(2);
    let drawn = match jitter {
        Jitter::None => d,
        Jitter::Full => 1 + ((r * d) >> 32),
        Jitter::Equal => h + ((r * (d - h + 1)) >> 32),
    };
    drawn.max(1).min(max)
}

fn hint_ms(f: &Facts<'_>) -> u128 {
    match f.hint.wait {
        Wait::AtLeast(hint_ms) => hint_ms.into(),
        Wait::Unsaid | Wait::Forbidden => 0,
    }
}

/// `delay + min_attempt_budget < remaining_deadline`; without a deadline everything fits.
pub(crate) fn fits(f: &Facts<'_>, delay_ms: u128) -> bool {
    f.remaining_ms
        .is_none_or(|ms| delay_ms + u128::from(f.rules.min_attempt_budget_ms) < u128::from(ms))
}

/// Section 4.2 with its one exception (section 1): RESOURCE_EXHAUSTED wants a hint.
fn is_retryable(policy: &Policy, f: &Facts<'_>) -> bool {
    match f.failure.failure() {
        Failure::Http(status) => policy.retry_http.contains(&status.get()),
        Failure::Grpc(GrpcCode::ResourceExhausted) => {
            policy.retry_grpc.contains(&GrpcCode::ResourceExhausted)
                && matches!(f.hint.wait, Wait::AtLeast(_))
        }
        Failure::Grpc(code) => policy.retry_grpc.contains(&code),
        Failure::Category(category) => policy.retry_categories.contains(&category),
    }
}

/// Section 4.1.
pub(crate) fn is_permanent(failure: Failure) -> bool {
    const HTTP: [u16; 23] = [
        400, 401, 403, 405, 406, 410, 411, 413, 414, 415, 416, 417, 422, 426, 428, 431, 451, 501,
        505, 506, 508, 510, 511,
    ];
    const GRPC: [GrpcCode; 9] = [
        GrpcCode::InvalidArgument,
        GrpcCode::AlreadyExists,
        GrpcCode::PermissionDenied,
        GrpcCode::FailedPrecondition,
        GrpcCode::OutOfRange,
        GrpcCode::Unimplemented,
        GrpcCode::DataLoss,
        GrpcCode::Unauthenticated,
        GrpcCode::Cancelled,
    ];
    match failure {
        Failure::Http(status) => status.get() < 400 || HTTP.contains(&status.get()),
        Failure::Grpc(code) => GRPC.contains(&code),
        Failure::Category(category) => 20 <= category as u8,
    }
}

/// Section 3, unless the caller gives the evidence.
fn evidence(policy: &Policy, f: &Facts<'_>) -> Evidence {
    const NOT_SENT: [Category; 4] = [
        Category::NameResolution,
        Category::Connect,
        Category::TlsHandshake,
        Category::PoolExhausted,
    ];
    let derived = match f.failure.failure() {
        Failure::Category(category) if NOT_SENT.contains(&category) => Evidence::NotSent,
        Failure::Category(Category::StreamRefused) => Evidence::Refused,
        Failure::Http(s) if policy.refusal_http.contains(&s.get()) => Evidence::Refused,
        Failure::Grpc(code) if policy.refusal_grpc.contains(&code) => Evidence::Refused,
        _ => Evidence::MaybeProcessed,
    };
    f.evidence.unwrap_or(derived)
}

/// Section 7, `token_bucket`.
fn class(failure: Failure) -> Class {
    match failure {
        Failure::Http(status) if status.get() == 429 => Class::Throttling,
        Failure::Grpc(GrpcCode::ResourceExhausted) => Class::Throttling,
        Failure::Grpc(GrpcCode::DeadlineExceeded) => Class::Timeout,
        Failure::Category(Category::AttemptTimeout) => Class::Timeout,
        _ => Class::Transient,
    }
}

/// The lists of a policy as the file has them, and the rules made of them.
#[derive(Clone, Copy)]
pub(crate) struct Policy {
    pub(crate) retry_http: &'static [u16],
    pub(crate) retry_grpc: &'static [GrpcCode],
    pub(crate) retry_categories: &'static [Category],
    pub(crate) refusal_http: &'static [u16],
    pub(crate) refusal_grpc: &'static [GrpcCode],
    pub(crate) rules: Rules,
}

impl Policy {
    /// Sections 3 and 4.2, and the table of section 8.
    pub(crate) fn default() -> Policy {
        Policy {
            retry_http: &[408, 421, 425, 429, 500, 502, 503, 504],
            retry_grpc: &[GrpcCode::Unavailable, GrpcCode::ResourceExhausted],
            retry_categories: &[
                Category::NameResolution,
                Category::Connect,
                Category::TlsHandshake,
                Category::StreamRefused,
                Category::ConnectionReset,
                Category::AttemptTimeout,
            ],
            refusal_http: &[421, 425, 429],
            refusal_grpc: &[GrpcCode::ResourceExhausted],
            rules: Rules {
                attempts_max: 3,
                min_attempt_budget_ms: 50,
                backoff: Backoff {
                    base_ms: 100,
                    max_ms: 5_000,
                    multiplier_thousandths: 2_000,
                    jitter: Jitter::Full,
                },
                hint_ms_max: 300_000,
                retry_on: RetryOn {
                    statuses: Statuses {
                        http: HttpStatuses::default(),
                        grpc: GrpcCodes::default(),
                    },
                    categories: Categories::default(),
                },
                refusal_statuses: Statuses {
                    http: HttpStatuses::default(),
                    grpc: GrpcCodes::default(),
                },
            },
        }
        .listed()
    }

    /// Fills the rules' sets from the lists.
    pub(crate) fn listed(mut self) -> Policy {
        self.rules.retry_on = RetryOn {
            statuses: Statuses {
                http: HttpStatuses::of(self.retry_http),
                grpc: GrpcCodes::of(self.retry_grpc),
            },
            categories: Categories::of(self.retry_categories),
        };
        self.rules.refusal_statuses = Statuses {
            http: HttpStatuses::of(self.refusal_http),
            grpc: GrpcCodes::of(self.refusal_grpc),
        };
        self
    }
}
