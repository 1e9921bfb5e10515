//! What must stay true of the source as a whole, read off its text.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]
use std::{
    fs,
    path::{Path, PathBuf},
};

use retryd::engine::Rule;

/// What a module may import from this crate, besides itself. The longest row that fits a file
/// holds. A file's own unit tests are free.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("engine", &[]),
    ("clock", &[]),
    ("telemetry", &["clock"]),
    ("traces", &["admin::calls", "admin::spans", "clock", "telemetry::Seldom"]),
    ("budget", &["engine"]),
    (
        "budget::ratio",
        &[
            "engine",
            "budget::Usage",
            "budget::in_proportion",
            "budget::saturated",
            "budget::window",
        ],
    ),
    (
        "budget::throttle",
        &["engine", "budget::Usage", "budget::in_proportion", "budget::saturated"],
    ),
    ("budget::bucket", &["engine", "budget::Usage", "budget::in_proportion"]),
    ("budget::window", &["budget::saturated"]),
    ("budget::recent", &[]),
    ("budget::shared::ticker", &["budget::shared", "clock"]),
    ("budget::shared::rounds", &["budget", "clock"]),
    ("policy", &["engine", "budget"]),
    ("wire", &["engine", "budget", "decider", "admin::metrics::Refused"]),
    ("decider", &["engine", "budget", "policy", "clock", "admin::metrics"]),
    (
        "decision_log",
        &["engine", "budget", "clock", "decider", "policy", "wire", "admin::log_lines"],
    ),
    ("shadow", &["budget", "clock", "decider", "admin::shadowed"]),
    ("remote", &["budget::shared", "clock"]),
    ("reload", &["budget", "decider", "policy", "admin::metrics", "admin::reloads", "watched"]),
    ("watched", &[]),
    (
        "service",
        &[
            "budget",
            "clock",
            "decider",
            "decision_log",
            "shadow",
            "wire",
            "server",
            "admin::metrics",
            "traces::CallSpan",
        ],
    ),
    (
        "server",
        &[
            "admin::calls",
            "admin::lanes",
            "admin::metrics",
            "admin::ports",
            "admin::tls",
            "clock",
            "telemetry::Seldom",
            "traces",
            "watched",
            "wire::codec::PREFIX",
            "wire::refusal",
        ],
    ),
    ("admin", &["engine", "budget::Occupancy", "budget::Sharing", "budget::StoreState", "server"]),
    (
        "console",
        &[
            "admin::metrics",
            "budget",
            "clock",
            "decider",
            "engine",
            "policy",
            "service",
            "wire::pb",
            "wire::refusal",
        ],
    ),
    ("simulate", &["admin::metrics", "budget", "clock", "decider", "engine", "policy"]),
    ("cli", EVERYTHING),
];
const EVERYTHING: &[&str] = &[
    "admin",
    "budget",
    "clock",
    "console",
    "decider",
    "decision_log",
    "engine",
    "policy",
    "reload",
    "remote",
    "server",
    "service",
    "shadow",
    "simulate",
    "telemetry",
    "traces",
    "wire",
];

/// Words that may stand only in files with these beginnings.
const ONLY_IN: &[(&str, &[&str])] = &[
    // `grpc.health.v1` has a `pb` of its own.
    // `retryd decide`, the decision log and the console are borders too, with proto-JSON.
    (
        "pb::",
        &[
            "src/wire/",
            "src/service",
            "src/decision_log/",
            "src/server/health.rs",
            "src/cli/",
            "src/console/",
        ],
    ),
    // Timers of sockets run on tokio's clock; no decision does.
    ("Instant::now", &["src/clock.rs", "src/server/"]),
    ("SystemTime::now", &["src/clock.rs"]),
    // A simulation draws from its own seed.
    ("fastrand::", &["src/clock.rs", "src/simulate/chance.rs"]),
    ("redis::", &["src/remote/"]),
    ("opentelemetry::", &["src/traces/"]),
    ("opentelemetry_sdk::", &["src/traces/"]),
    ("opentelemetry_otlp::", &["src/traces/"]),
    ("rustls::", &["src/server/tls"]),
    ("x509_parser::", &["src/server/tls/"]),
];

/// Files that never wait: a balance is locked there, or nothing but numbers is at hand.
const NEVER_WAIT: &[&str] = &["src/engine/", "src/budget/"];

/// What stands there all the same and waits, holding no balance.
const MAY_WAIT: &[&str] = &["src/budget/shared/ticker.rs"];

/// Files of values and steps alone: no dependency is named there.
const PURE: &[&str] = &[
    "src/engine/",
    "src/budget/ratio.rs",
    "src/budget/throttle.rs",
    "src/budget/bucket.rs",
    "src/budget/window.rs",
    "src/budget/shared/demand.rs",
    "src/budget/shared/exchange.rs",
    "src/budget/shared/local.rs",
    "src/budget/shared/price.rs",
    "src/budget/shared/reach.rs",
    "src/budget/shared/share.rs",
    "src/budget/shared/trade.rs",
];

const LINES_MAX: usize = 250;

#[test]
fn modules_import_what_the_table_allows() {
    for source in sources() {
        let module = source.module.join("::");
        let rows = MAY_IMPORT.iter().filter(|(row, _)| is_within(&module, row));
        let Some((row, allowed)) = rows.max_by_key(|(row, _)| row.len()) else {
            // The roots, `lib.rs` and `main.rs`, stand above the table.
            assert!(source.module.is_empty(), "`{}` has no row in MAY_IMPORT", source.path);
            continue;
        };
        for import in imports(&source) {
            assert!(
                is_within(&import, row)
                    || allowed.iter().any(|allowed| is_within(&import, allowed)),
                "{} imports `{import}`: MAY_IMPORT allows `{row}` {allowed:?}",
                source.path
            );
        }
    }
}

#[test]
fn some_words_have_their_own_place() {
    for source in sources() {
        for (word, places) in ONLY_IN {
            let at_home = places.iter().any(|place| source.path.starts_with(place));
            assert!(at_home || !has_word(&source.code, word), "`{word}` in {}", source.path);
        }
    }
}

#[test]
fn what_holds_a_balance_never_waits() {
    let may_wait = |path: &str| MAY_WAIT.contains(&path);
    for source in under(NEVER_WAIT).into_iter().filter(|source| !may_wait(&source.path)) {
        for word in [".await", "async"] {
            assert!(!has_word(&source.code, word), "`{word}` in {}", source.path);
        }
    }
}

#[test]
fn pure_files_name_no_dependency() {
    let manifest = read("Cargo.toml");
    let (_, dependencies) = manifest.split_once("[dependencies]\n").unwrap();
    let (dependencies, _) = dependencies.split_once("\n\n").unwrap();
    let crates: Vec<String> = dependencies
        .lines()
        .map(|line| format!("{}::", line.split(" =").next().unwrap().replace('-', "_")))
        .collect();
    assert!(crates.contains(&"tonic_types::".to_owned()), "{crates:?}");
    for source in under(PURE) {
        for name in &crates {
            assert!(!has_word(&source.code, name), "`{name}` in {}", source.path);
        }
    }
}

#[test]
fn source_files_have_one_job() {
    for source in sources() {
        assert!(source.lines <= LINES_MAX, "{} has {} lines", source.path, source.lines);
    }
}

/// The table in the README: rows in the order of asking, each with a rule's name in backticks.
#[test]
fn the_readme_lists_the_rules_in_order() {
    let readme = read("README.md");
    let named = |row: &str| {
        let mut cells = row.split('|').map(|cell| cell.trim().trim_matches('`').to_owned());
        cells.find(|cell| Rule::ALL.iter().any(|rule| rule.name() == cell))
    };
    let rows: Vec<String> =
        readme.lines().filter(|line| line.starts_with('|')).filter_map(named).collect();
    assert_eq!(rows, Rule::ALL.map(Rule::name), "rules in the README's tables, in order");
}

#[test]
fn documents_name_files_that_exist() {
    for document in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"] {
        for name in file_names(&read(document)) {
            assert!(root().join(&name).exists(), "{document} names `{name}`, which is missing");
        }
    }
}

/// What stands in backticks or as a link's target and looks like a path in this repository.
fn file_names(document: &str) -> Vec<String> {
    const FOLDERS: [&str; 7] =
        ["src/", "tests/", "proto/", "deploy/", "benches/", "examples/", "clients/"];
    let is_path_char = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    document
        .split(['`', '(', ')'])
        .filter(|span| FOLDERS.iter().any(|folder| span.starts_with(folder)))
        .map(|span| span.split("::").next().unwrap().trim_end_matches('/').to_owned())
        .filter(|name| name.chars().all(is_path_char))
        .collect()
}

struct Source {
    /// From the root, such as `src/engine/rule.rs`.
    path: String,
    /// Such as `["engine", "rule"]`.
    module: Vec<String>,
    /// The text without comments and unit tests.
    code: String,
    lines: usize,
}

fn sources() -> Vec<Source> {
    let mut paths = Vec::new();
    walk(&root().join("src"), &mut paths);
    let sources: Vec<Source> = paths.iter().map(|path| source(path)).collect();
    assert!(sources.iter().any(|source| source.path == "src/engine/mod.rs"));
    sources
}

fn under(beginnings: &[&str]) -> Vec<Source> {
    let is_under = |path: &str| beginnings.iter().any(|beginning| path.starts_with(beginning));
    let sources: Vec<Source> =
        sources().into_iter().filter(|source| is_under(&source.path)).collect();
    for beginning in beginnings {
        assert!(
            sources.iter().any(|source| source.path.starts_with(beginning)),
            "no `{beginning}`"
        );
    }
    sources
}

fn walk(folder: &Path, paths: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            walk(&path, paths);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            paths.push(path);
        }
    }
}

fn source(path: &Path) -> Source {
    let text = fs::read_to_string(path).unwrap();
    let path = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
    let module = path.trim_start_matches("src/").trim_end_matches(".rs").split('/');
    let module =
        module.filter(|name| !["mod", "lib", "main"].contains(name)).map(str::to_owned).collect();
    let product = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let code =
        product.lines().map(|line| format!("{}\n", line.split("//").next().unwrap())).collect();
    Source { lines: text.lines().count(), path, module, code }
}

/// The paths into this crate that a file names, each from the crate's root.
fn imports(source: &Source) -> Vec<String> {
    let mut found = Vec::new();
    for (place, _) in source.code.match_indices("crate::") {
        spell(&mut &source.code[place + "crate::".len()..], String::new(), &mut found);
    }
    let mut rest = source.code.as_str();
    while let Some((_, after)) = rest.split_once("super::") {
        rest = after;
        let mut parents = source.module.len().saturating_sub(1);
        while let Some(further) = rest.strip_prefix("super::") {
            rest = further;
            parents = parents.saturating_sub(1);
        }
        let parent: String =
            source.module[..parents].iter().map(|name| format!("{name}::")).collect();
        spell(&mut { rest }, parent, &mut found);
    }
    found
}

/// Adds every path of the tree at the start of `rest`, such as `budget::{Limits, ratio}`.
fn spell(rest: &mut &str, prefix: String, found: &mut Vec<String>) {
    *rest = rest.trim_start();
    if let Some(list) = rest.strip_prefix('{') {
        *rest = list;
        while !rest.is_empty() && !rest.starts_with('}') {
            spell(rest, prefix.clone(), found);
            // Past an `as` and the comma.
            *rest = rest.trim_start_matches(|c: char| c != ',' && c != '}');
            *rest = rest.trim_start_matches(',').trim_start();
        }
        *rest = rest.strip_prefix('}').unwrap_or(rest);
        return;
    }
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    let (name, after) = rest.split_at(end);
    *rest = after;
    match after.strip_prefix("::") {
        Some(further) if !name.is_empty() => {
            *rest = further;
            spell(rest, format!("{prefix}{name}::"), found);
        }
        _ => found.push(format!("{prefix}{name}")),
    }
}

/// Whether `path` is `module` or something in it.
fn is_within(path: &str, module: &str) -> bool {
    path.strip_prefix(module).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// Whether `word` stands in `code`, and not as the end of a longer word.
fn has_word(code: &str, word: &str) -> bool {
    let in_word = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(word).any(|(place, _)| {
        let (before, after) = (&code[..place], &code[place + word.len()..]);
        let begins = !word.starts_with(in_word) || !before.ends_with(in_word);
        begins && (!word.ends_with(in_word) || !after.starts_with(in_word))
    })
}

#[test]
fn imports_are_read_as_rust_reads_them() {
    let code = "
        use crate::{budget::{self, Limits as L, ratio::Floor}, clock::Now};
        use super::{Scope, store::Store};
        use super::super::engine::Rule;
        fn f(x: crate::wire::pb::Decision) {}
    ";
    let module = ["budget", "memory"].map(str::to_owned).to_vec();
    let source = Source { path: String::new(), module, code: code.to_owned(), lines: 0 };
    let expected = [
        "budget::self",
        "budget::Limits",
        "budget::ratio::Floor",
        "clock::Now",
        "wire::pb::Decision",
        "budget::Scope",
        "budget::store::Store",
        "engine::Rule",
    ];
    assert_eq!(imports(&source), expected);
}

fn read(file: &str) -> String {
    fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("`{file}`: {error}"))
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
