//! A client that costs less than any server: frames written and read by hand, so that the servers are what is measured.
//!
//! Every answer is checked, as far as frames tell: HTTP 200, one message that says RETRY, and trailers that end the stream.
use std::net::SocketAddr;

use futures_util::future::join_all;
use prost::Message;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// Connections, and calls in flight on each.
#[derive(Clone, Copy)]
pub(crate) struct Load {
    pub(crate) connections: usize,
    pub(crate) in_flight: usize,
}

pub(crate) struct Client {
    connections: Vec<Connection>,
    in_flight: usize,
}

impl Client {
    /// Connects. The `questions` are asked in turn: one call each, or `streamed` on DecideStream.
    pub(crate) async fn connect(
        to: SocketAddr,
        load: Load,
        streamed: bool,
        questions: &[impl Message],
    ) -> Client {
        let mut connections = Vec::new();
        for place in 0..load.connections {
            let mut questions: Vec<Vec<u8>> = questions.iter().map(framed).collect();
            let turn = place * questions.len() / load.connections;
            questions.rotate_left(turn);
            connections.push(Connection::open(to, streamed, questions).await);
        }
        Client { connections, in_flight: load.in_flight }
    }

    /// Makes `calls`, spread over the connections, each as soon as one before it is answered.
    pub(crate) async fn calls(&mut self, calls: usize) {
        let (each, in_flight) = (calls / self.connections.len(), self.in_flight);
        join_all(self.connections.iter_mut().map(|it| it.calls(each, in_flight))).await;
    }
}

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;
const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const FRAME_HEAD: usize = 9;
/// The first field of a head that says HTTP 200 (RFC 7541, appendix A).
const STATUS_200: u8 = 0x88;
/// `verdict: RETRY`, the first field of a Decision; `decision`, the first field of a streamed one.
const RETRY: [u8; 2] = [0x08, 1];
const DECISION: u8 = 0x0a;
/// More than are ever in flight.
const SLOTS: usize = 1 << 12;
const DECIDE: &str = "/retryd.v1.RetryService/Decide";
const DECIDE_STREAM: &str = "/retryd.v1.RetryService/DecideStream";
/// The head of every request but the first: fields by their places in the table that the first one built.
const AGAIN: [u8; 7] = [0x83, 0x86, 0xc2, 0xc1, 0xc0, 0xbf, 0xbe];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Seen {
    Nothing,
    Asked,
    Head,
    Message,
}

struct Connection {
    socket: TcpStream,
    out: Vec<u8>,
    read: Vec<u8>,
    next_stream: u32,
    questions: Vec<Vec<u8>>,
    turn: usize,
    streamed: bool,
    /// What each call has got so far, by its stream.
    seen: Vec<Seen>,
    /// Bytes of the streamed answer that are no whole message yet.
    partial: Vec<u8>,
}

impl Connection {
    async fn open(to: SocketAddr, streamed: bool, questions: Vec<Vec<u8>>) -> Connection {
        let socket = TcpStream::connect(to).await.unwrap();
        socket.set_nodelay(true).unwrap();
        let mut connection = Connection {
            socket,
            out: b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
            read: Vec::with_capacity(1 << 16),
            next_stream: 1,
            questions,
            turn: 0,
            streamed,
            seen: vec![Seen::Nothing; SLOTS],
            partial: Vec::new(),
        };
        // Windows as large as can be: answers never wait for room.
        let window = [&[0, 4][..], &i32::MAX.to_be_bytes()].concat();
        connection.frame(SETTINGS, 0, 0, &window);
        connection.frame(WINDOW_UPDATE, 0, 0, &(i32::MAX - 65_535).to_be_bytes());
        if streamed {
            connection.frame(HEADERS, END_HEADERS, 1, &first_head(DECIDE_STREAM));
        }
        // A server does not wait long for a greeting.
        connection.flush().await;
        connection
    }

    async fn flush(&mut self) {
        self.socket.write_all(&self.out).await.unwrap();
        self.out.clear();
    }

    fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        self.out.extend_from_slice(&length[1..]);
        self.out.extend_from_slice(&[kind, flags]);
        self.out.extend_from_slice(&stream.to_be_bytes());
        self.out.extend_from_slice(payload);
    }

    fn ask(&mut self) {
        self.turn = (self.turn + 1) % self.questions.len();
        let question = std::mem::take(&mut self.questions[self.turn]);
        if self.streamed {
            self.frame(DATA, 0, 1, &question);
        } else {
            let stream = self.next_stream;
            self.next_stream += 2;
            if stream == 1 {
                self.frame(HEADERS, END_HEADERS, stream, &first_head(DECIDE));
            } else {
                self.frame(HEADERS, END_HEADERS, stream, &AGAIN);
            }
            self.frame(DATA, END_STREAM, stream, &question);
            let slot = self.slot(stream);
            assert_eq!(*slot, Seen::Nothing, "a call is never answered");
            *slot = Seen::Asked;
        }
        self.questions[self.turn] = question;
    }

    fn slot(&mut self, stream: u32) -> &mut Seen {
        &mut self.seen[stream as usize / 2 % SLOTS]
    }

    async fn calls(&mut self, calls: usize, in_flight: usize) {
        let mut begun = calls.min(in_flight);
        (0..begun).for_each(|_| self.ask());
        let mut ended = 0;
        while ended < calls {
            self.flush().await;
            assert_ne!(self.socket.read_buf(&mut self.read).await.unwrap(), 0, "closed");
            let answered = self.take_frames();
            ended += answered;
            let more = answered.min(calls - begun);
            (0..more).for_each(|_| self.ask());
            begun += more;
        }
    }

    /// Takes what has come, and tells how many calls it ended.
    fn take_frames(&mut self) -> usize {
        let read = std::mem::take(&mut self.read);
        let (mut rest, mut ended) = (&read[..], 0);
        while let Some(frame_head) = rest.get(..FRAME_HEAD) {
            let word = |at: usize| u32::from_be_bytes(frame_head[at..at + 4].try_into().unwrap());
            let end = FRAME_HEAD + (word(0) >> 8) as usize;
            let Some(payload) = rest.get(FRAME_HEAD..end) else { break };
            ended += self.take_frame(frame_head[3], frame_head[4], word(5), payload);
            rest = &rest[end..];
        }
        let done = read.len() - rest.len();
        self.read = read;
        self.read.drain(..done);
        ended
    }

    fn take_frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> usize {
        match kind {
            SETTINGS | PING if flags & ACK == 0 => {
                self.frame(kind, ACK, 0, if kind == PING { payload } else { &[] });
                0
            }
            SETTINGS | PING | WINDOW_UPDATE => 0,
            HEADERS if self.streamed => {
                assert!(flags & END_STREAM == 0 && payload[0] == STATUS_200, "the stream ends");
                0
            }
            DATA if self.streamed => self.take_streamed(payload),
            HEADERS | DATA => self.take_part(kind, flags, stream, payload),
            _ => panic!("frame {kind} on stream {stream}: {payload:?}"),
        }
    }

    fn take_part(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> usize {
        let slot = self.slot(stream);
        *slot = match *slot {
            Seen::Asked
                if kind == HEADERS && payload[0] == STATUS_200 && flags & END_STREAM == 0 =>
            {
                Seen::Head
            }
            Seen::Head if kind == DATA && payload[5..7] == RETRY => Seen::Message,
            Seen::Message if kind == HEADERS && flags & END_STREAM != 0 => Seen::Nothing,
            seen => panic!("frame {kind} after {seen:?} on stream {stream}: {payload:?}"),
        };
        usize::from(*slot == Seen::Nothing)
    }

    fn take_streamed(&mut self, payload: &[u8]) -> usize {
        self.partial.extend_from_slice(payload);
        let (mut rest, mut ended) = (&self.partial[..], 0);
        while let Some(prefix) = rest.get(..5) {
            let end = 5 + u32::from_be_bytes(prefix[1..].try_into().unwrap()) as usize;
            let Some(answer) = rest.get(5..end) else { break };
            assert!(answer[0] == DECISION && answer[2..4] == RETRY, "{answer:?}");
            ended += 1;
            rest = &rest[end..];
        }
        let done = self.partial.len() - rest.len();
        self.partial.drain(..done);
        ended
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

/// A message behind its five bytes of gRPC framing.
fn framed(message: &impl Message) -> Vec<u8> {
    let bytes = message.encode_to_vec();
    let length = u32::try_from(bytes.len()).unwrap().to_be_bytes();
    [&[0], &length[..], &bytes].concat()
}
