use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, SendStream};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use tonic::Status;

use crate::frontend::{Failure, FrontendCounter, FrontendCounters};

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");

/// The response of a call. Where its stream is gone, nothing is said to nobody.
///
/// ```text
///   unanswered ──head──▶ begun ──messages──▶ begun ──trailers──▶ over
///        └──a failure: head and trailers in one──▶ over
/// ```
/// Dropped before it is over it resets its stream.
pub struct Reply {
    state: State,
    counters: Arc<FrontendCounters>,
}

enum State {
    Unanswered(SendResponse<Bytes>),
    Begun(SendStream<Bytes>),
    Over,
}

impl Reply {
    pub fn new(response: SendResponse<Bytes>, counters: Arc<FrontendCounters>) -> Self {
        Reply { state: State::Unanswered(response), counters }
    }

    /// Sends the head of a response that has messages.
    pub fn begin(&mut self) {
        let mut head = Response::new(());
        head.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        self.begin_with(head);
    }

    /// The same with a head of any kind.
    pub fn begin_with(&mut self, head: Response<()>) {
        self.respond(head, false);
    }

    /// The whole of a response that is a head alone.
    pub fn end_with(&mut self, head: Response<()>) {
        self.respond(head, true);
    }

    fn respond(&mut self, head: Response<()>, is_end: bool) {
        let State::Unanswered(response) = &mut self.state else { return };
        self.state = match response.send_response(head, is_end) {
            Ok(stream) if !is_end => State::Begun(stream),
            _ => State::Over,
        };
    }

    /// Whether nobody waits for the response any more.
    pub fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.state {
            State::Unanswered(response) => response.poll_reset(cx).map(drop),
            State::Begun(stream) => stream.poll_reset(cx).map(drop),
            State::Over => Poll::Ready(()),
        }
    }

    /// Until the next bytes may be sent: within windows, and a bound of what may wait for the socket. To be asked by
    /// those who have some, since room that is kept is no other stream's. `None`: nobody waits for them.
    pub fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<Option<()>> {
        let State::Begun(stream) = &mut self.state else { return Poll::Ready(None) };
        stream.reserve_capacity(1);
        loop {
            if stream.capacity() > 0 {
                return Poll::Ready(Some(()));
            }
            match stream.poll_capacity(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(Ok(_))) => {}
                Poll::Ready(Some(Err(_)) | None) => return Poll::Ready(None),
            }
        }
    }

    /// Sends bytes as far as windows let them, in the end all of them.
    pub fn send(&mut self, bytes: Bytes) {
        if let State::Begun(stream) = &mut self.state
            && stream.send_data(bytes, false).is_err()
        {
            self.state = State::Over;
        }
    }

    /// The whole of a response: one message, framed.
    pub fn answer(&mut self, message: Bytes) {
        self.begin();
        self.send(message);
        self.finish();
    }

    /// A few words to what is no gRPC client.
    pub fn say(&mut self, status: StatusCode, text: &'static str) {
        let mut head = Response::new(());
        *head.status_mut() = status;
        self.begin_with(head);
        if let State::Begun(mut stream) = std::mem::replace(&mut self.state, State::Over) {
            // Where it is reset already, nobody waits for them.
            let _ = stream.send_data(Bytes::from_static(text.as_bytes()), true);
        }
    }

    /// All went well.
    pub fn finish(&mut self) {
        let mut trailers = HeaderMap::with_capacity(1);
        trailers.insert(GRPC_STATUS, HeaderValue::from_static("0"));
        self.end(trailers);
    }

    /// Ends the response, after what was sent before.
    pub fn end(&mut self, trailers: HeaderMap) {
        if let State::Begun(mut stream) = std::mem::replace(&mut self.state, State::Over) {
            // Where it is reset already, nobody waits for them.
            let _ = stream.send_trailers(trailers);
        }
    }

    /// The call fails, which is counted.
    pub fn fail(&mut self, failure: Failure) {
        self.count_failure();
        let status = Status::from(failure);
        match &self.state {
            State::Unanswered(_) => self.end_with(status.into_http()),
            State::Begun(_) => {
                let mut trailers = HeaderMap::new();
                match status.add_header(&mut trailers) {
                    Ok(()) => self.end(trailers),
                    Err(_) => self.reset(),
                }
            }
            State::Over => {}
        }
    }

    pub fn count_failure(&self) {
        self.counters.count(FrontendCounter::CallsFailed);
    }

    /// The failure of a call whose handler panicked, which is counted.
    pub fn panicked(&self) -> Failure {
        self.counters.count(FrontendCounter::Panics);
        Failure::Internal
    }

    /// What was begun cannot be ended otherwise.
    pub fn reset(&mut self) {
        if let State::Begun(mut stream) = std::mem::replace(&mut self.state, State::Over) {
            stream.send_reset(Reason::INTERNAL_ERROR);
        }
    }
}
