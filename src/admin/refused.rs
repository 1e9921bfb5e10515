//! Why requests are refused.

/// Why a request was refused: the reason in its ErrorInfo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// A field breaks the contract.
    ContextInvalid,
    /// The caller may not ask for this tenant.
    TenantForeign,
    /// The bytes are no message of the contract.
    NotProtobuf,
    /// The message is larger than its limit.
    MessageTooLarge,
    /// retryd has too much to do.
    Overloaded,
    /// retryd is about to end.
    Stopping,
}

impl Refused {
    /// Every reason.
    pub const ALL: [Refused; 6] = [
        Refused::ContextInvalid,
        Refused::TenantForeign,
        Refused::NotProtobuf,
        Refused::MessageTooLarge,
        Refused::Overloaded,
        Refused::Stopping,
    ];

    /// The reason's name in the contract.
    pub const fn name(self) -> &'static str {
        match self {
            Refused::ContextInvalid => "CONTEXT_INVALID",
            Refused::TenantForeign => "TENANT_FOREIGN",
            Refused::NotProtobuf => "NOT_PROTOBUF",
            Refused::MessageTooLarge => "MESSAGE_TOO_LARGE",
            Refused::Overloaded => "OVERLOADED",
            Refused::Stopping => "STOPPING",
        }
    }
}
