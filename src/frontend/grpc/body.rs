use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::future::select;
use h2::RecvStream;
use http_body::Frame;
use send_wrapper::SendWrapper;

use crate::frontend::tasks::Spawner;
use crate::limits;
use crate::shard::runtime;

/// The body of a request. Tonic wants it Send; it never leaves its executor.
///
/// What a call leaves unread when it ends is read on and thrown away: HTTP/2 charges small frames that
/// nobody reads against the whole connection, so that acks which are on their way to a stream that
/// the broker has just ended would in the end cost the other streams.
pub struct RequestBody {
    /// `None` once it was read to its end.
    rest: Option<RecvStream>,
    spawner: SendWrapper<Spawner>,
}

impl RequestBody {
    pub fn new(body: RecvStream, spawner: Spawner) -> Self {
        RequestBody { rest: Some(body), spawner: SendWrapper::new(spawner) }
    }

    /// The bytes of the next frame. Its room in the windows is given back: who reads them has taken them.
    pub fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, h2::Error>>> {
        let Some(body) = &mut self.rest else { return Poll::Ready(None) };
        let bytes = ready!(poll_bytes(body, cx));
        if !matches!(bytes, Some(Ok(_))) {
            self.rest = None;
        }
        Poll::Ready(bytes)
    }
}

fn poll_bytes(body: &mut RecvStream, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, h2::Error>>> {
    let bytes = ready!(body.poll_data(cx));
    if let Some(Ok(bytes)) = &bytes {
        body.flow_control().release_capacity(bytes.len())?;
    }
    Poll::Ready(bytes)
}

impl http_body::Body for RequestBody {
    type Data = Bytes;
    type Error = h2::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
        let Some(body) = &mut self.rest else { return Poll::Ready(None) };
        let frame = match ready!(poll_bytes(body, cx)) {
            Some(bytes) => Some(bytes.map(Frame::data)),
            None => ready!(body.poll_trailers(cx)).map(|trailers| trailers.map(Frame::trailers)).transpose(),
        };
        if !matches!(&frame, Some(Ok(frame)) if frame.is_data()) {
            self.rest = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.rest.as_ref().is_none_or(RecvStream::is_end_stream)
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        if let Some(body) = self.rest.take()
            && !body.is_end_stream()
        {
            self.spawner.add(discard(body));
        }
    }
}

/// Until the client ends its side, or long enough.
async fn discard(mut body: RecvStream) {
    let to_the_end = pin!(async { while let Some(Ok(_)) = poll_fn(|cx| poll_bytes(&mut body, cx)).await {} });
    select(to_the_end, runtime::sleep(limits::DISCARD)).await;
}
