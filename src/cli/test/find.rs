//! Which files are tests.
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use walkdir::{DirEntry, WalkDir};

/// How the names of test files end.
const ENDINGS: [&str; 2] = [".test.yaml", ".test.yml"];

/// The test files in these folders and below, in the order of their paths, and the files named
/// themselves.
pub(super) fn test_files(paths: &[PathBuf]) -> anyhow::Result<BTreeSet<PathBuf>> {
    let mut all = BTreeSet::new();
    for path in paths {
        let found = below(path)?;
        anyhow::ensure!(
            !found.is_empty(),
            "no tests found: `{}` holds no file `*.test.yaml`",
            path.display()
        );
        all.extend(found);
    }
    Ok(all)
}

fn below(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    // A mounted folder of Kubernetes is made of links to a hidden one.
    for entry in WalkDir::new(path).follow_links(true).into_iter().filter_entry(is_wanted) {
        let entry = entry.with_context(|| format!("cannot read `{}`", path.display()))?;
        // Whoever opens a pipe may wait for ever.
        if entry.file_type().is_file() && (entry.depth() == 0 || is_test(&entry)) {
            found.push(entry.into_path());
        }
    }
    Ok(found)
}

fn is_wanted(entry: &DirEntry) -> bool {
    entry.depth() == 0 || !entry.file_name().as_encoded_bytes().starts_with(b".")
}

fn is_test(entry: &DirEntry) -> bool {
    let name = entry.file_name().as_encoded_bytes();
    ENDINGS.iter().any(|ending| name.ends_with(ending.as_bytes()))
}
