//! h2load, of nghttp2, as the client: does a load that others wrote see what ours sees?
//!
//! It knows HTTP only, and takes an error of gRPC for a success. Such an answer has no message: the bytes show it.
use std::{
    fs,
    process::{Command, Stdio},
};

use crate::{
    client::Load,
    process::{CLIENT_CORE, Process},
    question, told,
};

pub(crate) struct H2load {
    load: Load,
    url: String,
}

const QUESTION: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/question.grpc");
/// A delay that is drawn by chance, and a growing balance, are written with a byte more or less.
const BYTES_APART_MAX: f64 = 3.0;

/// Writes what it is to send. Ends the bench if there is no h2load, before others are measured for minutes.
pub(crate) fn prepare() {
    let found = Command::new("h2load").arg("--version").stdout(Stdio::null()).status();
    if !found.is_ok_and(|status| status.success()) {
        eprintln!(
            "`h2load` is missing: install the Debian package nghttp2-client, or name other scenarios"
        );
        std::process::exit(1);
    }
    fs::write(QUESTION, question::framed(&question::of_tenant(0))).unwrap();
}

impl H2load {
    pub(crate) fn to(process: &Process, load: Load) -> H2load {
        let url = format!("http://{}/retryd.v1.RetryService/Decide", process.address);
        H2load { load, url }
    }

    /// Makes the calls, which must all be answered with about so many bytes, and tells how many a second.
    pub(crate) fn calls(&self, calls: usize, answer_bytes: usize) -> f64 {
        let Load { connections, in_flight } = self.load;
        let output = Command::new("taskset")
            .args(["-c", CLIENT_CORE, "h2load", "--threads=1", "--data", QUESTION])
            .args(["--header=content-type: application/grpc", "--header=te: trailers"])
            .arg(format!("--requests={calls}"))
            .arg(format!("--clients={connections}"))
            .arg(format!("--max-concurrent-streams={in_flight}"))
            .arg(&self.url)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let told = told::read(&text, calls).unwrap_or_else(|| panic!("calls failed: {text}"));
        let apart = (told.bytes - answer_bytes as f64).abs();
        assert!(apart <= BYTES_APART_MAX, "answers of {answer_bytes} bytes expected: {text}");
        told.calls_per_s
    }
}
