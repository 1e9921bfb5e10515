//! Where lines end up. What cannot be written is counted, and told when it begins and when it ends.
use std::{
    ffi::OsStr,
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::{
        fd::AsFd as _,
        unix::fs::{FileTypeExt as _, OpenOptionsExt as _},
    },
    path::{Path, PathBuf},
};

use crate::admin::log_lines::LogLines;

/// Where lines are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The standard output.
    Stdout,
    /// A file, which is added to.
    File(PathBuf),
}

impl Target {
    /// `-` is the standard output.
    pub fn of(text: &OsStr) -> Target {
        if text == "-" { Target::Stdout } else { Target::File(text.into()) }
    }
}

/// The open end of the log.
#[derive(Debug)]
pub(super) struct Sink {
    target: Target,
    /// `None` before a pipe has a reader.
    out: Option<File>,
    /// The last write has ended within a line.
    torn: bool,
    failing: bool,
    lines: LogLines,
}

/// The file holds names of tenants.
const FILE_MODE: u32 = 0o640;

impl Sink {
    pub(super) fn open(target: Target, lines: LogLines) -> io::Result<Sink> {
        let out = match &target {
            // By a descriptor of its own: the library would keep what it could not write.
            Target::Stdout => Some(File::from(io::stdout().as_fd().try_clone_to_owned()?)),
            // It opens when somebody reads, which may be never.
            Target::File(path) if is_pipe(path) => None,
            Target::File(path) => Some(append_to(path)?),
        };
        Ok(Sink { target, out, torn: false, failing: false, lines })
    }

    /// Goes on in the file that has the name now. If there is none to be had, in the old one.
    pub(super) fn reopen(&mut self) {
        let Target::File(path) = &self.target else { return };
        match append_to(path) {
            Ok(file) => {
                (self.out, self.torn) = (Some(file), false);
                tracing::info!("the decision log is open anew");
            }
            Err(error) => {
                tracing::error!(%error, "the decision log cannot be opened anew: it goes on in the old file");
            }
        }
    }

    /// Writes whole lines, and counts what became of them.
    pub(super) fn write(&mut self, batch: &[u8]) {
        let (written, error) = self.try_write(batch);
        let whole = count(batch.get(..written).unwrap_or(batch));
        self.lines.written.inc_by(whole);
        match error {
            None if self.failing => {
                self.failing = false;
                tracing::info!("the decision log is written again");
            }
            None => {}
            Some(error) => {
                self.lines.failed.inc_by(count(batch) - whole);
                // Once, and not for each line.
                if !self.failing {
                    tracing::error!(%error, "the decision log cannot be written: lines are lost");
                }
                self.failing = true;
            }
        }
    }

    /// Writes as much as it can, and tells how many bytes of `batch` that was.
    fn try_write(&mut self, batch: &[u8]) -> (usize, Option<io::Error>) {
        let out = match (&mut self.out, &self.target) {
            (Some(out), _) => out,
            (out, Target::File(path)) => match append_to(path) {
                Ok(file) => out.insert(file),
                Err(error) => return (0, Some(error)),
            },
            (None, Target::Stdout) => return (0, Some(io::ErrorKind::BrokenPipe.into())),
        };
        if self.torn {
            // Ends the line that was not written whole, so that it spoils no other.
            match out.write_all(b"\n") {
                Ok(()) => self.torn = false,
                Err(error) => return (0, Some(error)),
            }
        }
        let mut rest = batch;
        let error = loop {
            if rest.is_empty() {
                break None;
            }
            match out.write(rest) {
                Ok(0) => break Some(io::ErrorKind::WriteZero.into()),
                Ok(bytes) => rest = rest.get(bytes..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break Some(error),
            }
        };
        let written = batch.len() - rest.len();
        let last = batch.get(..written).and_then(<[u8]>::last);
        self.torn = last.is_some_and(|byte| *byte != b'\n');
        (written, error)
    }
}

fn is_pipe(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo())
}

fn append_to(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(FILE_MODE).open(path)
}

/// Lines that end in `bytes`.
fn count(bytes: &[u8]) -> u64 {
    bytes.iter().map(|byte| u64::from(*byte == b'\n')).sum()
}

#[cfg(test)]
mod tests {
    use std::{io::Read as _, process::Command, thread};

    use super::*;

    #[test]
    fn a_torn_line_is_ended_before_the_next_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fifo");
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let lines = LogLines::default();
        let mut sink = Sink::open(Target::File(path.clone()), lines.clone()).unwrap();

        // More than a pipe holds: the reader goes away while a part of it is on its way.
        let batch = format!("{}\n", "x".repeat(999)).repeat(1_000);
        let reader = thread::spawn({
            let path = path.clone();
            move || {
                let mut reader = File::open(path).unwrap();
                reader.read_exact(&mut [0; 1_500]).unwrap();
                reader
            }
        });
        let writer = thread::spawn(move || {
            sink.write(batch.as_bytes());
            sink
        });
        drop(reader.join().unwrap());
        let mut sink = writer.join().unwrap();
        let (written, failed) = (lines.written.get(), lines.failed.get());
        assert_eq!(written + failed, 1_000);
        assert!(0 < written && sink.torn && sink.failing, "{written} {sink:?}");

        // Somebody else reads. What the first one left may still be there.
        let reader = thread::spawn(move || {
            let mut text = String::new();
            File::open(path).unwrap().read_to_string(&mut text).unwrap();
            text
        });
        while sink.failing {
            sink.write(b"next\n");
        }
        sink.write(b"last\n");
        drop(sink);
        let text = reader.join().unwrap();
        assert!(text.ends_with("\nnext\nlast\n"), "{} bytes", text.len());
        assert_eq!(lines.written.get(), written + 2);
    }
}
