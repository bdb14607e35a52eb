use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use futures_util::Stream;

use super::{PREFIX, RequestBody};
use crate::frontend::Failure;
use crate::limits;

/// The messages of a request, as they come. After an error the rest of the body is thrown away.
pub struct Messages {
    body: RequestBody,
    frames: Frames,
    is_gone: bool,
    is_broken: bool,
}

impl Messages {
    pub fn new(body: RequestBody) -> Self {
        Messages { body, frames: Frames::default(), is_gone: false, is_broken: false }
    }

    /// The stream was reset, or its connection has ended: what came before has been read.
    pub fn is_gone(&self) -> bool {
        self.is_gone
    }

    /// From now on there are no more messages, whatever comes.
    pub fn give_up(&mut self) {
        self.is_broken = true;
        self.frames = Frames::default();
    }

    /// The next message, without its prefix; `None` at the end of the body, whoever ended it.
    pub fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Failure>>> {
        self.poll_with(cx, Frames::next)
    }

    /// What `read` makes of the next message: where that lies within one frame it is not even counted as a reference.
    pub fn poll_read<R>(
        &mut self,
        cx: &mut Context<'_>,
        mut read: impl FnMut(&[u8]) -> Result<R, Failure>,
    ) -> Poll<Option<Result<R, Failure>>> {
        self.poll_with(cx, |frames| frames.read(&mut read))
    }

    fn poll_with<R>(
        &mut self,
        cx: &mut Context<'_>,
        mut next: impl FnMut(&mut Frames) -> Result<Option<R>, Failure>,
    ) -> Poll<Option<Result<R, Failure>>> {
        loop {
            match next(&mut self.frames) {
                Ok(Some(message)) => return Poll::Ready(Some(Ok(message))),
                Ok(None) => {}
                Err(failure) => {
                    self.give_up();
                    return Poll::Ready(Some(Err(failure)));
                }
            }
            match ready!(self.body.poll_bytes(cx)) {
                Some(Ok(_)) if self.is_broken => {}
                Some(Ok(frame)) => self.frames.last = frame,
                Some(Err(_)) => {
                    self.is_gone = true;
                    return Poll::Ready(None);
                }
                None if self.frames.is_empty() => return Poll::Ready(None),
                None => {
                    self.give_up();
                    let reason = "the request ends in the midst of a message";
                    return Poll::Ready(Some(Err(Failure::Framing { reason })));
                }
            }
        }
    }
}

impl Stream for Messages {
    type Item = Result<Bytes, Failure>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_message(cx)
    }
}

/// What has come in frames of HTTP/2, which know nothing of messages. A message within one frame is not copied.
#[derive(Default)]
struct Frames {
    /// What is left of the last frame.
    last: Bytes,
    /// The beginning of a message that spans frames, with its prefix.
    begun: BytesMut,
}

impl Frames {
    fn is_empty(&self) -> bool {
        self.last.is_empty() && self.begun.is_empty()
    }

    /// The same with what `read` makes of it.
    fn read<R>(&mut self, read: impl FnOnce(&[u8]) -> Result<R, Failure>) -> Result<Option<R>, Failure> {
        if self.begun.is_empty()
            && let Some(length) = length(&self.last)?
            && let Some(message) = self.last.get(PREFIX..PREFIX + length)
        {
            let made = read(message)?;
            self.last.advance(PREFIX + length);
            return Ok(Some(made));
        }
        self.next()?.map(|message| read(&message)).transpose()
    }

    /// A message that is there as a whole. Else nothing is left of the last frame.
    fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        if self.begun.is_empty()
            && let Some(length) = length(&self.last)?
            && self.last.len() >= PREFIX + length
        {
            self.last.advance(PREFIX);
            return Ok(Some(self.last.split_to(length)));
        }
        while !self.last.is_empty() {
            let whole = PREFIX + length(&self.begun)?.unwrap_or(0);
            let missing = (whole - self.begun.len()).min(self.last.len());
            self.begun.extend_from_slice(&self.last.split_to(missing));
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

/// A message as the contract has it.
pub fn decode<T: prost::Message + Default>(message: Bytes) -> Result<T, Failure> {
    T::decode(message).map_err(Failure::unreadable)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(frames: impl IntoIterator<Item = Bytes>) -> Result<Vec<Bytes>, Failure> {
        let (mut state, mut messages) = (Frames::default(), Vec::new());
        for frame in frames {
            state.last = frame;
            while let Some(message) = state.next()? {
                messages.push(message);
            }
            assert!(state.last.is_empty(), "a frame is taken as a whole");
        }
        Ok(messages)
    }

    fn body() -> Bytes {
        let mut body = BytesMut::new();
        for text in ["one", "", "three", "", ""] {
            put_framed(&mut body, |out| out.extend_from_slice(text.as_bytes()));
        }
        body.freeze()
    }

    #[test]
    fn messages_are_found_however_they_are_cut() {
        let body = body();
        for size in 1..=body.len() {
            for offset in 0..size {
                let (first, rest) = (body.slice(..offset), body.slice(offset..));
                let frames = rest.chunks(size).map(Bytes::copy_from_slice);
                let messages = messages([first].into_iter().chain(frames)).expect("they are well framed");
                assert_eq!(messages, ["one", "", "three", "", ""], "{offset}, then {size} bytes a frame");
            }
        }
    }

    #[test]
    fn a_message_within_a_frame_is_not_copied() {
        let body = body();
        let messages = messages([body.clone()]).expect("they are well framed");
        assert_eq!(messages[2].as_ptr(), body[5 + 3 + 5 + 5..].as_ptr());
    }

    #[test]
    fn a_message_that_is_cut_is_not_whole() {
        let body = body();
        let mut state = Frames { last: body.slice(..7), ..Default::default() };
        assert_eq!(state.next(), Ok(None));
        assert!(!state.is_empty());
    }

    #[test]
    fn prefixes_say_what_cannot_be_read() {
        let prefix = |flag: u8, length: u32| {
            let mut bytes = BytesMut::new();
            bytes.put_u8(flag);
            bytes.put_u32(length);
            messages(bytes.chunks(2).map(Bytes::copy_from_slice))
        };
        let limit = limits::REQUEST_BYTES;
        assert_eq!(prefix(0, limit as u32), Ok(vec![]));
        let too_large = Failure::TooLarge { what: "the request", bytes: limit + 1, limit };
        assert_eq!(prefix(0, limit as u32 + 1), Err(too_large));
        for flag in [1, 2, 255] {
            assert!(matches!(prefix(flag, 0), Err(Failure::Framing { .. })), "{flag}");
        }
    }
}
