//! The thread that writes: it alone knows how slow a disk or a reader is.
use std::sync::{
    atomic::Ordering,
    mpsc::{Receiver, TryRecvError},
};

use super::{Entry, Message, Shared, sink::Sink};

/// What goes into one write where much is waiting.
const BATCH_BYTES: usize = 64 << 10;

/// Writes what comes, until there is nothing more and nothing is to come.
pub(super) fn run(inbox: &Receiver<Message>, shared: &Shared, mut sink: Sink) {
    let mut batch = Vec::new();
    while let Some(first) = next(inbox, shared) {
        if shared.reopen.swap(false, Ordering::SeqCst) {
            sink.reopen();
        }
        let mut message = Some(first);
        while let Some(taken) = message {
            if let Message::Entry(entry) = taken {
                add(&mut batch, *entry, shared);
            }
            let is_full = BATCH_BYTES <= batch.len();
            message = if is_full { None } else { inbox.try_recv().ok() };
        }
        // Nothing, after a look: it would tell of a disk that nobody has tried.
        if !batch.is_empty() {
            sink.write(&batch);
            batch.clear();
        }
    }
    shared.ended.notify_one();
}

/// Waits for what comes next. `None` at the end.
fn next(inbox: &Receiver<Message>, shared: &Shared) -> Option<Message> {
    match inbox.try_recv() {
        Ok(message) => Some(message),
        Err(TryRecvError::Empty) if !shared.ending.load(Ordering::SeqCst) => inbox.recv().ok(),
        Err(TryRecvError::Empty | TryRecvError::Disconnected) => None,
    }
}

fn add(batch: &mut Vec<u8>, entry: Entry, shared: &Shared) {
    shared.waiting_bytes.fetch_sub(entry.bytes(), Ordering::Relaxed);
    let whole_lines = batch.len();
    if let Err(error) = entry.into_line().write(batch) {
        // Nothing that the border lets in should be without words.
        batch.truncate(whole_lines);
        shared.lines.failed.inc();
        tracing::error!(%error, "a decision cannot be written as a line");
    }
}
