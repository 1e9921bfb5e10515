//! What a client is told when it is made.
use std::{collections::HashMap, fmt, sync::Arc, time::Duration};

use http::{HeaderName, Uri};

use crate::pb::{Decision, RetryContext};

pub(crate) const TENANT_BYTES_MAX: usize = 128;
pub(crate) const OPERATION_BYTES_MAX: usize = 256;

/// Your own rules, for the decisions of a shadow policy: from what was asked about the failed
/// attempt and the answer to the wait before it is repeated, or `None`.
pub type OwnRules = Arc<dyn Fn(&RetryContext, &Decision) -> Option<Duration> + Send + Sync>;

/// Settings of a [`Client`](crate::Client).
#[derive(Clone)]
pub struct Settings {
    /// Address of retryd, such as `dns:///retryd:50051` or `http://10.0.0.7:50051`.
    pub target: String,
    /// Whose budget pays, unless a [`Call`](crate::Call) says otherwise: 1 to 128 bytes.
    pub tenant: String,
    /// How long to wait for a decision: 1 ms to 10 s, 20 ms by default. Never more than a tenth of
    /// what is left of the call's deadline.
    pub ask_timeout: Duration,
    /// The longest time for one attempt, at least 1 ms. The call's deadline still holds.
    pub attempt_timeout: Option<Duration>,
    /// Repeat a call once that surely did no harm when retryd does not answer. On by default.
    pub fallback: bool,
    /// How often usage is reported that no question took along: 100 ms to 10 s, 5 s by default.
    pub report_every: Duration,
    /// What is known about single operations, by name.
    pub operations: HashMap<String, Operation>,
    /// For the decisions of a shadow policy. Without them, such a call is not repeated.
    pub own_rules: Option<OwnRules>,
}

/// What you declare about an operation.
#[derive(Clone, Debug, Default)]
pub struct Operation {
    /// It may be repeated by its contract.
    pub declared: bool,
    /// The header that carries its idempotency key, if it honours one.
    pub key_header: Option<String>,
    /// Retries to take ahead, at most 1000. 0, the default, takes none.
    pub lease: u32,
}

impl Settings {
    /// The defaults.
    pub fn new(target: impl Into<String>, tenant: impl Into<String>) -> Settings {
        Settings {
            target: target.into(),
            tenant: tenant.into(),
            ask_timeout: Duration::from_millis(20),
            attempt_timeout: None,
            fallback: true,
            report_every: Duration::from_secs(5),
            operations: HashMap::new(),
            own_rules: None,
        }
    }

    /// Where retryd is, if every setting is right.
    pub(crate) fn check(&self) -> Result<Uri, SettingsError> {
        let mut wrong = Vec::new();
        let mut check = |is_right: bool, text: &str| {
            if !is_right {
                wrong.push(text.to_owned());
            }
        };
        let millis = Duration::from_millis;
        let uri = address(&self.target);
        check(!self.target.is_empty(), "`target` is missing");
        check(self.target.is_empty() || uri.is_some(), "`target` is no address");
        check(!self.tenant.is_empty(), "`tenant` is missing");
        check(
            is_name(&self.tenant, TENANT_BYTES_MAX),
            "`tenant` has more than 128 bytes or a control character",
        );
        check(
            (millis(1)..=millis(10_000)).contains(&self.ask_timeout),
            "`ask_timeout` is not 1 ms to 10 s",
        );
        check(
            self.attempt_timeout.is_none_or(|limit| millis(1) <= limit),
            "`attempt_timeout` is less than 1 ms",
        );
        check(
            (millis(100)..=millis(10_000)).contains(&self.report_every),
            "`report_every` is not 100 ms to 10 s",
        );
        for (name, operation) in &self.operations {
            let is_right = !name.is_empty() && is_name(name, OPERATION_BYTES_MAX);
            check(is_right, &format!("operation {name:?} is not 1 to 256 bytes of text"));
            let key = operation.key_header.as_deref();
            check(
                key.is_none_or(|key| key.parse::<HeaderName>().is_ok()),
                &format!("`key_header` of {name:?} is no name of a header"),
            );
            check(operation.lease <= 1000, &format!("`lease` of {name:?} is more than 1000"));
        }
        wrong.sort();
        match uri {
            Some(uri) if wrong.is_empty() => Ok(uri),
            _ => Err(SettingsError { wrong }),
        }
    }
}

impl Operation {
    /// An operation that may be repeated by its contract.
    pub fn declared() -> Operation {
        Operation { declared: true, ..Operation::default() }
    }

    /// An operation that honours the idempotency key in this header.
    pub fn keyed(header: impl Into<String>) -> Operation {
        Operation { key_header: Some(header.into()), ..Operation::default() }
    }
}

/// `dns:///host:port`, `host:port` and `http://host:port` are the same.
fn address(target: &str) -> Option<Uri> {
    let rest = target.strip_prefix("dns:///").unwrap_or(target);
    let rest = if rest.contains("://") { rest.to_owned() } else { format!("http://{rest}") };
    rest.parse().ok().filter(|uri: &Uri| uri.host().is_some_and(|host| !host.is_empty()))
}

/// Nothing that retryd would refuse in a name.
pub(crate) fn is_name(text: &str, bytes_max: usize) -> bool {
    text.len() <= bytes_max && !text.contains(char::is_control)
}

/// Everything that is wrong with the settings.
#[derive(Debug)]
pub struct SettingsError {
    wrong: Vec<String>,
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "retryd-client: {}", self.wrong.join("; "))
    }
}

impl std::error::Error for SettingsError {}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("target", &self.target)
            .field("tenant", &self.tenant)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_right() {
        for target in ["dns:///retryd:50051", "retryd:50051", "http://127.0.0.1:50051", "[::1]:1"] {
            assert!(Settings::new(target, "checkout").check().is_ok(), "{target}");
        }
    }

    #[test]
    fn everything_wrong_is_told_at_once() {
        let settings = Settings {
            ask_timeout: Duration::from_secs(11),
            attempt_timeout: Some(Duration::ZERO),
            report_every: Duration::from_millis(10_001),
            operations: HashMap::from([(
                "op".into(),
                Operation { key_header: Some("no header".into()), lease: 1001, declared: true },
            )]),
            ..Settings::new("", "")
        };
        let told = settings.check().unwrap_err().to_string();
        for name in [
            "`target` is missing",
            "`tenant` is missing",
            "`ask_timeout`",
            "`attempt_timeout`",
            "`report_every`",
            "`key_header` of \"op\"",
            "`lease` of \"op\"",
        ] {
            assert!(told.contains(name), "{name} in {told}");
        }
    }

    #[test]
    fn the_limits_are_right_themselves() {
        let limits = [(1, 100), (10_000, 10_000)];
        for (ask_ms, report_ms) in limits {
            let settings = Settings {
                ask_timeout: Duration::from_millis(ask_ms),
                report_every: Duration::from_millis(report_ms),
                ..Settings::new("retryd:50051", "t".repeat(128))
            };
            assert!(settings.check().is_ok());
        }
        assert!(Settings::new("retryd:50051", "t".repeat(129)).check().is_err());
        assert!(Settings::new("http://", "t").check().is_err());
    }
}
