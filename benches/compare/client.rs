//! A closed loop: a call begins as soon as one before it is answered, so the load goes as fast as the server does.
use std::{fmt, net::SocketAddr};

use futures_util::future::join_all;
use retryd::wire::pb;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::{
    frames::{Answer, Frames},
    question,
};

/// Connections, and calls in flight on each.
#[derive(Clone, Copy)]
pub(crate) struct Load {
    pub(crate) connections: usize,
    pub(crate) in_flight: usize,
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} connections x {}", self.connections, self.in_flight)
    }
}

/// What bytes go over.
pub(crate) type Socket = Box<dyn Stream>;

pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin {}

impl<T: AsyncRead + AsyncWrite + Unpin> Stream for T {}

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
        questions: &[pb::RetryContext],
    ) -> Client {
        let mut sockets: Vec<Socket> = Vec::new();
        for _ in 0..load.connections {
            let socket = TcpStream::connect(to).await.unwrap();
            socket.set_nodelay(true).unwrap();
            sockets.push(Box::new(socket));
        }
        Client::over(sockets, load.in_flight, streamed, questions).await
    }

    /// The same, over these connections.
    pub(crate) async fn over(
        sockets: Vec<Socket>,
        in_flight: usize,
        streamed: bool,
        questions: &[pb::RetryContext],
    ) -> Client {
        let all = sockets.len();
        let mut connections = Vec::new();
        for (place, socket) in sockets.into_iter().enumerate() {
            let mut questions: Vec<Vec<u8>> = questions.iter().map(question::framed).collect();
            let turn = place * questions.len() / all;
            questions.rotate_left(turn);
            connections.push(Connection::open(socket, streamed, questions).await);
        }
        Client { connections, in_flight }
    }

    /// Makes `calls`, spread over the connections. All must be answered with RETRY.
    pub(crate) async fn calls(&mut self, calls: usize) {
        let (each, in_flight) = (calls / self.connections.len(), self.in_flight);
        join_all(self.connections.iter_mut().map(|it| it.calls(each, in_flight))).await;
    }
}

struct Connection {
    socket: Socket,
    frames: Frames,
    questions: Vec<Vec<u8>>,
    turn: usize,
}

impl Connection {
    async fn open(socket: Socket, streamed: bool, questions: Vec<Vec<u8>>) -> Connection {
        let frames = Frames::new(streamed);
        let mut connection = Connection { socket, frames, questions, turn: 0 };
        connection.flush().await;
        connection
    }

    async fn flush(&mut self) {
        self.socket.write_all(&self.frames.out).await.unwrap();
        self.socket.flush().await.unwrap();
        self.frames.out.clear();
    }

    async fn calls(&mut self, calls: usize, in_flight: usize) {
        let (mut begun, mut ended) = (0, 0);
        while ended < calls {
            while begun < calls && self.frames.in_flight() < in_flight && self.frames.has_room() {
                self.turn = (self.turn + 1) % self.questions.len();
                self.frames.ask(&self.questions[self.turn]);
                begun += 1;
            }
            self.flush().await;
            assert_ne!(self.socket.read_buf(&mut self.frames.read).await.unwrap(), 0, "closed");
            let mut right = true;
            self.frames.take(|_, answer| {
                ended += 1;
                right &= answer == Answer::Retry;
            });
            assert!(right, "not RETRY: {:?}", self.frames.odd);
        }
    }
}
