//! The files: what they hold, checked.
use std::{collections::BTreeSet, fs, path::Path, time::Duration};

use retryd::clock::{Clock, Now};
use serde::Deserialize;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::message::{self, Names};

pub(crate) type Object = Map<String, Value>;

/// One file: a policy, and the cases that are decided by it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Vectors {
    #[serde(skip)]
    pub(crate) name: String,
    about: String,
    policy: Policy,
    #[serde(default)]
    pub(crate) base: Object,
    cases: Vec<Case>,
}

/// The lines of a policy file.
#[derive(Clone, Deserialize)]
pub(crate) struct Policy(Vec<String>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    pub(crate) name: String,
    #[serde(default, rename = "source")]
    _source: Option<String>,
    #[serde(default)]
    needs: BTreeSet<Need>,
    /// Over a connection the case has a server of its own.
    #[serde(default)]
    pub(crate) alone: bool,
    clock: Option<String>,
    pub(crate) draw: Option<u32>,
    operation: Option<String>,
    #[serde(default)]
    steps: Vec<Step>,
    #[serde(default)]
    before: Vec<Step>,
    context: Option<Object>,
    #[serde(default)]
    contexts: Vec<Object>,
    expect: Option<Object>,
    error: Option<Error>,
}

/// What only a run in process can do.
#[derive(Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "lowercase")]
enum Need {
    Clock,
    Draw,
    Reload,
}

/// One call, or something else that happens.
#[derive(Clone, Deserialize)]
#[serde(try_from = "Object")]
pub(crate) struct Step {
    pub(crate) action: Action,
    pub(crate) terms: Terms,
}

/// What happens. Of several calls each is held against the same terms.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Action {
    Ask(Calls),
    Report(Calls),
    Reports(Calls),
    Acquire(Calls),
    Release(Calls),
    Budget(Calls),
    List(Calls),
    Advance(String),
    Reload(Policy),
}

#[derive(Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum Calls {
    One(Object),
    Several(Vec<Object>),
}

/// How often, and what must come of it.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Terms {
    pub(crate) repeat: Option<u32>,
    pub(crate) granted: Option<u32>,
    #[serde(rename = "as")]
    pub(crate) label: Option<String>,
    pub(crate) expect: Option<Object>,
    pub(crate) error: Option<Error>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Error {
    pub(crate) code: String,
    pub(crate) reason: String,
    pub(crate) violations: Vec<String>,
}

/// One play of a case: all of its steps, the question at the end too.
pub(crate) struct Run<'a> {
    pub(crate) case: &'a Case,
    pub(crate) names: Names,
    pub(crate) steps: Vec<Step>,
}

/// Every file, checked.
pub(crate) fn load_all() -> Vec<Vectors> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no vector files");
    files.iter().map(|path| load(path)).collect()
}

fn load(path: &Path) -> Vectors {
    let shown = path.display();
    let mut vectors: Vectors = serde_json::from_str(&fs::read_to_string(path).unwrap())
        .unwrap_or_else(|error| panic!("{shown}: {error}"));
    vectors.name = path.file_stem().unwrap().to_string_lossy().into_owned();
    assert!(!vectors.about.is_empty(), "{shown}: `about` is empty");
    assert!(!vectors.cases.is_empty(), "{shown}: no cases");
    let mut names = BTreeSet::new();
    for case in &vectors.cases {
        assert!(names.insert(&case.name), "{shown}: two cases named `{}`", case.name);
        assert!(case.is_well_formed(), "{shown}: `{}` is malformed", case.name);
    }
    vectors
}

impl Vectors {
    /// Every play of every case.
    pub(crate) fn runs(&self) -> impl Iterator<Item = Run<'_>> {
        self.cases.iter().enumerate().flat_map(move |(place, case)| {
            case.plays().into_iter().enumerate().map(move |(turn, steps)| {
                let tenant = format!("{}-{place}-{turn}", self.name);
                let operation = case.operation.clone().unwrap_or_else(|| "op".into());
                Run { case, names: Names { tenant, operation }, steps }
            })
        })
    }

    /// The policy file that the service starts with.
    pub(crate) fn policy(&self) -> &Policy {
        &self.policy
    }
}

impl Policy {
    /// The policy file as it is written to disk.
    pub(crate) fn text(&self) -> String {
        self.0.join("\n") + "\n"
    }

    /// What every decision tells as `policy_revision`.
    pub(crate) fn revision(&self) -> String {
        let digest = Sha256::digest(self.text().as_bytes());
        digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect()
    }
}

impl Case {
    pub(crate) fn is_portable(&self) -> bool {
        self.needs.is_empty()
    }

    /// The steps as they are; or the history and one of the contexts, for each of them.
    fn plays(&self) -> Vec<Vec<Step>> {
        if !self.steps.is_empty() {
            return vec![self.steps.clone()];
        }
        let contexts = self.context.iter().chain(&self.contexts);
        let question = |context: &Object| Step {
            action: Action::Ask(Calls::One(context.clone())),
            terms: Terms {
                expect: self.expect.clone(),
                error: self.error.clone(),
                ..Terms::default()
            },
        };
        contexts.map(|context| [&self.before[..], &[question(context)]].concat()).collect()
    }

    fn is_well_formed(&self) -> bool {
        let questions = [self.context.is_some(), !self.contexts.is_empty()];
        let ends = [self.expect.is_some(), self.error.is_some()];
        let count = |flags: [bool; 2]| flags.into_iter().filter(|flag| *flag).count();
        let is_sequence = !self.steps.is_empty();
        let steps = || self.steps.iter().chain(&self.before);
        let advances = steps().any(|step| matches!(step.action, Action::Advance(_)));
        let reloads = steps().any(|step| matches!(step.action, Action::Reload(_)));
        let needs = |need: Need| self.needs.contains(&need);
        let asked = usize::from(!is_sequence);
        count(questions) == asked
            && count(ends) == asked
            && (!is_sequence || self.before.is_empty())
            && needs(Need::Clock) == self.clock.is_some()
            && needs(Need::Draw) == self.draw.is_some()
            && needs(Need::Reload) == reloads
            && (!advances || self.clock.is_some())
            && steps().all(Step::is_well_formed)
    }

    /// The clock of the case. It starts where a slot of every ratio starts.
    pub(crate) fn clock(&self) -> Clock {
        let Some(text) = &self.clock else { return Clock::system() };
        let stamp: pbjson_types::Timestamp =
            serde_json::from_value(text.as_str().into()).expect("`clock` is RFC 3339");
        let unix_ms = u64::try_from(stamp.seconds * 1000 + i64::from(stamp.nanos / 1_000_000));
        Clock::standing_at(Now { monotonic_ms: 36_000_000, unix_ms: unix_ms.unwrap() })
    }
}

impl Step {
    fn is_well_formed(&self) -> bool {
        let Terms { repeat: _, granted, label, expect, error } = &self.terms;
        let is_ask = matches!(self.action, Action::Ask(_));
        let has_name = matches!(self.action, Action::Acquire(_) | Action::List(_));
        let is_call = !matches!(self.action, Action::Advance(_) | Action::Reload(_));
        (granted.is_none() || is_ask)
            && (label.is_none() || has_name)
            && (is_call || (expect.is_none() && error.is_none()))
            && !(expect.is_some() && error.is_some())
    }
}

impl TryFrom<Object> for Step {
    type Error = serde_json::Error;

    fn try_from(mut json: Object) -> Result<Step, serde_json::Error> {
        let terms = ["repeat", "granted", "as", "expect", "error"];
        let terms = terms.into_iter().filter_map(|key| json.remove_entry(key)).collect();
        let terms = serde_json::from_value(Value::Object(terms))?;
        Ok(Step { action: serde_json::from_value(Value::Object(json))?, terms })
    }
}

impl Calls {
    pub(crate) fn each(&self) -> &[Object] {
        match self {
            Calls::One(call) => std::slice::from_ref(call),
            Calls::Several(calls) => calls,
        }
    }
}

/// How far an `advance` goes.
pub(crate) fn span(text: &str) -> Duration {
    message::duration(text.into()).try_into().expect("`advance` goes forward")
}
