//! What is due, and when.
use std::{cmp::Reverse, collections::BinaryHeap};

/// Something that happens at its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    /// The next call begins.
    Begin,
    /// A call sends its next attempt.
    Send {
        /// Its place among the calls.
        call: usize,
    },
    /// A worker has finished an attempt.
    Finish {
        /// Its place among the attempts.
        attempt: usize,
    },
    /// The caller gives an attempt up, if it still waits.
    TimeOut {
        /// Its place among the attempts.
        attempt: usize,
    },
    /// The contestant has something to do.
    Wake,
}

/// Everything that is due, the earliest first. Of one microsecond, what was put first.
#[derive(Debug, Default)]
pub(super) struct Events {
    due: BinaryHeap<Reverse<(u64, u64, Event)>>,
    put: u64,
}

impl Events {
    pub(super) fn put(&mut self, at_us: u64, event: Event) {
        self.put += 1;
        self.due.push(Reverse((at_us, self.put, event)));
    }

    pub(super) fn next(&mut self) -> Option<(u64, Event)> {
        self.due.pop().map(|Reverse((at_us, _, event))| (at_us, event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_first_comes_first_of_one_moment() {
        let mut events = Events::default();
        events.put(2, Event::Begin);
        events.put(1, Event::Wake);
        events.put(1, Event::Begin);
        events.put(1, Event::Send { call: 0 });
        let order: Vec<(u64, Event)> = std::iter::from_fn(|| events.next()).collect();
        let expected =
            [(1, Event::Wake), (1, Event::Begin), (1, Event::Send { call: 0 }), (2, Event::Begin)];
        assert_eq!(order, expected);
    }
}
