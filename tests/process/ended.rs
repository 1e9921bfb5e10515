//! A command that ends by itself, and what it said.
use std::{
    io::Write as _,
    process::{Command, Output, Stdio},
};

pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Runs `command` with `input` on its standard input.
pub(crate) fn ended(command: &mut Command, input: impl AsRef<[u8]>) -> Ended {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It may end without reading.
    child.stdin.take().unwrap().write_all(input.as_ref()).ok();
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ended { code: status.code().unwrap(), out: text(stdout), err: text(stderr) }
}
