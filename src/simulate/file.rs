//! The shape of a scenario file: which keys stand where. Each may be absent.
use serde::Deserialize;

use crate::policy::yaml::{Scalar, given};

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct File {
    #[serde(deserialize_with = "given")]
    pub(super) duration: Option<Scalar>,
    pub(super) clients: Clients,
    pub(super) service: Service,
    pub(super) outage: Outage,
    pub(super) recovered: Recovered,
    pub(super) retryd: Retryd,
    pub(super) grid: Grid,
}

/// A section of the file: every key may be absent.
macro_rules! section {
    ($name:ident { $($key:ident),+ $(,)? }) => {
        #[derive(Debug, Default, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub(super) struct $name {
            $(#[serde(deserialize_with = "given")]
            pub(super) $key: Option<Scalar>,)+
        }
    };
}

section!(Clients {
    count,
    calls_per_second,
    spread,
    attempt_timeout,
    deadline,
    without_key_percent,
});
section!(Service { workers, work, spread, queue, failing_percent, given_up_work_percent });
section!(Outage { from, length, work_percent, failing_percent });
section!(Retryd { question, replicas, store_lost_from, store_lost, policy });

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Recovered {
    #[serde(deserialize_with = "given")]
    pub(super) success_percent: Option<Scalar>,
    #[serde(rename = "for", deserialize_with = "given")]
    pub(super) long: Option<Scalar>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Grid {
    #[serde(deserialize_with = "given")]
    pub(super) work_percent: Option<Vec<Scalar>>,
    #[serde(deserialize_with = "given")]
    pub(super) outage: Option<Vec<Scalar>>,
    #[serde(deserialize_with = "given")]
    pub(super) calls_per_second: Option<Vec<Scalar>>,
    #[serde(deserialize_with = "given")]
    pub(super) clients: Option<Vec<Scalar>>,
    #[serde(deserialize_with = "given")]
    pub(super) without_key_percent: Option<Vec<Scalar>>,
}
