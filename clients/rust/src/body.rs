//! Bodies that are looked into and put together again.
use std::{
    collections::VecDeque,
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::{Buf as _, Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{
    BodyExt as _, Full,
    combinators::{BoxBody, UnsyncBoxBody},
};

/// Larger requests are sent once.
const REPLAYABLE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A body of a request that the layer can make again.
pub trait RequestBody: Body<Data = Bytes> + Sized + Send + Unpin + 'static {
    /// A body of these bytes.
    fn whole(bytes: Bytes) -> Self;

    /// A body whose first frames were read already.
    fn begun(body: Begun<Self>) -> Self;
}

/// A body whose first frames were read: they come first once more.
#[derive(Debug)]
pub struct Begun<B: Body> {
    read: VecDeque<Result<Frame<B::Data>, B::Error>>,
    rest: B,
}

/// What the layer found a request's body to be.
pub(crate) enum Request<B> {
    /// All of it, which can be sent again.
    Whole(Bytes),
    /// More than is kept.
    Large(B),
    /// Not all of it is there yet, or it failed: nobody knows how much will come.
    Open(B),
}

/// Reads a body as far as it is there, without waiting. A stream of messages must not be held up.
pub(crate) async fn read<B: RequestBody>(body: B) -> Request<B> {
    let largest = u64::try_from(REPLAYABLE_BYTES_MAX).unwrap_or(u64::MAX);
    if largest < body.size_hint().lower() {
        return Request::Large(body);
    }
    let mut begun = Begun { read: VecDeque::new(), rest: body };
    let mut size = 0_usize;
    loop {
        let frame = poll_fn(|cx| Poll::Ready(Pin::new(&mut begun.rest).poll_frame(cx))).await;
        let is_data = match &frame {
            Poll::Pending => return Request::Open(B::begun(begun)),
            Poll::Ready(None) => return Request::Whole(begun.bytes()),
            // An empty frame counts as well, so that they come to an end.
            Poll::Ready(Some(Ok(frame))) => {
                size = size.saturating_add(frame.data_ref().map_or(0, Bytes::len).max(1));
                frame.is_data()
            }
            Poll::Ready(Some(Err(_))) => false,
        };
        if let Poll::Ready(Some(frame)) = frame {
            begun.read.push_back(frame);
        }
        if !is_data {
            return Request::Open(B::begun(begun));
        }
        if REPLAYABLE_BYTES_MAX < size {
            return Request::Large(B::begun(begun));
        }
    }
}

impl<B: Body> Begun<B> {
    /// Nothing was read yet.
    pub(crate) fn untouched(rest: B) -> Begun<B> {
        Begun { read: VecDeque::new(), rest }
    }
}

impl<B: Body + Unpin> Begun<B> {
    /// Waits for the first frame that says anything, and keeps it. `None` is the end of the body.
    pub(crate) async fn first(&mut self) -> Option<&Result<Frame<B::Data>, B::Error>> {
        while self.read.is_empty() {
            let frame = poll_fn(|cx| Pin::new(&mut self.rest).poll_frame(cx)).await?;
            let data = frame.as_ref().ok().and_then(Frame::data_ref);
            if data.is_none_or(|data| 0 < data.remaining()) {
                self.read.push_back(frame);
            }
        }
        self.read.front()
    }
}

impl<B: Body<Data = Bytes>> Begun<B> {
    /// The bytes that were read.
    fn bytes(self) -> Bytes {
        let mut read = self.read.into_iter().flatten().filter_map(|it| it.into_data().ok());
        let first = read.next().unwrap_or_default();
        let mut read = read.peekable();
        if read.peek().is_none() {
            return first;
        }
        let mut bytes = BytesMut::from(first);
        read.for_each(|more| bytes.extend_from_slice(&more));
        bytes.freeze()
    }
}

impl<B: Body + Unpin> Unpin for Begun<B> {}

impl<B: Body + Unpin> Body for Begun<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        match self.read.pop_front() {
            Some(frame) => Poll::Ready(Some(frame)),
            None => Pin::new(&mut self.rest).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.read.is_empty() && self.rest.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let frames = self.read.iter().flatten().filter_map(Frame::data_ref);
        let read = frames.map(bytes::Buf::remaining).sum::<usize>();
        let read = u64::try_from(read).unwrap_or(u64::MAX);
        let rest = self.rest.size_hint();
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower().saturating_add(read));
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper.saturating_add(read));
        }
        hint
    }
}

impl RequestBody for Full<Bytes> {
    fn whole(bytes: Bytes) -> Self {
        Full::new(bytes)
    }

    fn begun(body: Begun<Self>) -> Self {
        // It has one frame, so nothing is missing.
        if body.read.is_empty() { body.rest } else { Full::new(body.bytes()) }
    }
}

impl RequestBody for tonic::body::Body {
    fn whole(bytes: Bytes) -> Self {
        tonic::body::Body::new(Full::new(bytes))
    }

    fn begun(body: Begun<Self>) -> Self {
        tonic::body::Body::new(body)
    }
}

impl<E: Send + Sync + 'static> RequestBody for BoxBody<Bytes, E> {
    fn whole(bytes: Bytes) -> Self {
        Full::new(bytes).map_err(|never| match never {}).boxed()
    }

    fn begun(body: Begun<Self>) -> Self {
        body.boxed()
    }
}

impl<E: Send + 'static> RequestBody for UnsyncBoxBody<Bytes, E> {
    fn whole(bytes: Bytes) -> Self {
        Full::new(bytes).map_err(|never| match never {}).boxed_unsync()
    }

    fn begun(body: Begun<Self>) -> Self {
        body.boxed_unsync()
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    /// Frames, of which `None` is one that is not there yet.
    struct Frames(VecDeque<Option<Frame<Bytes>>>);

    impl Body for Frames {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            match self.0.pop_front() {
                None => Poll::Ready(None),
                Some(Some(frame)) => Poll::Ready(Some(Ok(frame))),
                Some(None) => {
                    cx.waker().wake_by_ref();
                    Poll::Pending
                }
            }
        }
    }

    type Boxed = UnsyncBoxBody<Bytes, Infallible>;

    fn body(frames: &[Option<&'static str>]) -> Boxed {
        let frames = frames.iter().map(|frame| frame.map(|text| Frame::data(text.into())));
        Frames(frames.collect()).boxed_unsync()
    }

    #[tokio::test]
    async fn what_is_all_there_is_whole() {
        for (frames, text) in
            [(&[][..], ""), (&[Some("one")], "one"), (&[Some("o"), Some("n"), Some("e")], "one")]
        {
            let Request::Whole(bytes) = read(body(frames)).await else { panic!("not whole") };
            assert_eq!(bytes, text);
        }
    }

    #[tokio::test]
    async fn what_is_not_there_yet_is_not_waited_for_nor_lost() {
        let Request::Open(body) = read(body(&[Some("on"), None, Some("e")])).await else {
            panic!("not open")
        };
        assert_eq!(body.size_hint().lower(), 2);
        assert_eq!(body.collect().await.unwrap().to_bytes(), "one");
    }

    #[tokio::test]
    async fn an_empty_frame_is_no_first_one() {
        let mut begun = Begun::untouched(body(&[Some(""), None, Some("one"), Some("two")]));
        let first = begun.first().await.unwrap().as_ref().unwrap();
        assert_eq!(first.data_ref().unwrap(), "one");
        assert_eq!(begun.collect().await.unwrap().to_bytes(), "onetwo");
    }

    #[tokio::test]
    async fn trailers_cannot_be_sent_again() {
        let trailers = Frames([Some(Frame::trailers(http::HeaderMap::new()))].into());
        let Request::Open(body) = read(trailers.boxed_unsync()).await else { panic!("not open") };
        assert!(body.collect().await.unwrap().trailers().is_some());
    }

    #[tokio::test]
    async fn more_than_is_kept_is_large() {
        let full = |size| Full::from(vec![0; size]);
        let limit = REPLAYABLE_BYTES_MAX;
        assert!(matches!(read(full(limit)).await, Request::Whole(it) if it.len() == limit));
        assert!(matches!(read(full(limit + 1)).await, Request::Large(_)));

        let unknown = Frames([Some(Frame::data(vec![0; limit + 1].into()))].into());
        let Request::Large(body) = read(unknown.boxed_unsync()).await else { panic!("not large") };
        assert_eq!(body.collect().await.unwrap().to_bytes().len(), limit + 1);
    }
}
