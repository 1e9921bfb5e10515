//! Where a bench could lie: when calls are due, from when they are timed, and what counts as an answer.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]
#![allow(clippy::disallowed_methods, reason = "a load runs on the real clock")]
#[path = "../benches/compare/frames.rs"]
mod frames;
#[path = "../benches/compare/in_process.rs"]
mod in_process;
#[path = "../benches/compare/open_loop.rs"]
mod open_loop;
#[path = "../benches/compare/question.rs"]
mod question;
#[path = "../benches/compare/schedule.rs"]
mod schedule;
#[path = "../benches/compare/spread.rs"]
mod spread;
#[path = "../benches/compare/told.rs"]
mod told;

use std::{
    cell::Cell,
    io::{self, ErrorKind, Read, Write},
    iter,
    rc::Rc,
    sync::mpsc,
    thread,
    time::Duration,
};

use retryd::wire::pb;

use self::{
    frames::{Answer, Frames},
    open_loop::{Call, OpenLoop, Outcome},
    schedule::due,
    spread::Spread,
    told::Told,
};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const END_STREAM: u8 = 1;
const HEAD: &[u8] = &[0x88];
const TRAILERS: &[u8] = &[0xbf];
const RETRY: &[u8] = &[0, 0, 0, 0, 4, 0x08, 1, 0x10, 1];
const EXHAUSTED: &[u8] = &[0, 0, 0, 0, 4, 0x08, 2, 0x10, 11];
const KEY_NOT_SENT: &[u8] = &[0, 0, 0, 0, 4, 0x08, 2, 0x10, 30];

#[test]
fn calls_are_due_each_within_its_share_of_the_time() {
    let moments = due(1_000, Duration::ZERO, 5_000, 7);
    let share = |moment: &Duration| moment.as_millis() as usize;
    assert!(moments.iter().map(share).eq(0..5_000));
    assert_eq!(moments, due(1_000, Duration::ZERO, 5_000, 7), "a seed draws the same moments");
    assert_ne!(moments, due(1_000, Duration::ZERO, 5_000, 8));
}

#[test]
fn a_rate_grows_evenly_and_then_stays() {
    let moments = due(1_000, Duration::from_secs(2), 5_000, 7);
    assert!(moments.is_sorted());
    let before = |ms| moments.iter().filter(|it| **it < Duration::from_millis(ms)).count();
    // By the area under the rate: t * t * 1,000 / 2 / 2 s, then 1,000 more each second.
    assert_eq!([400, 1_000, 2_000, 3_000, 6_000].map(before), [40, 250, 1_000, 2_000, 5_000]);
}

#[test]
fn a_percentile_is_the_time_of_a_call() {
    let of = |most| Spread::of((1..=most).rev().map(Duration::from_millis).collect());
    let ms = |spread: &Spread| {
        [500, 900, 990, 999, 1_000].map(|per_mille| spread.per_mille(per_mille).as_millis())
    };
    for (most, expected) in [
        (0, [0, 0, 0, 0, 0]),
        (1, [1, 1, 1, 1, 1]),
        (2, [1, 2, 2, 2, 2]),
        (10, [5, 9, 10, 10, 10]),
        (100, [50, 90, 99, 100, 100]),
        (1_000, [500, 900, 990, 999, 1_000]),
    ] {
        assert_eq!(ms(&of(most)), expected, "of {most}");
    }
}

#[test]
fn h2load_is_believed_when_all_calls_have_succeeded() {
    const TEXT: &str = "\
starting benchmark...
finished in 182.35ms, 54838.72 req/s, 5.54MB/s
requests: 10000 total, 10000 started, 10000 done, 10000 succeeded, 0 failed, 0 errored, 0 timeout
status codes: 10000 2xx, 0 3xx, 0 4xx, 0 5xx
traffic: 1.01MB (1060216) total, 19.74KB (20216) headers (space savings 97.97%), 771.48KB (790000) data
";
    let read = |text: &str| told::read(text, 10_000);
    assert_eq!(read(TEXT), Some(Told { calls_per_s: 54_838.72, bytes: 79.0 }));
    for (case, text) in [
        (
            "one fewer succeeded",
            TEXT.replace("10000 succeeded, 0 failed", "9999 succeeded, 1 failed"),
        ),
        ("one has no end", TEXT.replace("10000 done", "9999 done")),
        ("one is not 2xx", TEXT.replace("10000 2xx, 0 3xx", "9999 2xx, 1 3xx")),
        ("it says nothing", String::new()),
    ] {
        assert_eq!(read(&text), None, "{case}");
    }
    assert_eq!(told::read(TEXT, 20_000), None, "another number of calls was meant");
}

/// Kind, flags and payload of a frame.
type Part<'a> = (u8, u8, &'a [u8]);

#[test]
fn an_answer_has_a_head_a_verdict_and_trailers() {
    let (head, end): (Part<'_>, Part<'_>) = ((HEADERS, 0, HEAD), (HEADERS, END_STREAM, TRAILERS));
    let cases: [(&str, &[Part<'_>], Answer); 10] = [
        ("yes", &[head, (DATA, 0, RETRY), end], Answer::Retry),
        ("no, the budget is empty", &[head, (DATA, 0, EXHAUSTED), end], Answer::Exhausted),
        ("no, for another reason", &[head, (DATA, 0, KEY_NOT_SENT), end], Answer::Wrong),
        ("an empty message", &[head, (DATA, 0, &RETRY[..5]), end], Answer::Wrong),
        ("two messages", &[head, (DATA, 0, RETRY), (DATA, 0, RETRY), end], Answer::Wrong),
        ("no message", &[head, end], Answer::Wrong),
        ("no trailers", &[head, (DATA, END_STREAM, RETRY)], Answer::Wrong),
        ("an error, in trailers alone", &[(HEADERS, END_STREAM, HEAD)], Answer::Wrong),
        ("a reset", &[head, (DATA, 0, RETRY), (RST_STREAM, 0, &[0, 0, 0, 8])], Answer::Wrong),
        ("HTTP 500", &[(HEADERS, 0, &[0x8e]), (DATA, 0, RETRY), end], Answer::Wrong),
    ];
    for (case, parts, expected) in cases {
        let mut frames = Frames::new(false);
        let slot = frames.ask(b"question");
        let mut answers = Vec::new();
        for (kind, flags, payload) in parts {
            // In two pieces, as a socket may bring them.
            let bytes = frame(*kind, *flags, 1, payload);
            for piece in [&bytes[..4], &bytes[4..]] {
                frames.read.extend_from_slice(piece);
                frames.take(|slot, answer| answers.push((slot, answer)));
            }
        }
        assert_eq!(answers, [(slot, expected)], "{case}");
        assert_eq!(frames.odd.is_some(), expected == Answer::Wrong, "{case}");
        assert_eq!(frames.in_flight(), 0, "{case}");
    }
}

#[test]
fn a_server_that_stalls_cannot_hide_what_waits() {
    // It takes one call at a time, so the later ones are not even sent before it wakes.
    let clock = Clock::default();
    let server = Server { streams_max: 1, wakes: ms(300), ..Server::at(&clock) };
    let outcome = run(server, &clock, ms(1), &[0, 10, 20]);
    assert_eq!((outcome.retry, outcome.errors), (3, 0));
    let answered: Vec<Duration> =
        outcome.times.iter().zip([0, 10, 20]).map(|(time, due)| *time + ms(due)).collect();
    assert!(answered.iter().all(|it| ms(300) <= *it && *it < ms(320)), "{answered:?}");
    assert!(outcome.late.iter().all(|late| *late <= ms(2)), "{:?}", outcome.late);
}

#[test]
fn a_client_that_stalls_says_so() {
    let clock = Clock::default();
    let outcome = run(Server::at(&clock), &clock, ms(50), &[0, 10]);
    assert_eq!(outcome.late, [ms(50), ms(40)]);
    assert_eq!((outcome.retry, outcome.errors), (2, 0));
}

#[test]
fn a_call_without_a_right_answer_is_an_error() {
    for (case, fault, right, error) in [
        ("closes after the first call", Fault::Closes, 1, "closed by the server"),
        ("answers the first call only", Fault::Stops, 1, "no answer"),
        ("refuses all but the first call", Fault::Refuses, 1, "frame 3 after Asked on stream 3"),
        ("answers", Fault::None, 3, ""),
    ] {
        let clock = Clock::default();
        let server = Server { fault, ..Server::at(&clock) };
        let outcome = run(server, &clock, ms(100), &[0, 1_000, 2_000]);
        assert_eq!((outcome.retry, outcome.errors), (right, 3 - right), "{case}");
        assert_eq!(outcome.times.len(), right, "{case}");
        let told = outcome.first_error.unwrap_or_default();
        assert!(told.starts_with(error) && told.is_empty() == error.is_empty(), "{case}: {told}");
    }
}

#[test]
fn calls_over_a_connection_are_all_answered() {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            tell.send(in_process::serve().await).unwrap();
            std::future::pending::<()>().await;
        });
    });
    // One tenant that reports one call for each failure: its budget ends.
    let usage = Some(pb::Usage { requests: 1, ..Default::default() });
    let question = question::framed(&pb::RetryContext { usage, ..question::of_tenant(1) });
    let moments = due(20_000, Duration::ZERO, 2_000, 7);
    let calls: Vec<Call> = moments.into_iter().map(|due| Call { due, question: 0 }).collect();
    let outcome = OpenLoop::connect(told.recv().unwrap(), 4).run(&calls, &[question]);
    assert_eq!((outcome.errors, outcome.first_error), (0, None));
    assert_eq!(outcome.retry + outcome.exhausted, 2_000);
    assert!(10 <= outcome.retry && 0 < outcome.exhausted, "{} retries", outcome.retry);
}

/// Makes calls that are due at these ms, by a clock that goes on by `step` whenever it is read.
fn run(server: Server, clock: &Clock, step: Duration, due_ms: &[u64]) -> Outcome {
    let calls: Vec<Call> =
        due_ms.iter().map(|due_ms| Call { due: ms(*due_ms), question: 0 }).collect();
    let tick = || {
        clock.set(clock.get() + step);
        clock.get()
    };
    OpenLoop::over(iter::once(server)).run_by(tick, &calls, &[b"question".to_vec()])
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

type Clock = Rc<Cell<Duration>>;

/// A server that says RETRY to all calls, or what `fault` says.
struct Server {
    clock: Clock,
    streams_max: u32,
    /// Nothing is answered before.
    wakes: Duration,
    fault: Fault,
    heard: Vec<u8>,
    has_greeted: bool,
}

#[derive(PartialEq)]
enum Fault {
    None,
    Closes,
    Stops,
    Refuses,
}

impl Server {
    fn at(clock: &Clock) -> Server {
        Server {
            clock: Rc::clone(clock),
            streams_max: 100,
            wakes: Duration::ZERO,
            fault: Fault::None,
            heard: Vec::new(),
            has_greeted: false,
        }
    }

    /// The streams of the questions that have been heard to their ends.
    fn asked(&mut self) -> Vec<u32> {
        const PREFACE: usize = 24;
        let mut streams = Vec::new();
        while let Some(head) = self.heard.get(PREFACE..PREFACE + 9) {
            let word = |at: usize| u32::from_be_bytes(head[at..at + 4].try_into().unwrap());
            let (kind, flags, stream) = (head[3], head[4], word(5));
            let end = PREFACE + 9 + (word(0) >> 8) as usize;
            if self.heard.len() < end {
                break;
            }
            if (kind, flags) == (DATA, END_STREAM) {
                streams.push(stream);
            }
            self.heard.drain(PREFACE..end);
        }
        streams
    }

    fn answer(&self, stream: u32) -> Vec<u8> {
        match self.fault {
            Fault::Stops if stream != 1 => Vec::new(),
            Fault::Refuses if stream != 1 => frame(RST_STREAM, 0, stream, &[0, 0, 0, 7]),
            _ => [
                frame(HEADERS, 0, stream, HEAD),
                frame(DATA, 0, stream, RETRY),
                frame(HEADERS, END_STREAM, stream, TRAILERS),
            ]
            .concat(),
        }
    }
}

impl Write for Server {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Not all at once.
        let taken = bytes.len().min(40);
        self.heard.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for Server {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut says = Vec::new();
        if !self.has_greeted {
            self.has_greeted = true;
            let streams_max = [&[0, 3][..], &self.streams_max.to_be_bytes()].concat();
            says.extend(frame(SETTINGS, 0, 0, &streams_max));
        }
        if self.wakes <= self.clock.get() {
            for stream in self.asked() {
                if self.fault == Fault::Closes && stream != 1 {
                    return Ok(0);
                }
                says.extend(self.answer(stream));
            }
        }
        into[..says.len()].copy_from_slice(&says);
        if says.is_empty() { Err(ErrorKind::WouldBlock.into()) } else { Ok(says.len()) }
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}
