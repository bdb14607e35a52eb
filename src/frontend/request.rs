use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use futures_util::future::{LocalBoxFuture, select};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use send_wrapper::SendWrapper;

use crate::limits;
use crate::shard::runtime;

/// Puts a task among those of the connection.
pub type Spawn = Rc<dyn Fn(LocalBoxFuture<'static, ()>)>;

/// When the caller wants its call to be over: among the extensions of its request, for the calls that do more than wait
/// for their response side.
#[derive(Debug, Clone, Copy)]
pub struct Deadline(pub Instant);

/// The body of a request, as services read it. Tonic wants it Send; it never leaves its executor.
///
/// What a call leaves unread when it ends is read on and thrown away: HTTP/2 charges small frames that
/// nobody reads against the whole connection, so that acks which are on their way to a stream that
/// the broker has just ended would in the end cost the other streams.
pub struct RequestBody {
    /// `None` once it was read to its end.
    rest: Option<Incoming>,
    spawn: SendWrapper<Spawn>,
}

impl RequestBody {
    pub fn new(body: Incoming, spawn: Spawn) -> Self {
        RequestBody { rest: Some(body), spawn: SendWrapper::new(spawn) }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some(body) = &mut self.rest else { return Poll::Ready(None) };
        let frame = Pin::new(body).poll_frame(cx);
        if let Poll::Ready(None | Some(Err(_))) = &frame {
            self.rest = None;
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.rest.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.rest.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        if let Some(body) = self.rest.take()
            && !body.is_end_stream()
        {
            (self.spawn)(Box::pin(discard(body)));
        }
    }
}

/// Until the client ends its side, or long enough.
async fn discard(mut body: Incoming) {
    let to_the_end =
        pin!(async { while let Some(Ok(_)) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {} });
    select(to_the_end, runtime::sleep(limits::DISCARD)).await;
}
