//! The shape of a policy file: which keys stand where. What the values may be is checked later.
use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{self, MapAccess, Visitor, value::MapAccessDeserializer},
};
use serde_saphyr::Spanned;

use super::{
    rejected::Problem,
    yaml::{self, Scalar, given},
};

/// Reads the shape of `source`, up to the first error.
pub(super) fn parse(source: &str) -> Result<File, Problem> {
    yaml::read(source)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) version: Scalar,
    #[serde(default)]
    pub(super) budgets: Vec<Budget>,
    pub(super) policies: Spanned<Vec<Policy>>,
    #[serde(default, deserialize_with = "given")]
    pub(super) callers: Option<Vec<Caller>>,
    #[serde(default)]
    pub(super) operators: Vec<Scalar>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Budget {
    pub(super) name: Scalar,
    pub(super) scope: Scalar,
    #[serde(default, deserialize_with = "given")]
    pub(super) on_store_loss: Option<Scalar>,
    #[serde(default, deserialize_with = "given")]
    pub(super) ratio: Option<Spanned<Ratio>>,
    #[serde(default, deserialize_with = "given")]
    pub(super) throttle: Option<Spanned<Throttle>>,
    #[serde(default, deserialize_with = "given")]
    pub(super) token_bucket: Option<Spanned<TokenBucket>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ratio {
    #[serde(default, deserialize_with = "given")]
    pub(super) percent: Option<Scalar>,
    #[serde(default, deserialize_with = "given")]
    pub(super) interval: Option<Scalar>,
    #[serde(default)]
    pub(super) min_retry_rate: MinRetryRate,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MinRetryRate {
    #[serde(default, deserialize_with = "given")]
    pub(super) count: Option<Scalar>,
    #[serde(default, deserialize_with = "given")]
    pub(super) interval: Option<Scalar>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Throttle {
    pub(super) max_tokens: Scalar,
    pub(super) token_ratio: Scalar,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TokenBucket {
    #[serde(default, deserialize_with = "given")]
    pub(super) capacity: Option<Scalar>,
    #[serde(default, deserialize_with = "given")]
    pub(super) costs: Option<Spanned<Costs>>,
}

/// A set of costs by name, or all three.
#[derive(Debug)]
pub(super) enum Costs {
    Named(String),
    Each(Box<EachCost>),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EachCost {
    pub(super) transient: Scalar,
    pub(super) throttling: Scalar,
    pub(super) timeout: Scalar,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Policy {
    pub(super) name: Scalar,
    #[serde(default, rename = "match")]
    pub(super) matching: Match,
    #[serde(default, deserialize_with = "given")]
    pub(super) max_attempts: Option<Scalar>,
    #[serde(default, deserialize_with = "given")]
    pub(super) min_attempt_budget: Option<Scalar>,
    #[serde(default)]
    pub(super) backoff: Backoff,
    #[serde(default, deserialize_with = "given")]
    pub(super) max_hint: Option<Scalar>,
    #[serde(default)]
    pub(super) retry_on: RetryOn,
    #[serde(default)]
    pub(super) refusal_statuses: RefusalStatuses,
    #[serde(default)]
    pub(super) budgets: Vec<Scalar>,
    #[serde(default, deserialize_with = "given")]
    pub(super) mode: Option<Scalar>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Match {
    #[serde(default, deserialize_with = "given")]
    pub(super) tenant: Option<Scalar>,
    #[serde(default, deserialize_with = "given")]
    pub(super) operation: Option<Scalar>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Backoff {
    #[serde(default, deserialize_with = "given")]
    pub(super) base: Option<Scalar>,
    #[serde(default, deserialize_with = "given")]
    pub(super) max: Option<Scalar>,
    #[serde(default, deserialize_with = "given")]
    pub(super) multiplier: Option<Scalar>,
    #[serde(default, deserialize_with = "given")]
    pub(super) jitter: Option<Scalar>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RetryOn {
    #[serde(default, deserialize_with = "given")]
    pub(super) http: Option<Vec<Scalar>>,
    #[serde(default, deserialize_with = "given")]
    pub(super) grpc: Option<Vec<Scalar>>,
    #[serde(default, deserialize_with = "given")]
    pub(super) failures: Option<Vec<Scalar>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RefusalStatuses {
    #[serde(default, deserialize_with = "given")]
    pub(super) http: Option<Vec<Scalar>>,
    #[serde(default, deserialize_with = "given")]
    pub(super) grpc: Option<Vec<Scalar>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Caller {
    pub(super) identity: Scalar,
    pub(super) tenants: Vec<Scalar>,
}

impl<'de> Deserialize<'de> for Costs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Costs, D::Error> {
        deserializer.deserialize_any(CostsVisitor)
    }
}

struct CostsVisitor;

impl<'de> Visitor<'de> for CostsVisitor {
    type Value = Costs;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("aws-2026, aws-legacy or a mapping of all three costs")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<Costs, E> {
        Ok(Costs::Named(name.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, costs: A) -> Result<Costs, A::Error> {
        let each = EachCost::deserialize(MapAccessDeserializer::new(costs))?;
        Ok(Costs::Each(Box::new(each)))
    }
}
