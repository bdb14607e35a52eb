use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;

use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use http::{HeaderValue, Response};
use http_body::{Body as _, Frame};
use tonic::Status;
use tonic::body::Body;

use super::{Deadline, Ending, Reply, guarded};
use crate::frontend::Failure;

/// Answers a call with what a service of tonic's says to it.
pub async fn answer(
    mut reply: Reply,
    mut deadline: Option<Deadline>,
    service: LocalBoxFuture<'static, Response<Body>>,
) {
    let response = guarded(&mut reply, &mut deadline, async { Ok(service.await) }).await;
    let result = match response {
        Ok(response) => send(&mut reply, &mut deadline, respell(response)).await,
        Err(ending) => Err(ending),
    };
    if let Err(Ending::Failed(failure)) = result {
        reply.fail(failure);
    }
}

async fn send(
    reply: &mut Reply,
    deadline: &mut Option<Deadline>,
    response: Response<Body>,
) -> Result<(), Ending> {
    if response.headers().get("grpc-status").is_some_and(|status| status != "0") {
        reply.count_failure();
    }
    let (head, body) = response.into_parts();
    let head = Response::from_parts(head, ());
    if body.is_end_stream() {
        reply.end_with(head);
        return Ok(());
    }
    reply.begin_with(head);
    let mut body = pin!(body);
    while let Some(frame) = guarded(reply, deadline, next(body.as_mut())).await? {
        match frame.into_data() {
            Ok(bytes) => {
                poll_fn(|cx| match reply.poll_room(cx) {
                    Poll::Pending => match deadline {
                        Some(deadline) => deadline.poll(cx).map(|()| Err(Failure::Deadline.into())),
                        None => Poll::Pending,
                    },
                    Poll::Ready(None) => Poll::Ready(Err(Ending::Gone)),
                    Poll::Ready(Some(())) => Poll::Ready(Ok(())),
                })
                .await?;
                reply.send(bytes);
            }
            Err(frame) => {
                if let Ok(trailers) = frame.into_trailers() {
                    reply.end(trailers);
                    return Ok(());
                }
            }
        }
    }
    // It has no trailers, as nothing of gRPC's.
    reply.finish();
    Ok(())
}

async fn next(mut body: Pin<&mut Body>) -> Result<Option<Frame<Bytes>>, Failure> {
    let frame: Option<Result<_, Status>> = poll_fn(|cx| body.as_mut().poll_frame(cx)).await;
    frame.transpose().map_err(|_| Failure::Internal)
}

/// One code for all that is too large: tonic calls a request over its limit OUT_OF_RANGE (11).
fn respell<B>(mut response: Response<B>) -> Response<B> {
    if let Some(status) = response.headers_mut().get_mut("grpc-status")
        && status == "11"
    {
        *status = HeaderValue::from_static("8");
    }
    response
}
