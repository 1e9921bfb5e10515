//! Checks cases, and keeps every problem that it meets.
use std::{collections::BTreeSet, ops::RangeInclusive};

use serde_saphyr::Spanned;

use super::expect::Expected;
use super::file;
use super::load::{Case, Doing, Step};
use super::message::{Fields, problem};
use super::words::{self, DRAW, UNIX_MS};
use crate::cli::node::{Node, Value};
use crate::clock::Now;
use crate::policy::{Place, Problem, quoted, yaml};
use crate::wire::refusal::Refusal;
use crate::wire::{budget, context, pb};

/// Often enough to drain any budget, and over in seconds.
const REPEAT_MAX: u32 = 1_000_000;

/// What holds for every case of a file that does not say otherwise.
pub(super) struct Defaults<'a> {
    base: Fields<'a>,
    now: Now,
    draw: u32,
}

impl<'a> Defaults<'a> {
    pub(super) fn new(
        checker: &mut Checker,
        base: Option<&'a Node>,
        clock: Option<&Node>,
        draw: Option<&Node>,
    ) -> Defaults<'a> {
        Defaults {
            base: checker.fields(base),
            now: checker.clock(clock, words::standing_at(UNIX_MS)),
            draw: checker.draw(draw, DRAW),
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Checker {
    pub(super) problems: Vec<Problem>,
    names: BTreeSet<String>,
}

impl Checker {
    /// What is wrong with the base of a file is told once.
    pub(super) fn note(&mut self, problem: Problem) {
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    /// The case, or at least one problem noted.
    pub(super) fn case(
        &mut self,
        defaults: &Defaults<'_>,
        case: Spanned<file::Case>,
    ) -> Option<Case> {
        let place = yaml::place(&case);
        let case = case.value;
        let name = self.name(&case.name);
        let now = self.clock(case.clock.as_ref(), defaults.now);
        let draw = self.draw(case.draw.as_ref(), defaults.draw);
        let fields = self.fields(case.context.as_ref()).over(&defaults.base);
        let context = self.context(&fields, place, now);
        let ask = Asked { base: &defaults.base, names: fields.names(), now };
        let before: Vec<Option<Step>> =
            case.before.into_iter().map(|step| self.step(&ask, step)).collect();
        let expect_place = case.expect.place;
        let expect = self.kept(Expected::read::<pb::Decision>(case.expect))?;
        if expect.is_empty() {
            self.note(problem(expect_place, "`expect` names nothing".to_owned()));
        }
        let before = before.into_iter().collect::<Option<_>>()?;
        Some(Case { name: name?, line: place.line, now, draw, before, context: context?, expect })
    }

    fn step(&mut self, asked: &Asked<'_>, step: Spanned<file::Step>) -> Option<Step> {
        let place = yaml::place(&step);
        let file::Step { ask, report, advance, repeat, granted, expect } = step.value;
        let repeat = self.whole("repeat", repeat.as_ref(), 1..=REPEAT_MAX).unwrap_or(1);
        let granted_place = granted.as_ref().map(|granted| granted.place);
        let granted = self.whole("granted", granted.as_ref(), 0..=repeat);
        let mut refuse = |what: &str, place| self.note(problem(place, what.to_owned()));
        if let (None, Some(place)) = (&ask, granted_place) {
            refuse("only an `ask` is granted", place);
        }
        if let (Some(_), Some(expect)) = (&advance, &expect) {
            refuse("an `advance` has no answer", expect.place);
        }
        let expect = expect.map(|expect| match &report {
            Some(_) => Expected::read::<pb::UsageResult>(expect),
            None => Expected::read::<pb::Decision>(expect),
        });
        let expect = expect.map(|expect| self.kept(expect));
        let doing = match (&ask, &report, &advance) {
            (Some(ask), None, None) => {
                let fields = self.fields(Some(ask)).over(&asked.names.over(asked.base));
                Doing::Ask(Box::new(self.context(&fields, ask.place, asked.now)?))
            }
            (None, Some(report), None) => {
                let fields = self.fields(Some(report)).over(&asked.names);
                Doing::Report(self.report(&fields, report.place)?)
            }
            (None, None, Some(advance)) => {
                let span = Checker::text(advance).and_then(|text| {
                    words::span(text).map_err(|message| problem(advance.place, message))
                });
                Doing::Advance(self.kept(span)?)
            }
            _ => {
                let message = "a step is one of `ask`, `report` and `advance`";
                self.note(problem(place, message.to_owned()));
                return None;
            }
        };
        let expect = match expect {
            Some(expect) => Some(expect?),
            None => None,
        };
        Some(Step { line: place.line, doing, repeat, granted, expect })
    }

    fn context(&mut self, fields: &Fields<'_>, place: Place, now: Now) -> Option<pb::RetryContext> {
        let message: pb::RetryContext = self.kept(fields.read(place))?;
        let parsed = context::parse(&message, now.unix_ms, &mut context::Oddities::default());
        let refused = parsed.err();
        self.accepted(fields, place, refused).then_some(message)
    }

    fn report(&mut self, fields: &Fields<'_>, place: Place) -> Option<pb::TenantUsage> {
        let message: pb::TenantUsage = self.kept(fields.read(place))?;
        let refused = budget::entry(&message).err();
        self.accepted(fields, place, refused).then_some(message)
    }

    /// Whether retryd would take the message.
    fn accepted(&mut self, fields: &Fields<'_>, place: Place, refused: Option<Refusal>) -> bool {
        let Some(refusal) = refused else { return true };
        let Refusal::ContextInvalid(violations) = &refusal else {
            self.note(problem(place, format!("refused: {}", refusal.reason().name())));
            return false;
        };
        for violation in violations.iter() {
            let place = fields.place(violation.field).unwrap_or(place);
            self.note(problem(place, format!("`{}` {}", violation.field, violation.description)));
        }
        false
    }

    fn name(&mut self, name: &Spanned<String>) -> Option<String> {
        let text = &name.value;
        let message = if text.trim().is_empty() {
            "a case has a name".to_owned()
        } else if text.chars().any(char::is_control) {
            "a name is one line, without control characters".to_owned()
        } else if !self.names.insert(text.clone()) {
            format!("there is another case named {}", quoted(text))
        } else {
            return Some(text.clone());
        };
        self.note(problem(yaml::place(name), message));
        None
    }

    fn fields<'a>(&mut self, node: Option<&'a Node>) -> Fields<'a> {
        node.and_then(|node| self.kept(Fields::of(node))).unwrap_or_default()
    }

    fn clock(&mut self, node: Option<&Node>, absent: Now) -> Now {
        let clock = node.map(|node| {
            let text = Checker::text(node)?;
            words::clock(text).map_err(|message| problem(node.place, message))
        });
        clock.and_then(|clock| self.kept(clock)).unwrap_or(absent)
    }

    fn draw(&mut self, node: Option<&Node>, absent: u32) -> u32 {
        let Some(node) = node else { return absent };
        let draw = match &node.value {
            Value::Unsigned(draw) => u32::try_from(*draw).ok(),
            Value::Text(text) => words::draw(text),
            _ => None,
        };
        draw.unwrap_or_else(|| {
            let message = "`draw` must be from 0 to 4294967295, or from 0% to 100%";
            self.note(problem(node.place, message.to_owned()));
            absent
        })
    }

    fn whole(&mut self, key: &str, node: Option<&Node>, range: RangeInclusive<u32>) -> Option<u32> {
        let node = node?;
        let number = match node.value {
            Value::Unsigned(number) => u32::try_from(number).ok(),
            _ => None,
        };
        let number = number.filter(|number| range.contains(number));
        if number.is_none() {
            let (min, max) = range.into_inner();
            let message = format!("`{key}` must be a whole number from {min} to {max}");
            self.note(problem(node.place, message));
        }
        number
    }

    fn text(node: &Node) -> Result<&str, Problem> {
        match &node.value {
            Value::Text(text) => Ok(text),
            _ => Err(problem(node.place, "wrong type: text is expected here".to_owned())),
        }
    }

    fn kept<T>(&mut self, checked: Result<T, Problem>) -> Option<T> {
        checked.map_err(|problem| self.note(problem)).ok()
    }
}

/// What the asks and reports of one case have in common.
struct Asked<'a> {
    base: &'a Fields<'a>,
    names: Fields<'a>,
    now: Now,
}
