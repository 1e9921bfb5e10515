//! How an attempt can fail: a status, or a category of its own.

/// What is judged: a status, or the category alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// An HTTP status.
    Http(HttpStatus),
    /// A gRPC status code.
    Grpc(GrpcCode),
    /// A failure that no status describes, or describes more weakly.
    Category(Category),
}

/// An HTTP status, 100 to 599.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HttpStatus(u16);

impl HttpStatus {
    /// The lowest status.
    pub const MIN: u16 = 100;
    /// The highest status.
    pub const MAX: u16 = 599;

    /// The status with this number, if it is 100 to 599.
    pub const fn new(number: u16) -> Option<HttpStatus> {
        match number {
            HttpStatus::MIN..=HttpStatus::MAX => Some(HttpStatus(number)),
            _ => None,
        }
    }

    /// The number.
    pub const fn get(self) -> u16 {
        self.0
    }
}

/// A gRPC status code other than OK.
/// Source: <https://github.com/grpc/grpc/blob/master/doc/statuscodes.md>.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[expect(missing_docs, reason = "the names are gRPC's own")]
pub enum GrpcCode {
    Cancelled = 1,
    Unknown = 2,
    InvalidArgument = 3,
    DeadlineExceeded = 4,
    NotFound = 5,
    AlreadyExists = 6,
    PermissionDenied = 7,
    ResourceExhausted = 8,
    FailedPrecondition = 9,
    Aborted = 10,
    OutOfRange = 11,
    Unimplemented = 12,
    Internal = 13,
    Unavailable = 14,
    DataLoss = 15,
    Unauthenticated = 16,
}

impl GrpcCode {
    /// Every code, in the order of the numbers.
    pub const ALL: [GrpcCode; 16] = [
        GrpcCode::Cancelled,
        GrpcCode::Unknown,
        GrpcCode::InvalidArgument,
        GrpcCode::DeadlineExceeded,
        GrpcCode::NotFound,
        GrpcCode::AlreadyExists,
        GrpcCode::PermissionDenied,
        GrpcCode::ResourceExhausted,
        GrpcCode::FailedPrecondition,
        GrpcCode::Aborted,
        GrpcCode::OutOfRange,
        GrpcCode::Unimplemented,
        GrpcCode::Internal,
        GrpcCode::Unavailable,
        GrpcCode::DataLoss,
        GrpcCode::Unauthenticated,
    ];

    /// The code's name in documents and policy files, such as `UNAVAILABLE`.
    pub const fn name(self) -> &'static str {
        match self {
            GrpcCode::Cancelled => "CANCELLED",
            GrpcCode::Unknown => "UNKNOWN",
            GrpcCode::InvalidArgument => "INVALID_ARGUMENT",
            GrpcCode::DeadlineExceeded => "DEADLINE_EXCEEDED",
            GrpcCode::NotFound => "NOT_FOUND",
            GrpcCode::AlreadyExists => "ALREADY_EXISTS",
            GrpcCode::PermissionDenied => "PERMISSION_DENIED",
            GrpcCode::ResourceExhausted => "RESOURCE_EXHAUSTED",
            GrpcCode::FailedPrecondition => "FAILED_PRECONDITION",
            GrpcCode::Aborted => "ABORTED",
            GrpcCode::OutOfRange => "OUT_OF_RANGE",
            GrpcCode::Unimplemented => "UNIMPLEMENTED",
            GrpcCode::Internal => "INTERNAL",
            GrpcCode::Unavailable => "UNAVAILABLE",
            GrpcCode::DataLoss => "DATA_LOSS",
            GrpcCode::Unauthenticated => "UNAUTHENTICATED",
        }
    }
}

/// A failure that is judged by itself, whatever status stands beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Category {
    /// The name of the server could not be resolved.
    NameResolution = 2,
    /// Connection refused, timed out or unroutable.
    Connect = 3,
    /// The TLS handshake failed.
    TlsHandshake = 4,
    /// No connection or stream became free on the caller's side.
    PoolExhausted = 5,
    /// The server refused the stream before any work (RFC 9113 §8.7, §6.8; RFC 9114 §4.1.1).
    StreamRefused = 6,
    /// The connection broke.
    ConnectionReset = 7,
    /// A timeout of this attempt, not of the whole call.
    AttemptTimeout = 8,
    /// The server's certificate was not accepted.
    CertificateRejected = 20,
    /// A peer broke the protocol.
    ProtocolViolation = 21,
    /// The request was refused before it was sent.
    RequestRejected = 22,
    /// The message is over a size limit.
    MessageTooLarge = 23,
    /// The response could not be read.
    ResponseUnreadable = 24,
    /// The caller may not do this.
    Unauthorized = 25,
    /// The caller gave the call up.
    Cancelled = 26,
    /// Dropped on purpose by a load balancer or by local load shedding.
    Dropped = 27,
    /// A category of a later version of the contract, in the range kept for permanent ones.
    UnknownPermanent = 31,
}

impl Category {
    /// Every category that has a name in the contract.
    pub const ALL: [Category; 15] = [
        Category::NameResolution,
        Category::Connect,
        Category::TlsHandshake,
        Category::PoolExhausted,
        Category::StreamRefused,
        Category::ConnectionReset,
        Category::AttemptTimeout,
        Category::CertificateRejected,
        Category::ProtocolViolation,
        Category::RequestRejected,
        Category::MessageTooLarge,
        Category::ResponseUnreadable,
        Category::Unauthorized,
        Category::Cancelled,
        Category::Dropped,
    ];

    /// The category's name in the contract, without its prefix, such as `CONNECTION_RESET`.
    pub const fn name(self) -> &'static str {
        match self {
            Category::NameResolution => "NAME_RESOLUTION",
            Category::Connect => "CONNECT",
            Category::TlsHandshake => "TLS_HANDSHAKE",
            Category::PoolExhausted => "POOL_EXHAUSTED",
            Category::StreamRefused => "STREAM_REFUSED",
            Category::ConnectionReset => "CONNECTION_RESET",
            Category::AttemptTimeout => "ATTEMPT_TIMEOUT",
            Category::CertificateRejected => "CERTIFICATE_REJECTED",
            Category::ProtocolViolation => "PROTOCOL_VIOLATION",
            Category::RequestRejected => "REQUEST_REJECTED",
            Category::MessageTooLarge => "MESSAGE_TOO_LARGE",
            Category::ResponseUnreadable => "RESPONSE_UNREADABLE",
            Category::Unauthorized => "UNAUTHORIZED",
            Category::Cancelled => "CANCELLED",
            Category::Dropped => "DROPPED",
            Category::UnknownPermanent => "a permanent category that retryd does not know",
        }
    }
}
