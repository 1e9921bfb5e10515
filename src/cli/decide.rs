//! `retryd decide`: contexts in proto-JSON in, decisions out, without a server.
use std::{
    fs,
    io::{self, IsTerminal, Read as _, Write},
    path::PathBuf,
};

use anyhow::Context as _;
use clap::{Args, ValueEnum};

use super::{BAD, FINE, NO, offline::offline};
use crate::clock::{Clock, Dice};
use crate::wire::pb;
use crate::wire::refusal::Refusal;

#[derive(Debug, Args)]
pub(super) struct Decide {
    /// A file of RetryContexts in proto-JSON, one after the other or in one array; `-` reads from
    /// the standard input
    file: PathBuf,
    /// The policy file; absent: the embedded policy
    #[arg(long, env = "RETRYD_POLICY", value_name = "FILE")]
    policy: Option<PathBuf>,
    /// Say what every rule looked at
    #[arg(long)]
    explain: bool,
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// A table in a terminal, JSON otherwise
    #[default]
    Auto,
    /// A table
    Table,
    /// JSON, one object a line
    Json,
}

impl Format {
    pub(super) fn is_table(self, out: &impl IsTerminal) -> bool {
        match self {
            Format::Auto => out.is_terminal(),
            Format::Table => true,
            Format::Json => false,
        }
    }
}

impl Decide {
    pub(super) fn run(self) -> anyhow::Result<u8> {
        let policies = super::policies(self.policy.as_deref())?;
        let contexts = self.contexts()?;
        // One store for all: the contexts are a history, and budgets drain along it.
        let retryd = offline(policies, Clock::system(), Dice::fair());

        let mut out = io::stdout().lock();
        let table = self.format.is_table(&out);
        let mut code = FINE;
        for (place, mut context) in contexts.into_iter().enumerate() {
            context.explain |= self.explain;
            let outcome = retryd.decide(&context);
            code = code.max(exit_code(&outcome));
            let written = if table {
                write_row(&mut out, place, &outcome)
            } else {
                write_json(&mut out, outcome)
            };
            match written {
                // Whoever reads has seen enough.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => break,
                written => written?,
            }
        }
        Ok(code)
    }

    fn contexts(&self) -> anyhow::Result<Vec<pb::RetryContext>> {
        let name = self.file.display();
        let mut text = String::new();
        let read = match self.file.to_str() {
            Some("-") => io::stdin().read_to_string(&mut text).map(|_| ()),
            _ => fs::read_to_string(&self.file).map(|read| text = read),
        };
        read.with_context(|| format!("cannot read `{name}`"))?;
        let contexts: Result<Vec<_>, _> = if text.trim_start().starts_with('[') {
            serde_json::from_str(&text)
        } else {
            serde_json::Deserializer::from_str(&text).into_iter().collect()
        };
        let contexts =
            contexts.with_context(|| format!("`{name}` is no proto-JSON RetryContext"))?;
        anyhow::ensure!(!contexts.is_empty(), "`{name}` holds no RetryContext");
        Ok(contexts)
    }
}

fn exit_code(outcome: &Result<pb::Decision, Refusal>) -> u8 {
    match outcome {
        Ok(decision) if decision.verdict() == pb::Verdict::Retry => FINE,
        Ok(_) => NO,
        Err(_) => BAD,
    }
}

fn write_json(out: &mut impl Write, outcome: Result<pb::Decision, Refusal>) -> io::Result<()> {
    use pb::streamed_decision::Outcome;
    // As a stream would answer: a decision, or why there is none.
    let line = match outcome {
        Ok(decision) => serde_json::to_string(&decision)?,
        Err(refusal) => {
            let outcome = Some(Outcome::Refusal(refusal.into()));
            serde_json::to_string(&pb::StreamedDecision { outcome })?
        }
    };
    writeln!(out, "{line}")
}

fn write_row(
    out: &mut impl Write,
    place: usize,
    outcome: &Result<pb::Decision, Refusal>,
) -> io::Result<()> {
    if place == 0 {
        writeln!(out, "{:>4}  {:<12}  {:<24}  {:>10}  POLICY", "#", "VERDICT", "REASON", "DELAY")?;
    }
    let place = place + 1;
    match outcome {
        Ok(decision) => write_decision(out, place, decision),
        Err(Refusal::ContextInvalid(violations)) => {
            writeln!(out, "{place:>4}  the context is invalid")?;
            for violation in violations.iter() {
                writeln!(out, "      {}: {}", violation.field, violation.description)?;
            }
            Ok(())
        }
        Err(refusal) => writeln!(out, "{place:>4}  {}", refusal.reason().name()),
    }
}

fn write_decision(out: &mut impl Write, place: usize, decision: &pb::Decision) -> io::Result<()> {
    let verdict = decision.verdict().as_str_name().trim_start_matches("VERDICT_");
    let reason = decision.reason().as_str_name().trim_start_matches("REASON_");
    let delay = match &decision.delay {
        Some(delay) => format!("{} ms", delay.seconds * 1_000 + i64::from(delay.nanos) / 1_000_000),
        None => "-".to_owned(),
    };
    let policy = &decision.policy;
    writeln!(out, "{place:>4}  {verdict:<12}  {reason:<24}  {delay:>10}  {policy}")?;
    for step in &decision.steps {
        let rule = step.rule().as_str_name().trim_start_matches("REASON_");
        let mark = if step.objected { "no" } else { "ok" };
        writeln!(out, "      {mark}  {rule:<24}  {}", step.saw)?;
    }
    Ok(())
}
