//! The rules of one policy: plain data, made once when a policy loads.
use super::failure::{Category, GrpcCode, HttpStatus};

/// The rules of one policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Attempts for one call, the first included. 1 to 1000 in a policy file.
    pub attempts_max: u32,
    /// What must be left of the deadline when the next attempt starts, and at least 1 ms more. 0 to
    /// 1 h in a policy file.
    pub min_attempt_budget_ms: u64,
    /// How waits grow.
    pub backoff: Backoff,
    /// The longest hint that is honoured. 0 to 24 h in a policy file.
    pub hint_ms_max: u64,
    /// Failures that may be repeated.
    pub retry_on: RetryOn,
    /// Statuses that prove that the server did no work. 421 (RFC 9110 §15.5.20) and 425 (RFC 8470
    /// §5.2) say so; that 429 does is a convention.
    pub refusal_statuses: Statuses,
}

impl Default for Rules {
    /// The defaults of the policy file.
    fn default() -> Rules {
        Rules {
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
                    http: HttpStatuses::of(&[408, 421, 425, 429, 500, 502, 503, 504]),
                    grpc: GrpcCodes::of(&[GrpcCode::Unavailable, GrpcCode::ResourceExhausted]),
                },
                categories: Categories::of(&[
                    Category::NameResolution,
                    Category::Connect,
                    Category::TlsHandshake,
                    Category::StreamRefused,
                    Category::ConnectionReset,
                    Category::AttemptTimeout,
                ]),
            },
            refusal_statuses: Statuses {
                http: HttpStatuses::of(&[421, 425, 429]),
                grpc: GrpcCodes::of(&[GrpcCode::ResourceExhausted]),
            },
        }
    }
}

/// Exponential backoff, in whole milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The wait after the first attempt, before jitter. 0 to 1 h in a policy file.
    pub base_ms: u64,
    /// The longest wait. At least 1 ms, and in a policy file `base_ms` to 24 h.
    pub max_ms: u64,
    /// Growth from one wait to the next, in thousandths. 1000 to 100 000 in a policy file.
    pub multiplier_thousandths: u32,
    /// How the wait is spread.
    pub jitter: Jitter,
}

/// How a wait is spread, so that callers who failed together do not come back together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jitter {
    /// The wait itself.
    None,
    /// Anything from 1 ms to the wait.
    Full,
    /// The upper half of the wait.
    Equal,
}

/// Failures that may be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryOn {
    /// By status.
    pub statuses: Statuses,
    /// By category.
    pub categories: Categories,
}

/// Two sets of statuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statuses {
    /// HTTP statuses.
    pub http: HttpStatuses,
    /// gRPC status codes.
    pub grpc: GrpcCodes,
}

/// A set of HTTP statuses: one bit for each of 100 to 599.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HttpStatuses([u64; 8]);

impl HttpStatuses {
    /// The set of the statuses that stand in `codes`. Numbers that are no status are left out.
    pub const fn of(codes: &[u16]) -> HttpStatuses {
        let mut set = HttpStatuses([0; 8]);
        let mut rest = codes;
        while let [code, tail @ ..] = rest {
            if let Some(status) = HttpStatus::new(*code) {
                set = set.with(status);
            }
            rest = tail;
        }
        set
    }

    /// This set and `status`.
    #[must_use]
    #[expect(clippy::indexing_slicing, reason = "a status is 100 to 599, so the word is 0 to 7")]
    pub const fn with(mut self, status: HttpStatus) -> HttpStatuses {
        let (word, bit) = HttpStatuses::place(status);
        self.0[word] |= bit;
        self
    }

    /// Whether `status` is in the set.
    #[expect(clippy::indexing_slicing, reason = "a status is 100 to 599, so the word is 0 to 7")]
    pub const fn contains(&self, status: HttpStatus) -> bool {
        let (word, bit) = HttpStatuses::place(status);
        self.0[word] & bit != 0
    }

    const fn place(status: HttpStatus) -> (usize, u64) {
        let offset = status.get() - HttpStatus::MIN;
        ((offset / 64) as usize, 1 << (offset % 64))
    }
}

/// A set of gRPC status codes: one bit for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GrpcCodes(u32);

impl GrpcCodes {
    /// The set of `codes`.
    pub const fn of(codes: &[GrpcCode]) -> GrpcCodes {
        let mut set = GrpcCodes(0);
        let mut rest = codes;
        while let [code, tail @ ..] = rest {
            set = set.with(*code);
            rest = tail;
        }
        set
    }

    /// This set and `code`.
    #[must_use]
    pub const fn with(self, code: GrpcCode) -> GrpcCodes {
        GrpcCodes(self.0 | 1 << code as u32)
    }

    /// Whether `code` is in the set.
    pub const fn contains(self, code: GrpcCode) -> bool {
        self.0 & (1 << code as u32) != 0
    }
}

/// A set of failure categories: one bit for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Categories(u32);

impl Categories {
    /// The set of `categories`.
    pub const fn of(categories: &[Category]) -> Categories {
        let mut set = Categories(0);
        let mut rest = categories;
        while let [category, tail @ ..] = rest {
            set = set.with(*category);
            rest = tail;
        }
        set
    }

    /// This set and `category`.
    #[must_use]
    pub const fn with(self, category: Category) -> Categories {
        Categories(self.0 | 1 << category as u32)
    }

    /// Whether `category` is in the set.
    pub const fn contains(self, category: Category) -> bool {
        self.0 & (1 << category as u32) != 0
    }
}
