//! The decision log: a line of JSON for every denial and for a share of the retries, with all that
//! it takes to decide anew.
//!
//! ```text
//! answer ──> kept? ──> Entry ──> buffer ──> a thread of its own: Line ──> file or stdout
//!              │ no                │ full                                   │ cannot be written
//!              ▼ nothing           ▼ counted                                ▼ counted, told once
//! ```
//!
//! Nobody who asks waits for any of it: what is kept is cloned, and what finds no room is dropped.
mod entry;
mod line;
mod one_line;
mod replay;
mod sample;
mod sink;
mod writer;

pub use line::{Asked, Budgets, Line, Word};
pub use replay::{Again, Replay, Unreadable};
pub use sample::Sample;
pub use sink::Target;

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc::{self, SyncSender},
    },
    thread,
    time::Duration,
};

use tokio::{
    signal::unix::{SignalKind, signal},
    sync::Notify,
    time::timeout,
};

use self::{entry::Entry, sink::Sink};
use crate::admin::log_lines::LogLines;
use crate::clock::Now;
use crate::decider::Answer;
use crate::engine::Rule;
use crate::wire::pb;

/// Lines that may wait to be written.
const WAITING_MAX: usize = 8_192;
/// Bytes of what waits: a context may be as large as its message.
const WAITING_BYTES_MAX: usize = 16 << 20;

/// Where decisions are handed to. Cheap to clone.
#[derive(Clone, Debug)]
pub struct DecisionLog(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    sample: Sample,
    buffer: SyncSender<Message>,
    shared: Arc<Shared>,
}

/// What the writer is told.
#[derive(Debug)]
enum Message {
    Entry(Box<Entry>),
    /// Wakes it, so that it looks at what is [`Shared`].
    Look,
}

/// What both sides look at.
#[derive(Debug)]
struct Shared {
    waiting_bytes: AtomicUsize,
    reopen: AtomicBool,
    ending: AtomicBool,
    ended: Notify,
    lines: LogLines,
}

impl DecisionLog {
    /// Opens the log, and starts the thread that writes it.
    ///
    /// # Errors
    ///
    /// If the file cannot be opened. A pipe is opened by the thread, which may wait for a reader.
    pub fn open(target: Target, sample: Sample, lines: LogLines) -> io::Result<DecisionLog> {
        let sink = Sink::open(target, lines.clone())?;
        let shared = Arc::new(Shared {
            waiting_bytes: AtomicUsize::new(0),
            reopen: AtomicBool::new(false),
            ending: AtomicBool::new(false),
            ended: Notify::new(),
            lines,
        });
        let (buffer, inbox) = mpsc::sync_channel(WAITING_MAX);
        let of_writer = Arc::clone(&shared);
        let name = "decision-log".to_owned();
        thread::Builder::new().name(name).spawn(move || writer::run(&inbox, &of_writer, sink))?;
        Ok(DecisionLog(Arc::new(Inner { sample, buffer, shared })))
    }

    /// Hands on a decision if it is one to keep, or drops it if there is no room. `shadow` is what
    /// other policies say beside it.
    pub fn offer(
        &self,
        context: &pb::RetryContext,
        now: Now,
        answer: &Answer<'_>,
        shadow: Option<&Answer<'_>>,
    ) {
        let is_denied = answer.outcome.reason() != Rule::Retryable;
        let differs = shadow.is_some_and(|shadow| shadow.said() != answer.said());
        if is_denied || differs || self.0.sample.takes(answer.draw) {
            self.keep(Entry::of(context, now, answer, shadow));
        }
    }

    fn keep(&self, entry: Entry) {
        let Inner { buffer, shared, .. } = &*self.0;
        let bytes = entry.bytes();
        let before = shared.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
        let has_room = before.saturating_add(bytes) <= WAITING_BYTES_MAX;
        if !has_room || buffer.try_send(Message::Entry(Box::new(entry))).is_err() {
            shared.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
            shared.lines.dropped.inc();
        }
    }

    /// Opens the file anew at each SIGHUP: after a rotation, it is another one.
    ///
    /// # Errors
    ///
    /// If the system refuses a handler.
    pub fn reopen_on_hangup(&self) -> io::Result<()> {
        let mut hangup = signal(SignalKind::hangup())?;
        let log = self.clone();
        tokio::spawn(async move {
            while hangup.recv().await.is_some() {
                log.tell(&log.0.shared.reopen);
            }
        });
        Ok(())
    }

    /// Writes what waits, and then no more. Whoever reads too slowly is waited for this long.
    pub async fn end(&self, wait_max: Duration) {
        let shared = &self.0.shared;
        self.tell(&shared.ending);
        if timeout(wait_max, shared.ended.notified()).await.is_err() {
            tracing::warn!("the decision log was not written to its end in time");
        }
    }

    fn tell(&self, flag: &AtomicBool) {
        flag.store(true, Ordering::SeqCst);
        // Where the buffer is full the writer does not sleep, and sees the flag by itself.
        self.0.buffer.try_send(Message::Look).ok();
    }
}
