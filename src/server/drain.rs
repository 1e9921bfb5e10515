//! The end of the process, in phases, as a value that signals or tests drive.
use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// The way from "asked to stop" to the end.
///
/// ```text
/// begin() ──> NOT_SERVING, still answering ──> stopping: GOAWAY, streams end ──> ended
///                     drain_delay                  calls finish, at most until drain_timeout
/// ```
///
/// [`hurry`](Drain::hurry) jumps from any phase to the end. Clones are the same drain.
#[derive(Clone, Debug, Default)]
pub struct Drain {
    begun: CancellationToken,
    stopping: CancellationToken,
    hurried: CancellationToken,
    ended: CancellationToken,
}

impl Drain {
    /// A drain that nobody has begun.
    pub fn new() -> Drain {
        Drain::default()
    }

    /// Asks the process to stop. Asking again changes nothing.
    pub fn begin(&self) {
        self.begun.cancel();
    }

    /// Ends at once, whatever is in flight.
    pub fn hurry(&self) {
        self.begun.cancel();
        self.hurried.cancel();
    }

    /// Cancelled when the process was asked to stop. It keeps answering.
    pub fn begun(&self) -> &CancellationToken {
        &self.begun
    }

    /// Cancelled when new calls are no longer taken and streams shall end.
    pub fn stopping(&self) -> &CancellationToken {
        &self.stopping
    }

    /// Cancelled when the last call has ended or was cut. Listeners for people and probes stay open
    /// until then.
    pub fn ended(&self) -> &CancellationToken {
        &self.ended
    }

    pub(super) fn hurried(&self) -> &CancellationToken {
        &self.hurried
    }

    pub(super) fn stop(&self) {
        self.stopping.cancel();
    }

    pub(super) fn end(&self) {
        self.stopping.cancel();
        self.ended.cancel();
    }

    /// Lets SIGTERM or SIGINT begin the drain, and a second one of either hurry it.
    ///
    /// # Errors
    ///
    /// If the system refuses a handler.
    pub fn on_signals(&self) -> io::Result<()> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let drain = self.clone();
        tokio::spawn(async move {
            loop {
                let name = tokio::select! {
                    _ = terminate.recv() => "SIGTERM",
                    _ = interrupt.recv() => "SIGINT",
                };
                if drain.begun.is_cancelled() {
                    tracing::warn!(signal = name, "asked to stop again: ending at once");
                    drain.hurry();
                } else {
                    tracing::info!(signal = name, "asked to stop");
                    drain.begin();
                }
            }
        });
        Ok(())
    }
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Every call ended by itself.
    Drained,
    /// Time was up; so many connections were cut.
    Cut(usize),
    /// A second signal ended it; so many connections were cut.
    Hurried(usize),
}

impl Ended {
    /// The exit code of the process: 0 for a drain within its limit, whatever clients did, and 130
    /// for an end that was hurried.
    pub fn exit_code(self) -> u8 {
        match self {
            Ended::Drained | Ended::Cut(_) => 0,
            Ended::Hurried(_) => 130,
        }
    }
}
