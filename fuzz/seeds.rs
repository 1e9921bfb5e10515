//! Writes every context of the vectors into a folder, each as the bytes of its message.
//! CONTRIBUTING says how the seeds come from there.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "it stops at an error")]
use std::{env, fs, path::Path};

use prost::Message as _;

#[allow(dead_code, clippy::indexing_slicing, reason = "shared with the tests, which use all of it")]
#[path = "../tests/vectors/format.rs"]
mod format;

/// One context of one case, and the tenant that is its own.
struct Run<'a> {
    context: &'a format::Object,
    tenant: String,
}

fn main() {
    let target = env::args().nth(1).expect("usage: seeds FOLDER");
    fs::create_dir_all(&target).unwrap();
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/vectors");
    for file in fs::read_dir(vectors).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let mut vectors: format::Vectors = serde_json::from_str(&text).unwrap();
        vectors.name = path.file_stem().unwrap().to_string_lossy().into_owned();
        for (_, run) in vectors.runs(|_| true) {
            let context = vectors.context(run.context, &run.tenant);
            fs::write(Path::new(&target).join(&run.tenant), context.encode_to_vec()).unwrap();
        }
    }
}
