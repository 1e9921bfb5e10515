//! The engine's guarantees are compile errors. Each forgery below edits a copy of the engine and
//! must be refused by rustc, in the file and with the code that is given, and for no other reason.
//! The unedited copy must be accepted, alone, as a `no_std` crate without dependencies: no clock,
//! no randomness, no IO, no allocation, no wire types.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
use std::{
    collections::BTreeSet,
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Around the copy: the crate's root, which also holds `decide` to a plain function of the facts.
const ROOT: &str = "
    #![no_std]
    #![forbid(unsafe_code)]
    pub mod engine;
    pub const DECIDE: for<'a> fn(
        &'a engine::Facts<'a>,
    ) -> Result<engine::Retry<'a>, engine::Denied<'a>> = engine::decide;
";

/// One edit of a copy: in this file, this text, which stands there once, becomes that.
type Edit<'a> = (&'a str, &'a str, &'a str);

#[test]
fn the_engine_stands_alone_without_std() {
    accepted("alone", &[]);
}

#[test]
fn proofs_are_two_words_or_three() {
    let sizes = "use super::blockers::Unblocked;
        const _: () = assert!(size_of::<Unblocked<'_>>() == size_of::<usize>());
        const _: () = assert!(size_of::<super::permanent::Transient<'_>>() <= 16);
        const _: () = assert!(size_of::<Repeatable<'_>>() <= 16);
        const _: () = assert!(size_of::<Retry<'_>>() <= 24);
        use super::rule::{self,";
    accepted("sizes", &[("specific.rs", "use super::rule::{self,", sizes)]);
}

#[test]
fn a_stage_cannot_be_skipped() {
    let without = |stage| ("mod.rs", stage, "");
    refused("skip-2", "mod.rs E0631", without("        .and_then(permanent::clear)\n"));
    refused("skip-3", "mod.rs E0631", without("        .and_then(evidence::clear)\n"));
    refused("skip-4", "mod.rs E0308", without("\n        .and_then(specific::plan)"));
    let skip = "permanent::clear(facts)";
    let from = "blockers::clear(facts)\n        .and_then(permanent::clear)";
    refused("skip-1", "mod.rs E0308", ("mod.rs", from, skip));
}

#[test]
fn stages_cannot_be_swapped() {
    let first = "blockers::clear(facts)\n        .and_then(permanent::clear)";
    let swapped = "permanent::clear(facts)\n        .and_then(blockers::clear)";
    refused("swap-1-2", "mod.rs E0308 E0631", ("mod.rs", first, swapped));
    let middle = ".and_then(permanent::clear)\n        .and_then(evidence::clear)";
    let swapped = ".and_then(evidence::clear)\n        .and_then(permanent::clear)";
    refused("swap-2-3", "mod.rs E0631", ("mod.rs", middle, swapped));
    let last = ".and_then(evidence::clear)\n        .and_then(specific::plan)";
    let swapped = ".and_then(specific::plan)\n        .and_then(evidence::clear)";
    refused("swap-3-4", "mod.rs E0308 E0631", ("mod.rs", last, swapped));
}

#[test]
fn a_stage_cannot_be_repeated() {
    for stage in ["permanent::clear", "evidence::clear", "specific::plan"] {
        let once = format!(".and_then({stage})");
        let twice = format!(".and_then({stage}).and_then({stage})");
        refused(&format!("repeat-{}", &stage[..4]), "mod.rs E0631", ("mod.rs", &once, &twice));
    }
}

#[test]
fn a_proof_cannot_be_forged() {
    let first = "blockers::clear(facts)";
    let forged = "Ok(blockers::Unblocked(facts))";
    refused("forge-1", "mod.rs E0603", ("mod.rs", first, forged));
    let second = ".and_then(permanent::clear)";
    let forged = ".map(|unblocked| permanent::Transient {
        facts: unblocked.facts(), failure: permanent::TransientFailure::Unknown
    })";
    refused("forge-2", "mod.rs E0451", ("mod.rs", second, forged));
    let third = ".and_then(evidence::clear)";
    let forged = ".map(|transient| {
        let (facts, failure) = transient.into_parts();
        evidence::Repeatable { facts, failure }
    })";
    refused("forge-3", "mod.rs E0451", ("mod.rs", third, forged));
}

#[test]
fn a_proof_cannot_be_used_twice() {
    let parts = "let (facts, failure) = repeatable.into_parts();";
    let twice = format!("let _ = repeatable.into_parts(); {parts}");
    refused("twice", "specific.rs E0382", ("specific.rs", parts, &twice));
    let parts = "let (facts, failure) = transient.into_parts();";
    let copied = format!("let _ = transient.clone(); {parts}");
    refused("clone", "evidence.rs E0599", ("evidence.rs", parts, &copied));
}

#[test]
fn a_no_cannot_become_a_yes() {
    let plan = ".and_then(specific::plan)";
    let delay = "specific::Delay::Backoff { delay_ms: 1 }";
    let healed = format!("{plan}.or_else(|_| Ok(Retry {{ facts, delay: {delay} }}))");
    refused("heal", "mod.rs E0451", ("mod.rs", plan, &healed));
    let again = format!("{plan}.or_else(|denied| specific::plan(denied))");
    refused("plan-a-no", "mod.rs E0308", ("mod.rs", plan, &again));
    let quiet = "Some(rule) => Err(Denied::by(rule, facts))";
    let yes = format!("Some(_) => Ok(super::specific::Retry {{ facts, delay: super::{delay} }})");
    // The stage's own answer type refuses it, before anyone looks at the fields.
    refused("early-yes", "evidence.rs E0308", ("evidence.rs", quiet, &yes));
}

#[test]
fn a_yes_is_made_and_changed_by_the_last_stage_alone() {
    let plan = ".and_then(specific::plan)";
    let delay = "specific::Delay::Backoff { delay_ms: 1 }";
    let changed = format!("{plan}.map(|retry| Retry {{ delay: {delay}, ..retry }})");
    refused("change-yes", "mod.rs E0451", ("mod.rs", plan, &changed));
    let set = format!("{plan}.map(|mut retry| {{ retry.delay = {delay}; retry }})");
    refused("set-delay", "mod.rs E0616", ("mod.rs", plan, &set));
    let built = "pub fn yes<'a>(facts: &'a engine::Facts<'a>) -> engine::Retry<'a> {
            engine::Retry { facts, delay: engine::Delay::Backoff { delay_ms: 1 } }
        }";
    refused("build-yes", "lib.rs E0451", ("lib.rs", "pub mod engine;", &after_engine(built)));
}

#[test]
fn a_no_is_made_by_the_engine_alone() {
    let built = "pub fn no<'a>(facts: &'a engine::Facts<'a>) -> engine::Denied<'a> {
            engine::Denied::by(engine::Rule::Retryable, facts)
        }";
    refused("build-no", "lib.rs E0624", ("lib.rs", "pub mod engine;", &after_engine(built)));
}

#[test]
fn a_failure_is_judged_by_the_rules_alone() {
    let built = "pub fn heal(judged: engine::Judged) -> engine::Judged {
            engine::Judged { listed: true, ..judged }
        }";
    refused("judge", "lib.rs E0451", ("lib.rs", "pub mod engine;", &after_engine(built)));
    let parts = "let (facts, failure) = repeatable.into_parts();";
    let listed = format!("{parts} let mut judged = facts.failure; judged.listed = true;");
    refused("list", "specific.rs E0616", ("specific.rs", parts, &listed));
}

#[test]
fn a_blocker_cannot_say_retry() {
    let flag = "|f| Gauge::Flag(f.runtime_draining)";
    let delay = "super::specific::Delay::Backoff { delay_ms: 1 }";
    let yes = format!("|f| Ok(super::specific::Retry {{ facts: f, delay: {delay} }})");
    refused("blocker-yes", "blockers.rs E0308", ("blockers.rs", flag, &yes));
}

#[test]
fn a_blocker_cannot_be_left_out_moved_or_doubled() {
    let draining = "    Blocker(Rule::RuntimeDraining, |f| Gauge::Flag(f.runtime_draining)),\n";
    refused("five", "blockers.rs E0308", ("blockers.rs", draining, ""));
    let flag = "Blocker(Rule::BodyNotReplayable,";
    let moved = "Blocker(Rule::FirstByteDelivered,";
    refused("order", "blockers.rs E0080", ("blockers.rs", flag, moved));
    let listed =
        "    AttemptsExhausted,\n    /// A budget of the policy would not grant one more retry.
    BudgetExhausted,";
    let swapped = "    BudgetExhausted,\n    AttemptsExhausted,";
    refused("reorder", "blockers.rs E0080", ("rule.rs", listed, swapped));
}

#[test]
fn the_last_stage_cannot_name_a_permanent_failure() {
    let retryable = "if !failure.is_retryable(";
    for permanent in ["InvalidArgument", "Cancelled", "CertificateRejected"] {
        let named = format!(
            "if failure == super::permanent::TransientFailure::{permanent} {{}} {retryable}"
        );
        let name = format!("permanent-{permanent}");
        refused(&name, "specific.rs E0599", ("specific.rs", retryable, &named));
    }
}

/// Whatever is new stands undecided until a person says where it belongs.
#[test]
fn nothing_new_is_left_undecided() {
    let cases = [
        ("permanent.rs", "failure.rs", "    Unauthenticated = 16,\n", "    NewCode = 17,\n"),
        ("permanent.rs", "failure.rs", "    Dropped = 27,\n", "    NewCategory = 28,\n"),
        ("permanent.rs", "failure.rs", "    Category(Category),\n", "    NewKind,\n"),
        ("judged.rs", "failure.rs", "    Category(Category),\n", "    NewKind,\n"),
        ("permanent.rs", "permanent.rs", "    AttemptTimeout,\n}", ""),
        ("evidence.rs", "facts.rs", "    Processed,\n", "    NewGrade,\n"),
        ("specific.rs", "facts.rs", "    Forbidden,\n", "    NewWait,\n"),
        ("blockers.rs", "facts.rs", "    Exhausted(Purse<'a>),\n", "    NewCoverage,\n"),
        ("backoff.rs", "rules.rs", "    Equal,\n", "    NewJitter,\n"),
        ("look.rs", "rule.rs", "    Retryable,\n}", ""),
    ];
    for (undecided, file, last, new) in cases {
        let grown = match last.strip_suffix('}') {
            Some(last) => format!("{last}    New,\n}}"),
            None => format!("{last}{new}"),
        };
        refused(
            &format!("new-{undecided}-{new}"),
            &format!("{undecided} E0004"),
            (file, last, &grown),
        );
    }
}

#[test]
fn the_engine_is_pure() {
    let plan = "let (facts, failure) = repeatable.into_parts();";
    let cases = [
        ("clock", "E0433", "let _ = std::time::Instant::now();"),
        ("wall-clock", "E0433", "let _ = std::time::SystemTime::now();"),
        ("own-clock", "E0433", "let _ = crate::clock::Clock::system().now();"),
        ("randomness", "E0433", "let _ = fastrand::u32(..);"),
        ("random-state", "E0433", "let _ = std::hash::RandomState::new();"),
        ("environment", "E0433", "let _ = std::env::var(\"RETRYD\");"),
        ("file", "E0433", "let _ = std::fs::read(\"policy.yaml\");"),
        ("log", "E0433", "tracing::info!(\"deciding\");"),
        ("wire-type", "E0432", "use crate::wire::pb;"),
        ("vec", "E0433", "let _ = Vec::<u8>::new();"),
        ("boxed", "E0433", "let _ = Box::new(1);"),
        ("string", "E0433", "let _ = String::new();"),
        ("alloc", "E0433", "let _ = alloc::vec::Vec::<u8>::new();"),
        ("await", "E0728", "core::future::ready(()).await;"),
        ("unsafe", "unsafe_code", "unsafe { core::hint::unreachable_unchecked() };"),
    ];
    for (name, code, line) in cases {
        let edited = format!("{line} {plan}");
        refused(name, &format!("specific.rs {code}"), ("specific.rs", plan, &edited));
    }
}

#[test]
fn the_decision_is_a_plain_function_of_the_facts() {
    let decide = "pub fn decide<'a>(facts: &'a Facts<'a>)";
    let waiting = "pub async fn decide<'a>(facts: &'a Facts<'a>)";
    refused("async", "lib.rs E0308", ("mod.rs", decide, waiting));
    let timed = "pub fn decide<'a>(facts: &'a Facts<'a>, _now_ms: u64)";
    refused("timed", "lib.rs E0308", ("mod.rs", decide, timed));
    let stage = "pub(super) fn clear(transient:";
    let waiting = "pub(super) async fn clear(transient:";
    refused("async-stage", "mod.rs E0271", ("evidence.rs", stage, waiting));
}

/// What `no_std` would still allow: other crates by name, state between two decisions, floats.
#[test]
fn the_engine_names_no_crate_keeps_no_state_and_counts_in_integers() {
    let words = ["extern", "static", "Cell", "atomic", "thread_local", "f32", "f64", "unsafe"];
    let code = engine_code();
    for word in words {
        let found = code.match_indices(word).find(|(place, _)| {
            // `&'static str` keeps no state.
            is_whole(&code, *place, word) && !code[..*place].ends_with('\'')
        });
        assert!(found.is_none(), "`{word}` in src/engine");
    }
}

/// Every proof is made at one place. rustls calls such places the focus of manual review.
#[test]
fn each_proof_is_made_at_one_place() {
    let code = engine_code();
    for proof in ["Unblocked", "Transient", "Repeatable", "Retry", "Judged", "Denied"] {
        let made = code.match_indices(proof).filter(|(place, _)| {
            let (before, after) = (&code[..*place], &code[*place + proof.len()..]);
            is_whole(&code, *place, proof)
                && !["struct ", "impl ", "-> ", "for "].iter().any(|word| before.ends_with(word))
                && (after.starts_with(" {") || after.starts_with('('))
        });
        assert_eq!(made.count(), 1, "places that make `{proof}`");
    }
    // Nor are they made under another name. What `Self {` is left returns a `Gauge`.
    assert_eq!(code.matches("Self(").count(), 0);
    assert_eq!(code.matches("Self {").count(), code.matches("-> Self {").count());
    assert!(!code.contains("type "), "an alias may hide a proof");
}

/// Whether `word` at `place` is no part of a longer word.
fn is_whole(code: &str, place: usize, word: &str) -> bool {
    let in_word = |c: char| c.is_alphanumeric() || c == '_';
    !code[..place].ends_with(in_word) && !code[place + word.len()..].starts_with(in_word)
}

/// All of the engine without its comments.
fn engine_code() -> String {
    let text = engine_files().into_iter().map(|(_, text)| text).collect::<String>();
    text.lines().map(|line| format!("{}\n", line.split("//").next().unwrap())).collect()
}

fn engine_files() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/engine");
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths
        .map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, fs::read_to_string(&path).unwrap())
        })
        .collect()
}

fn after_engine(item: &str) -> String {
    format!("pub mod engine;\n{item}")
}

#[track_caller]
fn accepted(name: &str, edits: &[Edit<'_>]) {
    let stderr = compile(name, edits).err().unwrap_or_default();
    assert!(stderr.is_empty(), "{name}: rustc refused it:\n{stderr}");
}

/// `expected` is the file of an error and the codes. Other files may have errors of the same codes.
#[track_caller]
fn refused(name: &str, expected: &str, edit: Edit<'_>) {
    let Err(stderr) = compile(name, &[edit]) else {
        panic!("{name}: rustc accepted the forgery");
    };
    let (file, expected) = expected.split_once(' ').unwrap();
    let codes: BTreeSet<&str> = stderr.lines().filter_map(code_of).collect();
    assert_eq!(
        codes,
        expected.split(' ').collect(),
        "{name}: refused for another reason:\n{stderr}"
    );
    let in_file = |line: &str| Path::new(line.split(':').next().unwrap()).ends_with(file);
    assert!(
        stderr.lines().any(|line| code_of(line).is_some() && in_file(line)),
        "{name}: refused, but not in {file}:\n{stderr}"
    );
}

/// The code in one line of rustc's short format, or the lint that was broken.
fn code_of(line: &str) -> Option<&str> {
    let (_, error) = line.split_once(": error")?;
    match error.strip_prefix('[') {
        Some(code) => code.split(']').next(),
        None if error.contains("`unsafe` block") => Some("unsafe_code"),
        None => Some(error),
    }
}

fn compile(name: &str, edits: &[Edit<'_>]) -> Result<(), String> {
    let name: String = name.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("engine_shape").join(&name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(folder.join("engine")).unwrap();
    let files = engine_files().into_iter().map(|(file, text)| (format!("engine/{file}"), text));
    for (file, mut text) in files.chain([("lib.rs".to_owned(), ROOT.to_owned())]) {
        for (_, from, to) in edits.iter().filter(|(edited, ..)| Path::new(&file).ends_with(edited))
        {
            assert_eq!(text.matches(from).count(), 1, "{name}: the text to edit in {file}: {from}");
            text = text.replace(from, to);
        }
        fs::write(folder.join(file), text).unwrap();
    }
    let output = Command::new(env::var("RUSTC").unwrap_or("rustc".to_owned()))
        .args(["--edition=2024", "--crate-type=lib", "--emit=metadata", "--error-format=short"])
        .args(["--allow=warnings", "lib.rs"])
        .current_dir(&folder)
        .output()
        .unwrap();
    if output.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}
