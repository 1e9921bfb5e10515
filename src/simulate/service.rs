//! Workers behind one queue.
use std::collections::VecDeque;

use super::scenario;

/// Attempts that wait, and how many are worked on.
#[derive(Debug)]
pub(super) struct Service {
    queue: VecDeque<usize>,
    queue_max: usize,
    busy: u32,
    workers: u32,
}

/// What becomes of an attempt that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// A worker was free.
    Begins,
    /// It waits.
    Waits,
    /// The queue was full.
    Rejected,
}

impl Service {
    pub(super) fn new(service: &scenario::Service) -> Service {
        Service {
            queue: VecDeque::new(),
            queue_max: usize::try_from(service.queue).unwrap_or(usize::MAX),
            busy: 0,
            workers: service.workers,
        }
    }

    pub(super) fn arrive(&mut self, attempt: usize) -> Arrival {
        if self.busy < self.workers {
            self.busy += 1;
            Arrival::Begins
        } else if self.queue.len() < self.queue_max {
            self.queue.push_back(attempt);
            Arrival::Waits
        } else {
            Arrival::Rejected
        }
    }

    /// A worker is free again.
    pub(super) fn leave(&mut self) {
        self.busy = self.busy.saturating_sub(1);
    }

    /// The next attempt that a free worker takes from the queue.
    pub(super) fn take(&mut self) -> Option<usize> {
        if self.workers <= self.busy {
            return None;
        }
        let attempt = self.queue.pop_front()?;
        self.busy += 1;
        Some(attempt)
    }

    pub(super) fn queued(&self) -> usize {
        self.queue.len()
    }
}
