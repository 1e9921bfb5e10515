//! The first bytes of a connection.
use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::oneshot,
};

/// What every HTTP/2 client sends first (RFC 9113, section 3.4); the head of a SETTINGS follows.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const SETTINGS_HEAD: usize = 9;

/// Tells when the greeting has been read, and ends the reading at the first byte that is not it:
/// HTTP/1.1 and garbage get no answer.
pub(super) struct Greeting<IO> {
    io: IO,
    read: usize,
    greeted: Option<oneshot::Sender<()>>,
}

impl<IO> Greeting<IO> {
    pub(super) fn expect(io: IO) -> (Greeting<IO>, oneshot::Receiver<()>) {
        let (greeted, heard) = oneshot::channel();
        (Greeting { io, read: 0, greeted: Some(greeted) }, heard)
    }

    fn hear(&mut self, bytes: &[u8]) -> io::Result<()> {
        let expected = PREFACE.get(self.read..).unwrap_or_default();
        if expected.iter().zip(bytes).any(|(expected, byte)| expected != byte) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "not HTTP/2"));
        }
        self.read += bytes.len();
        if PREFACE.len() + SETTINGS_HEAD <= self.read
            && let Some(greeted) = self.greeted.take()
        {
            greeted.send(()).ok();
        }
        Ok(())
    }
}

impl<IO: AsyncRead + Unpin> AsyncRead for Greeting<IO> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.io).poll_read(cx, buf))?;
        if self.greeted.is_some() {
            self.hear(buf.filled().get(before..).unwrap_or_default())?;
        }
        Poll::Ready(Ok(()))
    }
}

impl<IO: AsyncWrite + Unpin> AsyncWrite for Greeting<IO> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, slices)
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
