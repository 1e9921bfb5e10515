//! Lines on their way to stderr, written by a thread of their own: a reader that stops holds up
//! nothing but them. What finds no room is dropped, and counted.
//!
//! `tracing-appender` does nearly the same. But where its queue is full at the end, it says so on
//! stdout: that may be held up likewise, and it may be the decision log.
use std::{
    fmt::{self, Display},
    io::{self, Write},
    mem,
    sync::Arc,
    thread,
    time::Duration,
};

use parking_lot::{Condvar, Mutex};
use prometheus_client::metrics::counter::Counter;

/// Bytes that wait at most, and as many again that are being written.
const WAITING_BYTES_MAX: usize = 1 << 20;
/// How long the end waits for a reader that has stopped.
const LAST_LINES_MAX: Duration = Duration::from_millis(500);

/// The way to a log. Clones are the same way.
#[derive(Clone, Debug)]
pub(super) struct Lines(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    waiting: Mutex<Waiting>,
    /// Something has come, or all of it has gone.
    changed: Condvar,
    dropped: Counter,
}

#[derive(Debug, Default)]
struct Waiting {
    bytes: Vec<u8>,
    is_writing: bool,
}

impl Lines {
    /// Starts the thread that writes to `out`. It lives as long as the process.
    pub(super) fn start(out: impl Write + Send + 'static, dropped: Counter) -> io::Result<Lines> {
        let waiting = Mutex::default();
        let lines = Lines(Arc::new(Shared { waiting, changed: Condvar::new(), dropped }));
        let shared = Arc::clone(&lines.0);
        thread::Builder::new().name("log".to_owned()).spawn(move || write_all(&shared, out))?;
        Ok(lines)
    }

    /// Waits until all that came is written, at most for as long as a reader may need.
    fn flush(&self) {
        let Lines(shared) = self;
        let is_under_way = |waiting: &mut Waiting| waiting.is_writing || !waiting.bytes.is_empty();
        let mut waiting = shared.waiting.lock();
        shared.changed.wait_while_for(&mut waiting, is_under_way, LAST_LINES_MAX);
    }
}

/// A line comes as a whole, in one call.
impl Write for Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let Lines(shared) = self;
        let mut waiting = shared.waiting.lock();
        if WAITING_BYTES_MAX < waiting.bytes.len() + line.len() {
            shared.dropped.inc();
        } else {
            waiting.bytes.extend_from_slice(line);
            shared.changed.notify_all();
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The one place that waits for the reader: with nothing locked.
fn write_all(shared: &Shared, mut out: impl Write) {
    let mut waiting = shared.waiting.lock();
    loop {
        shared.changed.wait_while(&mut waiting, |waiting| waiting.bytes.is_empty());
        let batch = mem::take(&mut waiting.bytes);
        waiting.is_writing = true;
        drop(waiting);
        for line in batch.split_inclusive(|byte| *byte == b'\n') {
            if out.write_all(line).is_err() {
                shared.dropped.inc();
            }
        }
        waiting = shared.waiting.lock();
        waiting.is_writing = false;
        shared.changed.notify_all();
    }
}

/// The log of this process. Dropped, it waits for its last lines, but not for a reader that has stopped.
#[must_use]
pub struct Log(pub(super) Lines);

impl Log {
    /// Writes `text` as it is, behind the lines that came before it.
    pub fn say(&self, text: &dyn Display) {
        let Log(lines) = self;
        // It never fails.
        lines.clone().write_all(format!("{text}\n").as_bytes()).ok();
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        let Log(lines) = self;
        Lines::flush(lines);
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{PipeReader, Read as _, pipe};

    use super::*;

    /// A log into a pipe that nobody reads yet, with more in it than the pipe takes.
    fn stuck() -> (PipeReader, Log, Counter) {
        let (reader, writer) = pipe().unwrap();
        let dropped = Counter::default();
        let log = Log(Lines::start(writer, dropped.clone()).unwrap());
        let line = "x".repeat(1_023);
        for _ in 0..4_096 {
            log.say(&line);
        }
        (reader, log, dropped)
    }

    #[test]
    fn a_reader_that_stops_holds_up_nobody_and_what_is_dropped_is_counted() {
        let (mut reader, log, dropped) = stuck();
        let lost = dropped.get();
        // A MiB waits, at most as much is being written, and the pipe has 64 KiB.
        let kept = 4_096 - lost;
        assert!((1_024..=2_048 + 64).contains(&kept), "{kept} lines of 1 KiB");
        drop(log);

        // Whole lines, and all that were not dropped.
        let mut text = vec![0; usize::try_from(kept).unwrap() << 10];
        reader.read_exact(&mut text).unwrap();
        let lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
        assert!(lines.iter().all(|line| line.len() == 1_024));
    }

    #[test]
    fn the_end_waits_for_the_last_line() {
        let written = Arc::default();
        let log = Log(Lines::start(Slow(Arc::clone(&written)), Counter::default()).unwrap());
        log.say(&"last");
        drop(log);
        assert_eq!(*written.lock(), b"last\n");
    }

    /// A reader that takes a moment.
    struct Slow(Arc<Mutex<Vec<u8>>>);

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            thread::sleep(LAST_LINES_MAX / 10);
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_cannot_be_written_is_counted() {
        let (reader, writer) = pipe().unwrap();
        drop(reader);
        let dropped = Counter::default();
        let log = Log(Lines::start(writer, dropped.clone()).unwrap());
        log.say(&"lost");
        drop(log);
        assert_eq!(dropped.get(), 1);
    }
}
