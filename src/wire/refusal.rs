//! Why a question gets no answer: each error of the service, as a status and as an entry.
use tonic::{
    Code, Status,
    metadata::{MetadataMap, MetadataValue},
};
use tonic_types::{ErrorDetails, StatusExt as _};

use super::pb;
use crate::admin::metrics::Refused;

/// The domain of every `google.rpc.ErrorInfo`.
pub const DOMAIN: &str = "retryd";

/// Why a question gets no answer. Nothing was charged, counted or earned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The message has wrong fields: these.
    ContextInvalid(Violations),
    /// The caller has not proven a name that may ask for this tenant.
    TenantForeign,
    /// The bytes are no message of the contract.
    NotProtobuf,
    /// The message is over the size limit.
    MessageTooLarge,
    /// retryd has as much to do as it may have at once.
    Overloaded,
    /// retryd is stopping, or closes this connection.
    Stopping,
}

impl Refusal {
    /// The gRPC status code.
    pub fn code(&self) -> Code {
        match self {
            Refusal::ContextInvalid(_) | Refusal::NotProtobuf => Code::InvalidArgument,
            Refusal::TenantForeign => Code::PermissionDenied,
            Refusal::MessageTooLarge => Code::ResourceExhausted,
            Refusal::Overloaded | Refusal::Stopping => Code::Unavailable,
        }
    }

    /// The reason in `google.rpc.ErrorInfo`, and the label under which it is counted.
    pub fn reason(&self) -> Refused {
        match self {
            Refusal::ContextInvalid(_) => Refused::ContextInvalid,
            Refusal::TenantForeign => Refused::TenantForeign,
            Refusal::NotProtobuf => Refused::NotProtobuf,
            Refusal::MessageTooLarge => Refused::MessageTooLarge,
            Refusal::Overloaded => Refused::Overloaded,
            Refusal::Stopping => Refused::Stopping,
        }
    }

    /// The status, with a message of the caller's.
    pub(crate) fn saying(&self, message: impl Into<String>) -> Status {
        let mut details = ErrorDetails::with_error_info(self.reason().name(), DOMAIN, []);
        if let Refusal::ContextInvalid(Violations(violations)) = self {
            for Violation { field, description } in violations {
                details.add_bad_request_violation(*field, *description);
            }
        }
        let mut metadata = MetadataMap::new();
        if self.code() == Code::Unavailable {
            // So that no client's own retry policy repeats the question (gRFC A6).
            metadata.insert(PUSHBACK, MetadataValue::from_static("-1"));
        }
        Status::with_error_details_and_metadata(self.code(), message, details, metadata)
    }

    /// Every wrong field.
    pub fn violations(&self) -> impl Iterator<Item = &Violation> {
        let violations = match self {
            Refusal::ContextInvalid(violations) => Some(violations),
            Refusal::TenantForeign
            | Refusal::NotProtobuf
            | Refusal::MessageTooLarge
            | Refusal::Overloaded
            | Refusal::Stopping => None,
        };
        violations.into_iter().flat_map(Violations::iter)
    }

    fn message(&self) -> String {
        match self {
            // Field paths only: what the caller sent is not echoed.
            Refusal::ContextInvalid(violations) => {
                let fields: Vec<&str> = violations.0.iter().map(|v| v.field).collect();
                format!("wrong fields: {}", fields.join(", "))
            }
            Refusal::TenantForeign => {
                "the client certificate may not ask for this tenant".to_owned()
            }
            Refusal::NotProtobuf => "the bytes are no message of retryd.v1".to_owned(),
            Refusal::MessageTooLarge => "the message is over the size limit".to_owned(),
            Refusal::Overloaded => "retryd has too much to do".to_owned(),
            Refusal::Stopping => "retryd is stopping".to_owned(),
        }
    }
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Status {
        let message = refusal.message();
        refusal.saying(message)
    }
}

const PUSHBACK: &str = "grpc-retry-pushback-ms";

impl From<Refusal> for pb::Refusal {
    fn from(refusal: Refusal) -> pb::Refusal {
        let grpc_code = refusal.code() as i32;
        let violations = match refusal {
            Refusal::ContextInvalid(Violations(violations)) => violations,
            Refusal::TenantForeign
            | Refusal::NotProtobuf
            | Refusal::MessageTooLarge
            | Refusal::Overloaded
            | Refusal::Stopping => Vec::new(),
        };
        pb::Refusal {
            grpc_code: grpc_code.unsigned_abs(),
            violations: violations.into_iter().map(pb::FieldViolation::from).collect(),
        }
    }
}

/// Every wrong field of one message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Violations(Vec<Violation>);

/// One wrong field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The path of the field, such as `failure.http_status`.
    pub field: &'static str,
    /// What is wrong with it.
    pub description: &'static str,
}

impl Violations {
    /// The value, or its violation noted and `None`.
    pub(super) fn check<T>(
        &mut self,
        field: &'static str,
        parsed: Result<T, &'static str>,
    ) -> Option<T> {
        match parsed {
            Ok(value) => Some(value),
            Err(description) => {
                self.0.push(Violation { field, description });
                None
            }
        }
    }

    /// `value` if nothing was noted.
    pub(super) fn or<T>(self, value: Option<T>) -> Result<T, Refusal> {
        match value {
            Some(value) if self.0.is_empty() => Ok(value),
            _ => Err(Refusal::ContextInvalid(self)),
        }
    }

    /// What was noted.
    pub fn iter(&self) -> impl Iterator<Item = &Violation> {
        self.0.iter()
    }
}

impl From<Violation> for pb::FieldViolation {
    fn from(violation: Violation) -> pb::FieldViolation {
        pb::FieldViolation {
            field: violation.field.to_owned(),
            description: violation.description.to_owned(),
        }
    }
}
