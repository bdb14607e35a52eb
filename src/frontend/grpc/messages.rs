use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use futures_util::Stream;

use super::{PREFIX, RequestBody};
use crate::frontend::Failure;
use crate::limits;

/// The messages of a request, as they come.
///
/// One that lies within a frame of HTTP/2 is not copied. After an error, and when asked to, the rest of the body is
/// thrown away.
pub struct Messages {
    body: RequestBody,
    /// What is left of the last frame.
    frame: Bytes,
    /// The beginning of a message that spans frames, with its prefix.
    begun: BytesMut,
    is_gone: bool,
    is_broken: bool,
}

impl Messages {
    pub fn new(body: RequestBody) -> Self {
        Messages { body, frame: Bytes::new(), begun: BytesMut::new(), is_gone: false, is_broken: false }
    }

    /// The stream was reset, or its connection has ended: what came before has been read.
    pub fn is_gone(&self) -> bool {
        self.is_gone
    }

    /// From now on there are no more messages, whatever comes.
    pub fn give_up(&mut self) {
        self.is_broken = true;
        (self.frame, self.begun) = Default::default();
    }

    /// The next message, without its prefix; `None` at the end of the body, whoever ended it.
    pub fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Failure>>> {
        loop {
            match self.next() {
                Ok(Some(message)) => return Poll::Ready(Some(Ok(message))),
                Ok(None) => {}
                Err(failure) => {
                    self.give_up();
                    return Poll::Ready(Some(Err(failure)));
                }
            }
            match ready!(self.body.poll_bytes(cx)) {
                Some(Ok(_)) if self.is_broken => {}
                Some(Ok(frame)) => self.frame = frame,
                Some(Err(_)) => {
                    self.is_gone = true;
                    return Poll::Ready(None);
                }
                None if self.begun.is_empty() => return Poll::Ready(None),
                None => {
                    self.give_up();
                    let reason = "the request ends in the midst of a message";
                    return Poll::Ready(Some(Err(Failure::Framing { reason })));
                }
            }
        }
    }

    /// A message that is there as a whole. Else nothing is left of the frame.
    fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        if self.begun.is_empty()
            && let Some(length) = length(&self.frame)?
            && self.frame.len() >= PREFIX + length
        {
            self.frame.advance(PREFIX);
            return Ok(Some(self.frame.split_to(length)));
        }
        while !self.frame.is_empty() {
            let whole = PREFIX + length(&self.begun)?.unwrap_or(0);
            let missing = (whole - self.begun.len()).min(self.frame.len());
            self.begun.extend_from_slice(&self.frame.split_to(missing));
            if let Some(length) = length(&self.begun)?
                && self.begun.len() == PREFIX + length
            {
                let mut message = std::mem::take(&mut self.begun).freeze();
                message.advance(PREFIX);
                return Ok(Some(message));
            }
        }
        Ok(None)
    }
}

impl Stream for Messages {
    type Item = Result<Bytes, Failure>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_message(cx)
    }
}

/// What the prefix says, once it is there.
fn length(bytes: &[u8]) -> Result<Option<usize>, Failure> {
    let Some((&[flag, ref length @ ..], _)) = bytes.split_first_chunk::<PREFIX>() else { return Ok(None) };
    let length = u32::from_be_bytes(*length) as usize;
    let framing = |reason| Err(Failure::Framing { reason });
    match flag {
        0 if length <= limits::REQUEST_BYTES => Ok(Some(length)),
        0 => Err(Failure::TooLarge { what: "the request", bytes: length, limit: limits::REQUEST_BYTES }),
        1 => framing("a message is marked as compressed, and the call names no grpc-encoding"),
        _ => framing("a message has an unknown flag; know 0 and 1"),
    }
}

/// Unreadable protobuf is the caller's mistake, and said so.
pub fn decode<T: prost::Message + Default>(message: Bytes) -> Result<T, Failure> {
    T::decode(message)
        .map_err(|error| Failure::invalid("request", format!("is no readable protobuf: {error}")))
}

/// A message with its prefix.
pub fn frame(message: &impl prost::Message) -> Bytes {
    let mut frame = BytesMut::with_capacity(PREFIX + message.encoded_len());
    put_framed(&mut frame, |frame| message.encode_raw(frame));
    frame.freeze()
}

/// Appends what `put` appends, as one message with its prefix.
pub fn put_framed<R>(out: &mut BytesMut, put: impl FnOnce(&mut BytesMut) -> R) -> R {
    let begin = out.len();
    out.put_bytes(0, PREFIX);
    let result = put(out);
    let length = (out.len() - begin - PREFIX) as u32;
    out[begin + 1..begin + PREFIX].copy_from_slice(&length.to_be_bytes());
    result
}
