//! The two halves of a call.

use std::future::poll_fn;

use bytes::Bytes;
use h2::client::ResponseFuture;
use h2::{Reason, RecvStream, SendStream};
use http::HeaderMap;
use percent_encoding::percent_decode_str;

use super::CallError;
use super::frame::Frames;

/// What is sent on a call.
pub struct Sender {
    body: SendStream<Bytes>,
}

impl Sender {
    pub(super) fn new(body: SendStream<Bytes>) -> Self {
        Sender { body }
    }

    /// Hands framed messages to HTTP/2, which keeps them until the broker's window lets them go.
    pub fn send(&mut self, frames: Bytes) -> Result<(), CallError> {
        Ok(self.body.send_data(frames, false)?)
    }

    /// The same, once all that was sent before is on its way but for what one window holds:
    /// how a stream of publishes feels the broker's backpressure.
    pub async fn send_in_window(&mut self, frames: Bytes) -> Result<(), CallError> {
        self.body.reserve_capacity(frames.len());
        while self.body.capacity() < frames.len() {
            match poll_fn(|context| self.body.poll_capacity(context)).await {
                Some(granted) => granted?,
                None => return Err(CallError::Protocol("the broker ended the stream".into())),
            };
        }
        self.send(frames)
    }

    pub fn send_last(&mut self, frames: Bytes) -> Result<(), CallError> {
        Ok(self.body.send_data(frames, true)?)
    }

    /// Says that nothing more will be sent.
    pub fn finish(&mut self) -> Result<(), CallError> {
        self.send_last(Bytes::new())
    }

    /// Cancels the call, as a client does that wants no more of it.
    pub fn cancel(mut self) {
        self.body.send_reset(Reason::CANCEL);
    }
}

/// What comes back on a call.
pub struct Receiver {
    head: Option<ResponseFuture>,
    body: Option<RecvStream>,
    frames: Frames,
}

impl Receiver {
    pub(super) fn new(response: ResponseFuture) -> Self {
        Receiver { head: Some(response), body: None, frames: Frames::default() }
    }

    /// Waits for the response headers. Like [`Receiver::more`], it may be dropped half way and called again.
    pub async fn headers(&mut self) -> Result<(), CallError> {
        let Some(head) = &mut self.head else { return Ok(()) };
        let response = head.await;
        self.head = None;
        let (parts, body) = response?.into_parts();
        if parts.headers.contains_key("grpc-status") {
            ended(&parts.headers)?;
        } else if parts.status != http::StatusCode::OK {
            return Err(CallError::Protocol(format!("HTTP status {}", parts.status)));
        }
        self.body = Some(body);
        Ok(())
    }

    /// Waits for more to come in: then [`Receiver::next_ready`] has at least one message.
    /// False once the broker has ended the call with OK.
    pub async fn more(&mut self) -> Result<bool, CallError> {
        self.headers().await?;
        let Some(body) = &mut self.body else { return Ok(false) };
        match body.data().await {
            Some(chunk) => {
                let chunk = chunk?;
                body.flow_control().release_capacity(chunk.len())?;
                self.frames.push(chunk);
                Ok(true)
            }
            None => {
                if let Some(trailers) = body.trailers().await? {
                    ended(&trailers)?;
                }
                if self.frames.is_empty() {
                    Ok(false)
                } else {
                    Err(CallError::Protocol("the stream ended within a message".into()))
                }
            }
        }
    }

    /// The next message of those that have come; none where it takes a wait.
    pub fn next_ready(&mut self) -> Result<Option<Bytes>, CallError> {
        self.frames.next()
    }

    /// The next message; none once the broker has ended the call with OK.
    pub async fn next(&mut self) -> Result<Option<Bytes>, CallError> {
        loop {
            if let Some(message) = self.next_ready()? {
                return Ok(Some(message));
            }
            if !self.more().await? {
                return Ok(None);
            }
        }
    }

    /// The one message of a unary call, and its good end.
    pub(super) async fn only(&mut self) -> Result<Bytes, CallError> {
        let nothing = || CallError::Protocol("a unary call without an answer".into());
        let message = self.next().await?.ok_or_else(nothing)?;
        while self.more().await? {}
        Ok(message)
    }
}

/// What the trailers say of the end.
fn ended(trailers: &HeaderMap) -> Result<(), CallError> {
    let text = |name| trailers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    match text("grpc-status").as_deref() {
        None | Some("0") => Ok(()),
        Some(code) => Err(CallError::Status {
            code: code.parse().unwrap_or(2),
            message: percent_decode_str(&text("grpc-message").unwrap_or_default())
                .decode_utf8_lossy()
                .into_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_in_the_trailers_is_an_error_with_its_text() {
        let mut trailers = HeaderMap::new();
        assert!(ended(&trailers).is_ok());
        trailers.insert("grpc-status", "8".parse().expect("a value"));
        trailers.insert("grpc-message", "queue full: 100%25 of 5%".parse().expect("a value"));
        let error = ended(&trailers).expect_err("not OK");
        assert_eq!(error.to_string(), "RESOURCE_EXHAUSTED (8): queue full: 100% of 5%");
        assert!(error.is_refusal());
    }
}
