//! Answers that are ready together leave together.
use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Lets every other task that is ready go first, once before each write.
///
/// tokio's runtime runs whoever was woken last, and each answer wakes its connection: so the
/// connection would run after each call, and write answers one by one. A system call costs as much
/// as the rest of a call; a turn of the scheduler costs next to nothing.
#[derive(Debug)]
pub struct Batching<IO> {
    io: IO,
    /// The others have had their turn since the last write.
    waited: bool,
}

impl<IO> Batching<IO> {
    /// Batches what is written to `io`.
    pub fn over(io: IO) -> Batching<IO> {
        Batching { io, waited: false }
    }

    fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.waited {
            return Poll::Ready(());
        }
        self.waited = true;
        // Woken while it runs, a task goes to the end of the queue.
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// A write that the socket did not take yet waits for the socket alone.
    fn written(&mut self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        self.waited = written.is_pending();
        written
    }
}

impl<IO: AsyncWrite + Unpin> AsyncWrite for Batching<IO> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_turn(cx));
        let written = Pin::new(&mut self.io).poll_write(cx, bytes);
        self.written(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_turn(cx));
        let written = Pin::new(&mut self.io).poll_write_vectored(cx, slices);
        self.written(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

impl<IO: AsyncRead + Unpin> AsyncRead for Batching<IO> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buf)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
        },
    };

    use http::Response;
    use hyper::{server::conn::http2, service::service_fn};
    use hyper_util::rt::{TokioExecutor, TokioIo};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
    use tonic::body::Body;

    use super::*;

    /// Counts writes that reach the socket.
    struct Counting<IO>(IO, Arc<AtomicUsize>);

    impl<IO: AsyncWrite + Unpin> AsyncWrite for Counting<IO> {
        fn poll_write(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            self.1.fetch_add(1, Ordering::SeqCst);
            Pin::new(&mut self.0).poll_write(cx, bytes)
        }

        fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.0).poll_flush(cx)
        }

        fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.0).poll_shutdown(cx)
        }
    }

    impl<IO: AsyncRead + Unpin> AsyncRead for Counting<IO> {
        fn poll_read(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            buf: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            Pin::new(&mut self.0).poll_read(cx, buf)
        }
    }

    const CALLS: usize = 100;
    /// Without batching, each answer is a write. More than today's two or three would be seen long
    /// before there is one for every twenty answers, which is the limit that the design goes by.
    const WRITES_MAX: usize = 5;

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn answers_that_are_ready_together_leave_together() {
        let (mut client, server) = duplex(1 << 20);
        let writes = Arc::new(AtomicUsize::new(0));
        let io = Batching::over(Counting(server, Arc::clone(&writes)));
        let answer = service_fn(|_| async { Ok::<_, Infallible>(Response::new(Body::empty())) });
        let connection =
            http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(io), answer);
        tokio::spawn(connection);

        client.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
        // The server's SETTINGS, and that it has seen ours.
        read_frames(&mut client, |kind, flags| kind == 4 && flags == 1, 1).await;
        writes.store(0, Ordering::SeqCst);

        // GET http://a/, each on a stream of its own.
        let head = b"\x82\x86\x84\x41\x01a";
        let request = |call: usize| {
            let stream = u8::try_from(2 * call + 1).unwrap();
            [&[0, 0, 6, 1, 5, 0, 0, 0, stream][..], head].concat()
        };
        let requests: Vec<u8> = (0..CALLS).flat_map(request).collect();
        client.write_all(&requests).await.unwrap();
        read_frames(&mut client, |kind, flags| kind == 1 && flags & 1 == 1, CALLS).await;
        let writes = writes.load(Ordering::SeqCst);
        assert!(writes <= WRITES_MAX, "{writes} writes for {CALLS} answers");
    }

    /// Reads until so many frames were `wanted`, by their kind and flags.
    async fn read_frames(
        from: &mut (impl AsyncRead + Unpin),
        wanted: fn(u8, u8) -> bool,
        mut count: usize,
    ) {
        while 0 < count {
            let mut head = [0; 9];
            from.read_exact(&mut head).await.unwrap();
            let [_, a, b, kind, flags, ..] = head;
            let mut payload = vec![0; usize::from(u16::from_be_bytes([a, b]))];
            from.read_exact(&mut payload).await.unwrap();
            count -= usize::from(wanted(kind, flags));
        }
    }

    #[tokio::test]
    async fn a_slow_reader_gets_everything() {
        let (mut reader, socket) = duplex(64);
        let bytes: Vec<u8> = (0..10_000).map(|place: u32| place.to_be_bytes()[3]).collect();
        let written = bytes.clone();
        tokio::spawn(async move {
            let mut io = Batching::over(socket);
            io.write_all(&written).await.unwrap();
            io.shutdown().await.unwrap();
        });
        let mut read = Vec::new();
        reader.read_to_end(&mut read).await.unwrap();
        assert!(read == bytes);
    }
}
