//! Around each call: its deadline, its panic, and what is no gRPC at all.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::{Either, LocalBoxFuture, select};
use futures_util::{FutureExt, pin_mut};
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tonic::Status;

use super::Failure;
use super::counters::{FrontendCounter, FrontendCounters};
use super::request::{Deadline, RequestBody, Spawn};
use crate::shard::runtime::{self, Sleep};

/// The services of one connection, whatever they are: a request in, a response out.
pub trait Services {
    fn route(&self, request: Request<RequestBody>) -> LocalBoxFuture<'static, Response<tonic::body::Body>>;
}

/// Answers one request, whatever it is.
pub async fn answer(
    services: &Rc<dyn Services>,
    counters: &Arc<FrontendCounters>,
    spawn: Spawn,
    request: Request<Incoming>,
) -> Response<CallBody> {
    let mut request = request.map(|body| RequestBody::new(body, spawn));
    if request.method() != Method::POST || !is_grpc(request.headers()) {
        return plain(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "this is a gRPC server; send POST with content-type application/grpc\n",
        );
    }
    let deadline = match timeout(request.headers()) {
        Ok(timeout) => timeout.and_then(|timeout| Instant::now().checked_add(timeout)),
        Err(failure) => return failed(counters, failure),
    };
    if let Some(deadline) = deadline {
        request.extensions_mut().insert(Deadline(deadline));
    }
    let call = AssertUnwindSafe(async { services.route(request).await }).catch_unwind();
    pin_mut!(call);
    let (result, deadline) = match deadline.map(runtime::sleep_until) {
        None => (call.await, None),
        Some(sleep) => match select(call, sleep).await {
            Either::Left((result, sleep)) => (result, Some(sleep)),
            Either::Right(_) => return failed(counters, Failure::Deadline),
        },
    };
    match result {
        Ok(response) => {
            if let Some(status) = response.headers().get("grpc-status")
                && status != "0"
            {
                counters.count(FrontendCounter::CallsFailed);
            }
            let counters = counters.clone();
            respell(response).map(|body| CallBody {
                inner: Inner::Call(body),
                deadline,
                counters: Some(counters),
            })
        }
        Err(_) => {
            counters.count(FrontendCounter::Panics);
            failed(counters, Failure::Internal)
        }
    }
}

/// One code for all that is too large: tonic calls a request over its limit OUT_OF_RANGE (11).
fn respell<B>(mut response: Response<B>) -> Response<B> {
    if let Some(status) = response.headers_mut().get_mut("grpc-status")
        && status == "11"
    {
        *status = http::HeaderValue::from_static("8");
    }
    response
}

fn is_grpc(headers: &HeaderMap) -> bool {
    headers.get(header::CONTENT_TYPE).is_some_and(|value| value.as_bytes().starts_with(b"application/grpc"))
}

fn failed(counters: &FrontendCounters, failure: Failure) -> Response<CallBody> {
    counters.count(FrontendCounter::CallsFailed);
    Status::from(failure).into_http::<tonic::body::Body>().map(CallBody::finished)
}

fn plain(status: StatusCode, text: &'static str) -> Response<CallBody> {
    let mut response = Response::new(CallBody::finished(tonic::body::Body::new(PlainText(Some(text)))));
    *response.status_mut() = status;
    response
}

/// The deadline that the caller set.
fn timeout(headers: &HeaderMap) -> Result<Option<Duration>, Failure> {
    let Some(value) = headers.get("grpc-timeout") else { return Ok(None) };
    let malformed =
        || Failure::invalid("grpc-timeout", "is malformed; give 1 to 8 digits and one of H M S m u n");
    let text = value.to_str().map_err(|_| malformed())?;
    let (digits, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(malformed)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(malformed());
    }
    let count: u64 = digits.parse().map_err(|_| malformed())?;
    let timeout = match unit {
        "H" => Duration::from_secs(count * 3600),
        "M" => Duration::from_secs(count * 60),
        "S" => Duration::from_secs(count),
        "m" => Duration::from_millis(count),
        "u" => Duration::from_micros(count),
        "n" => Duration::from_nanos(count),
        _ => return Err(malformed()),
    };
    Ok(Some(timeout))
}

/// A response's body: ends at the call's deadline, and turns a panic into a status.
pub struct CallBody {
    inner: Inner,
    deadline: Option<Sleep>,
    counters: Option<Arc<FrontendCounters>>,
}

enum Inner {
    Call(tonic::body::Body),
    Over,
}

impl CallBody {
    fn finished(body: tonic::body::Body) -> Self {
        CallBody { inner: Inner::Call(body), deadline: None, counters: None }
    }

    /// Drops the call, which is leaving where it is a Subscribe stream, and says why.
    fn end(&mut self, failure: Failure) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        self.inner = Inner::Over;
        if let Some(counters) = &self.counters {
            counters.count(FrontendCounter::CallsFailed);
        }
        let mut trailers = HeaderMap::new();
        match Status::from(failure).add_header(&mut trailers) {
            Ok(()) => Poll::Ready(Some(Ok(Frame::trailers(trailers)))),
            Err(status) => Poll::Ready(Some(Err(status))),
        }
    }
}

impl Body for CallBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = &mut *self;
        let Inner::Call(body) = &mut this.inner else { return Poll::Ready(None) };
        if let Some(deadline) = &mut this.deadline
            && Pin::new(deadline).poll(cx).is_ready()
        {
            return this.end(Failure::Deadline);
        }
        match catch_unwind(AssertUnwindSafe(|| Pin::new(body).poll_frame(cx))) {
            Ok(frame) => frame,
            Err(_) => {
                if let Some(counters) = &this.counters {
                    counters.count(FrontendCounter::Panics);
                }
                this.end(Failure::Internal)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.inner {
            Inner::Call(body) => body.is_end_stream(),
            Inner::Over => true,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.inner {
            Inner::Call(body) => body.size_hint(),
            Inner::Over => SizeHint::with_exact(0),
        }
    }
}

/// A few words for what is no gRPC client.
struct PlainText(Option<&'static str>);

impl Body for PlainText {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        Poll::Ready(self.0.take().map(|text| Ok(Frame::data(Bytes::from_static(text.as_bytes())))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Option<Duration>, Failure> {
        let mut headers = HeaderMap::new();
        headers.insert("grpc-timeout", text.parse().expect("a header value"));
        timeout(&headers)
    }

    #[test]
    fn timeouts_have_a_number_and_a_unit() {
        assert_eq!(timeout(&HeaderMap::new()), Ok(None));
        assert_eq!(parse("1S"), Ok(Some(Duration::from_secs(1))));
        assert_eq!(parse("99999999H"), Ok(Some(Duration::from_secs(99_999_999 * 3600))));
        assert_eq!(parse("250m"), Ok(Some(Duration::from_millis(250))));
        for malformed in ["", "S", "1", "1 S", "-1S", "1x", "123456789S", "1.5S", "+1S"] {
            assert!(parse(malformed).is_err(), "{malformed:?}");
        }
    }
}
