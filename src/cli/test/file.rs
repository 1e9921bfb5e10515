//! The shape of a test file: which keys stand where.
use serde::Deserialize;
use serde_saphyr::Spanned;

use crate::cli::node::Node;
use crate::policy::yaml::given;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    /// A path from the folder of the file.
    #[serde(default, deserialize_with = "given")]
    pub(super) policy: Option<Spanned<String>>,
    /// What every context of the file has unless it says otherwise.
    #[serde(default, deserialize_with = "given")]
    pub(super) base: Option<Node>,
    #[serde(default, deserialize_with = "given")]
    pub(super) clock: Option<Node>,
    #[serde(default, deserialize_with = "given")]
    pub(super) draw: Option<Node>,
    pub(super) cases: Spanned<Vec<Spanned<Case>>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Case {
    pub(super) name: Spanned<String>,
    #[serde(default, deserialize_with = "given")]
    pub(super) clock: Option<Node>,
    #[serde(default, deserialize_with = "given")]
    pub(super) draw: Option<Node>,
    #[serde(default)]
    pub(super) before: Vec<Spanned<Step>>,
    #[serde(default, deserialize_with = "given")]
    pub(super) context: Option<Node>,
    pub(super) expect: Node,
}

/// One of `ask`, `report` and `advance`, and how often.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Step {
    #[serde(default, deserialize_with = "given")]
    pub(super) ask: Option<Node>,
    #[serde(default, deserialize_with = "given")]
    pub(super) report: Option<Node>,
    #[serde(default, deserialize_with = "given")]
    pub(super) advance: Option<Node>,
    #[serde(default, deserialize_with = "given")]
    pub(super) repeat: Option<Node>,
    #[serde(default, deserialize_with = "given")]
    pub(super) granted: Option<Node>,
    #[serde(default, deserialize_with = "given")]
    pub(super) expect: Option<Node>,
}
