//! Writes every context of the vectors into a folder, each as the bytes of its message.
//! CONTRIBUTING says how the seeds come from there.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "it stops at an error")]
use std::{env, fs, path::Path};

use prost::Message as _;

#[allow(dead_code, clippy::indexing_slicing, reason = "shared with the tests, which use all of it")]
#[path = "../tests/vectors/format.rs"]
mod format;
#[allow(dead_code, clippy::indexing_slicing, reason = "shared with the tests, which use all of it")]
#[path = "../tests/vectors/message.rs"]
mod message;

use format::{Action, Vectors};

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
        let mut vectors: Vectors = serde_json::from_str(&text).unwrap();
        vectors.name = path.file_stem().unwrap().to_string_lossy().into_owned();
        for run in vectors.runs() {
            let asks = run.steps.iter().filter_map(|step| match &step.action {
                Action::Ask(calls) => Some(calls.each()),
                _ => None,
            });
            for (place, call) in asks.flatten().enumerate() {
                let mut context = vectors.base.clone();
                context.extend(call.clone());
                let context = message::context(run.names.fill(&context));
                let name = format!("{}-{place}", run.names.tenant);
                fs::write(Path::new(&target).join(name), context.encode_to_vec()).unwrap();
            }
        }
    }
}
