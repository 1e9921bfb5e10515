//! Who makes the calls of a round.
use std::{
    fmt,
    net::TcpStream,
    time::{Duration, Instant},
};

use retryd::wire::pb;

use crate::{
    client::{Client, Load},
    h2load::H2load,
    open_loop::{Call, OpenLoop, Outcome},
    process::Process,
    question, schedule,
    spread::Spread,
};

/// How calls are made.
#[derive(Clone, Copy)]
pub(crate) enum By {
    /// As fast as they are answered.
    Closed(Load),
    /// At times of their own.
    Open { connections: usize, per_s: u32 },
    /// As fast as they are answered, by another client than ours.
    H2load(Load),
}

/// The same, connected to a server.
pub(crate) enum Driver {
    Closed(Client),
    Open { client: OpenLoop<TcpStream>, questions: Vec<Vec<u8>>, per_s: u32, rounds: u64 },
    H2load(H2load),
}

/// What the client saw of a round.
pub(crate) struct Made {
    pub(crate) calls_per_s: f64,
    pub(crate) waits: Option<Waits>,
}

/// From when calls were due, until they were answered.
pub(crate) struct Waits {
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    /// Until the client saw to them: this much of it may be the client's own.
    pub(crate) late_p99_us: f64,
}

impl By {
    pub(crate) async fn connect(
        self,
        process: &Process,
        streamed: bool,
        questions: &[pb::RetryContext],
    ) -> Driver {
        match self {
            By::Closed(load) => {
                Driver::Closed(Client::connect(process.address, load, streamed, questions).await)
            }
            By::Open { connections, per_s } => Driver::Open {
                client: OpenLoop::connect(process.address, connections),
                questions: questions.iter().map(question::framed).collect(),
                per_s,
                rounds: 0,
            },
            By::H2load(load) => Driver::H2load(H2load::to(process, load)),
        }
    }
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            By::Closed(load) => write!(f, "{load}"),
            By::Open { connections, per_s } => {
                write!(f, "{connections} connections, {per_s} calls due a second")
            }
            By::H2load(load) => write!(f, "{load} by h2load"),
        }
    }
}

impl Driver {
    /// All must be answered with RETRY.
    pub(crate) async fn calls(&mut self, calls: usize, process: &Process) -> Made {
        match self {
            Driver::Closed(client) => {
                let begun = Instant::now();
                client.calls(calls).await;
                Made { calls_per_s: pace(calls, begun), waits: None }
            }
            Driver::Open { client, questions, per_s, rounds } => {
                // Each server is asked at the same times in the same round.
                *rounds += 1;
                let call = |(call, due)| Call { due, question: call % questions.len() };
                let due = schedule::due(*per_s, Duration::ZERO, calls, *rounds);
                let due: Vec<Call> = due.into_iter().enumerate().map(call).collect();
                let begun = Instant::now();
                let outcome = client.run(&due, questions);
                let calls_per_s = pace(calls, begun);
                let got = [outcome.retry, outcome.exhausted, outcome.errors];
                assert_eq!(got, [calls, 0, 0], "not RETRY: {:?}", outcome.first_error);
                Made { calls_per_s, waits: Some(Waits::of(outcome)) }
            }
            Driver::H2load(client) => {
                // One call more, and the only one that is read whole.
                let answer_bytes = process.check_an_answer().await;
                Made { calls_per_s: client.calls(calls, answer_bytes), waits: None }
            }
        }
    }
}

impl Waits {
    fn of(outcome: Outcome) -> Waits {
        let (times, late) = (Spread::of(outcome.times), Spread::of(outcome.late));
        let us = |time: Duration| time.as_secs_f64() * 1e6;
        Waits {
            p50_us: us(times.per_mille(500)),
            p99_us: us(times.per_mille(990)),
            late_p99_us: us(late.per_mille(990)),
        }
    }
}

fn pace(calls: usize, begun: Instant) -> f64 {
    calls as f64 / begun.elapsed().as_secs_f64()
}
