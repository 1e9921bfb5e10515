//! HTTP/2 frames of gRPC calls, made and read by hand: what a connection says, without the connection. It costs less than any
//! server, so that the servers are what is measured.
//!
//! Every answer is checked, as far as frames tell: HTTP 200, one message with a verdict, and trailers that end the stream.

/// What a call got.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Answer {
    Retry,
    /// DO_NOT_RETRY, for want of budget.
    Exhausted,
    /// Anything else: [`Frames::odd`] says what came first.
    Wrong,
}

/// One connection's frames: `out` is to be written, and what is read goes into `read`.
pub(crate) struct Frames {
    pub(crate) out: Vec<u8>,
    pub(crate) read: Vec<u8>,
    /// The first frame that has no place in a right answer.
    pub(crate) odd: Option<String>,
    next_stream: u32,
    streamed: bool,
    streams_max: usize,
    in_flight: usize,
    /// What each call has got so far, by its stream.
    seen: Vec<Seen>,
    /// Bytes of the streamed answer that are no whole message yet.
    partial: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Seen {
    Nothing,
    Asked,
    Head,
    Message(Answer),
    Odd,
}

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const FRAME_HEAD: usize = 9;
const MAX_CONCURRENT_STREAMS: [u8; 2] = [0, 3];
/// The first field of a head that says HTTP 200 (RFC 7541, appendix A).
const STATUS_200: u8 = 0x88;
/// `verdict: RETRY`, the first field of a Decision; `decision`, the first field of a streamed one.
const RETRY: [u8; 2] = [0x08, 1];
const DECISION: u8 = 0x0a;
/// `verdict: DO_NOT_RETRY` and `reason: BUDGET_EXHAUSTED`.
const EXHAUSTED: [u8; 4] = [0x08, 2, 0x10, 11];
/// Calls by their streams, the latest ones: more than are ever in flight.
pub(crate) const SLOTS: usize = 1 << 12;
/// Their questions fit the window that a connection begins with, of which no account is taken here.
const STREAMS_MAX: usize = 200;
/// Until the server says how many: what it should allow at least (RFC 9113, 6.5.2).
const STREAMS_AT_FIRST: usize = 100;
const DECIDE: &str = "/retryd.v1.RetryService/Decide";
const DECIDE_STREAM: &str = "/retryd.v1.RetryService/DecideStream";
/// The head of every request but the first: fields by their places in the table that the first one built.
const AGAIN: [u8; 7] = [0x83, 0x86, 0xc2, 0xc1, 0xc0, 0xbf, 0xbe];

impl Frames {
    /// Begins with a greeting, to be written at once: a server does not wait long for it. Questions are asked one call each,
    /// or `streamed` on DecideStream.
    pub(crate) fn new(streamed: bool) -> Frames {
        let mut frames = Frames {
            out: b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
            read: Vec::with_capacity(1 << 16),
            odd: None,
            next_stream: 1,
            streamed,
            streams_max: STREAMS_AT_FIRST,
            in_flight: 0,
            seen: vec![Seen::Nothing; SLOTS],
            partial: Vec::new(),
        };
        // Windows as large as can be: answers never wait for room.
        let window = [&[0, 4][..], &i32::MAX.to_be_bytes()].concat();
        frames.write(SETTINGS, 0, 0, &window);
        frames.write(WINDOW_UPDATE, 0, 0, &(i32::MAX - 65_535).to_be_bytes());
        if streamed {
            frames.write(HEADERS, END_HEADERS, 1, &first_head(DECIDE_STREAM));
        }
        frames
    }

    /// Asks a `framed` question, and tells its slot.
    pub(crate) fn ask(&mut self, question: &[u8]) -> usize {
        self.in_flight += 1;
        if self.streamed {
            self.write(DATA, 0, 1, question);
            return 0;
        }
        let stream = self.next_stream;
        self.next_stream += 2;
        if stream == 1 {
            self.write(HEADERS, END_HEADERS, stream, &first_head(DECIDE));
        } else {
            self.write(HEADERS, END_HEADERS, stream, &AGAIN);
        }
        self.write(DATA, END_STREAM, stream, question);
        let slot = slot(stream);
        assert_eq!(self.seen[slot], Seen::Nothing, "a call is never answered");
        self.seen[slot] = Seen::Asked;
        slot
    }

    /// The server takes one more call now.
    pub(crate) fn has_room(&self) -> bool {
        self.in_flight < self.streams_max && self.seen[slot(self.next_stream)] == Seen::Nothing
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Takes what has been read: `answered` hears of each call that has ended, by its slot.
    pub(crate) fn take(&mut self, mut answered: impl FnMut(usize, Answer)) {
        let read = std::mem::take(&mut self.read);
        let mut rest = &read[..];
        while let Some(frame_head) = rest.get(..FRAME_HEAD) {
            let word = |at: usize| u32::from_be_bytes(frame_head[at..at + 4].try_into().unwrap());
            let end = FRAME_HEAD + (word(0) >> 8) as usize;
            let Some(payload) = rest.get(FRAME_HEAD..end) else { break };
            self.take_frame(frame_head[3], frame_head[4], word(5), payload, &mut answered);
            rest = &rest[end..];
        }
        let done = read.len() - rest.len();
        self.read = read;
        self.read.drain(..done);
    }

    fn take_frame(
        &mut self,
        kind: u8,
        flags: u8,
        stream: u32,
        payload: &[u8],
        answered: &mut impl FnMut(usize, Answer),
    ) {
        match kind {
            SETTINGS | PING if flags & ACK == 0 => {
                if kind == SETTINGS {
                    self.take_settings(payload);
                }
                self.write(kind, ACK, 0, if kind == PING { payload } else { &[] });
            }
            // The end of the connection follows, and tells what is lost.
            SETTINGS | PING | WINDOW_UPDATE | GOAWAY => {}
            HEADERS if self.streamed => {
                assert!(flags & END_STREAM == 0 && payload[0] == STATUS_200, "the stream ends");
            }
            DATA if self.streamed => self.take_streamed(payload, answered),
            HEADERS | DATA | RST_STREAM if !self.streamed => {
                if let Some(answer) = self.take_part(kind, flags, stream, payload) {
                    self.in_flight -= 1;
                    answered(slot(stream), answer);
                }
            }
            _ => panic!("frame {kind} on stream {stream}: {payload:?}"),
        }
    }

    fn take_settings(&mut self, payload: &[u8]) {
        for setting in payload.chunks_exact(6) {
            if setting[..2] == MAX_CONCURRENT_STREAMS {
                let most = u32::from_be_bytes(setting[2..].try_into().unwrap()) as usize;
                self.streams_max = most.min(STREAMS_MAX);
            }
        }
    }

    /// The answer, if this is its end.
    fn take_part(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Option<Answer> {
        let before = self.seen[slot(stream)];
        let ends = kind == RST_STREAM || flags & END_STREAM != 0;
        let seen = match before {
            Seen::Asked if kind == HEADERS && !ends && payload[0] == STATUS_200 => Seen::Head,
            Seen::Head if kind == DATA && !ends => Seen::Message(verdict(payload.get(5..))),
            Seen::Message(answer) if kind == HEADERS && ends => Seen::Message(answer),
            Seen::Nothing => panic!("frame {kind} on stream {stream}, which has ended"),
            _ => Seen::Odd,
        };
        if [Seen::Odd, Seen::Message(Answer::Wrong)].contains(&seen) {
            self.odd.get_or_insert_with(|| {
                format!("frame {kind} after {before:?} on stream {stream}: {payload:?}")
            });
        }
        self.seen[slot(stream)] = if ends { Seen::Nothing } else { seen };
        match seen {
            Seen::Message(answer) if ends => Some(answer),
            _ if ends => Some(Answer::Wrong),
            _ => None,
        }
    }

    fn take_streamed(&mut self, payload: &[u8], answered: &mut impl FnMut(usize, Answer)) {
        self.partial.extend_from_slice(payload);
        let mut rest = &self.partial[..];
        while let Some(prefix) = rest.get(..5) {
            let end = 5 + u32::from_be_bytes(prefix[1..].try_into().unwrap()) as usize;
            let Some(answer) = rest.get(5..end) else { break };
            assert_eq!(answer[0], DECISION, "{answer:?}");
            self.in_flight -= 1;
            answered(0, verdict(answer.get(2..)));
            rest = &rest[end..];
        }
        let done = self.partial.len() - rest.len();
        self.partial.drain(..done);
    }

    fn write(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        self.out.extend_from_slice(&length[1..]);
        self.out.extend_from_slice(&[kind, flags]);
        self.out.extend_from_slice(&stream.to_be_bytes());
        self.out.extend_from_slice(payload);
    }
}

fn slot(stream: u32) -> usize {
    stream as usize / 2 % SLOTS
}

fn verdict(decision: Option<&[u8]>) -> Answer {
    match decision {
        Some(decision) if decision.starts_with(&RETRY) => Answer::Retry,
        Some(decision) if decision.starts_with(&EXHAUSTED) => Answer::Exhausted,
        _ => Answer::Wrong,
    }
}

/// The head of the first request, as clients send it: the server keeps its fields in a table.
fn first_head(path: &str) -> Vec<u8> {
    let text = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
    // POST and http, then names by their places in the table that all begin with, or as text.
    let mut head = vec![0x83, 0x86];
    for (name, value) in [
        (vec![0x44], path),
        (vec![0x41], "retryd.example:50051"),
        (vec![0x5f], "application/grpc"),
        ([vec![0x40], text("te")].concat(), "trailers"),
        (vec![0x7a], "compare/1.0"),
    ] {
        head.extend(name);
        head.extend(text(value));
    }
    head
}
