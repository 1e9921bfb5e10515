//! An open loop: calls are made when they are due, whatever the server does, as many callers who know nothing of each other
//! would. A call's time runs from when it was due, so that a server that stalls cannot hide what waits meanwhile.
//!
//! It spins instead of sleeping: a timer would be late by as long as an answer takes.
use std::{
    collections::VecDeque,
    hint,
    io::{self, ErrorKind, Read, Write},
    net::{SocketAddr, TcpStream},
    time::{Duration, Instant},
};

use crate::frames::{Answer, Frames, SLOTS};

/// A call that is due, and which of the questions it asks.
pub(crate) struct Call {
    pub(crate) due: Duration,
    pub(crate) question: usize,
}

/// What became of the calls.
#[derive(Default)]
pub(crate) struct Outcome {
    /// Of calls that were answered right, from when they were due.
    pub(crate) times: Vec<Duration>,
    /// How long after it was due the client saw to each call. What is then late is the server.
    pub(crate) late: Vec<Duration>,
    pub(crate) retry: usize,
    pub(crate) exhausted: usize,
    /// Calls without a right answer, and what happened first.
    pub(crate) errors: usize,
    pub(crate) first_error: Option<String>,
}

/// A client of some connections, which take turns.
pub(crate) struct OpenLoop<S> {
    lanes: Vec<Lane<S>>,
}

struct Lane<S> {
    socket: S,
    frames: Frames,
    buffer: Box<[u8]>,
    /// Calls that are due, and wait until the server takes one more.
    waiting: VecDeque<usize>,
    /// When the call in each slot was due.
    due: Vec<Duration>,
    lost: Option<String>,
}

/// Without an answer for so long, all calls have been lost.
const PATIENCE: Duration = Duration::from_secs(10);

impl OpenLoop<TcpStream> {
    pub(crate) fn connect(to: SocketAddr, connections: usize) -> OpenLoop<TcpStream> {
        OpenLoop::over((0..connections).map(|_| {
            let socket = TcpStream::connect(to).unwrap();
            socket.set_nodelay(true).unwrap();
            socket.set_nonblocking(true).unwrap();
            socket
        }))
    }

    /// Makes the calls, which are in the order in which they are due.
    pub(crate) fn run(&mut self, calls: &[Call], questions: &[Vec<u8>]) -> Outcome {
        let begun = Instant::now();
        self.run_by(|| begun.elapsed(), calls, questions)
    }
}

impl<S: Read + Write> OpenLoop<S> {
    /// Greets at once. No socket may block.
    pub(crate) fn over(sockets: impl Iterator<Item = S>) -> OpenLoop<S> {
        let mut lanes: Vec<Lane<S>> = sockets.map(Lane::new).collect();
        lanes.iter_mut().for_each(Lane::write);
        OpenLoop { lanes }
    }

    /// The same by any clock.
    pub(crate) fn run_by(
        &mut self,
        mut elapsed: impl FnMut() -> Duration,
        calls: &[Call],
        questions: &[Vec<u8>],
    ) -> Outcome {
        let mut outcome = Outcome::default();
        // Nothing is moved to where there is more room meanwhile.
        outcome.times.reserve(calls.len());
        outcome.late.reserve(calls.len());
        let (mut next, mut last_answer) = (0, Duration::ZERO);
        while next < calls.len() || self.lanes.iter().any(Lane::is_busy) {
            let now = elapsed();
            while let Some(call) = calls.get(next).filter(|call| call.due <= now) {
                outcome.late.push(now - call.due);
                let place = next % self.lanes.len();
                self.lanes[place].waiting.push_back(next);
                next += 1;
            }
            for lane in self.lanes.iter_mut().filter(|lane| lane.is_busy()) {
                lane.ask(calls, questions);
                lane.write();
                if lane.read() {
                    last_answer = elapsed();
                    lane.take(last_answer, &mut outcome);
                } else if next == calls.len() && PATIENCE < now.saturating_sub(last_answer) {
                    lane.lose("no answer");
                }
            }
            hint::spin_loop();
        }
        outcome.errors = calls.len() - outcome.retry - outcome.exhausted;
        outcome.first_error = self.lanes.iter().find_map(Lane::error);
        outcome
    }
}

impl<S: Read + Write> Lane<S> {
    fn new(socket: S) -> Lane<S> {
        Lane {
            socket,
            frames: Frames::new(false),
            buffer: vec![0; 1 << 16].into(),
            waiting: VecDeque::new(),
            due: vec![Duration::ZERO; SLOTS],
            lost: None,
        }
    }

    fn is_busy(&self) -> bool {
        self.lost.is_none() && (!self.waiting.is_empty() || 0 < self.frames.in_flight())
    }

    fn ask(&mut self, calls: &[Call], questions: &[Vec<u8>]) {
        while self.frames.has_room()
            && let Some(call) = self.waiting.pop_front()
        {
            let slot = self.frames.ask(&questions[calls[call].question]);
            self.due[slot] = calls[call].due;
        }
    }

    /// As much as the socket takes.
    fn write(&mut self) {
        if self.frames.out.is_empty() {
            return;
        }
        match self.socket.write(&self.frames.out) {
            Ok(written) => drop(self.frames.out.drain(..written)),
            Err(error) => self.lose_unless_blocked(&error),
        }
    }

    /// Whether something has come.
    fn read(&mut self) -> bool {
        match self.socket.read(&mut self.buffer) {
            Ok(0) => self.lose("closed by the server"),
            Ok(read) => {
                self.frames.read.extend_from_slice(&self.buffer[..read]);
                return true;
            }
            Err(error) => self.lose_unless_blocked(&error),
        }
        false
    }

    fn take(&mut self, now: Duration, outcome: &mut Outcome) {
        self.frames.take(|slot, answer| {
            match answer {
                Answer::Retry => outcome.retry += 1,
                Answer::Exhausted => outcome.exhausted += 1,
                Answer::Wrong => return,
            }
            outcome.times.push(now.saturating_sub(self.due[slot]));
        });
    }

    fn lose_unless_blocked(&mut self, error: &io::Error) {
        if error.kind() != ErrorKind::WouldBlock {
            self.lose(&error.to_string());
        }
    }

    /// All its calls have failed, and those that are yet to come.
    fn lose(&mut self, why: &str) {
        self.lost = Some(why.to_owned());
    }

    fn error(&self) -> Option<String> {
        self.frames.odd.clone().or_else(|| self.lost.clone())
    }
}
