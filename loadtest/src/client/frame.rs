//! gRPC's framing: a flag byte, a length in four bytes, the message.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use prost::Message;

use super::CallError;

const HEADER: usize = 5;
/// Longest message that is read; what a broker may send is bounded at 4 MiB.
const LONGEST: usize = 16 * 1024 * 1024;

/// One message with its frame header.
pub fn frame(message: &impl Message) -> Bytes {
    let mut out = BytesMut::with_capacity(HEADER + message.encoded_len());
    frame_into(message, &mut out);
    out.freeze()
}

/// Appends one message with its frame header.
pub fn frame_into(message: &impl Message, out: &mut BytesMut) {
    out.put_u8(0);
    out.put_u32(message.encoded_len() as u32);
    message.encode_raw(out);
}

/// Cuts what comes in into messages.
#[derive(Default)]
pub struct Frames {
    /// What has come and is not yet cut: whole messages, and perhaps the beginning of one.
    rest: Bytes,
}

impl Frames {
    pub fn push(&mut self, chunk: Bytes) {
        if self.rest.is_empty() {
            self.rest = chunk;
        } else {
            let mut joined = BytesMut::with_capacity(self.rest.len() + chunk.len());
            joined.put(std::mem::take(&mut self.rest));
            joined.put(chunk);
            self.rest = joined.freeze();
        }
    }

    /// The next whole message; none where more must come first.
    pub fn next(&mut self) -> Result<Option<Bytes>, CallError> {
        if self.rest.len() < HEADER {
            return Ok(None);
        }
        let mut header = &self.rest[..HEADER];
        let flag = header.get_u8();
        let length = header.get_u32() as usize;
        if flag != 0 || length > LONGEST {
            return Err(CallError::Protocol(format!("frame with flag {flag} of {length} bytes")));
        }
        if self.rest.len() < HEADER + length {
            return Ok(None);
        }
        self.rest.advance(HEADER);
        Ok(Some(self.rest.split_to(length)))
    }

    /// Whether nothing is left over.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::Ack;

    fn ack(id: &str) -> Ack {
        Ack { system_id: id.into(), ..Ack::default() }
    }

    #[test]
    fn messages_come_out_however_the_bytes_were_cut() {
        let mut bytes = BytesMut::new();
        for id in ["a", "", "a-longer-one"] {
            frame_into(&ack(id), &mut bytes);
        }
        for cut in 1..bytes.len() {
            let mut frames = Frames::default();
            let mut seen = Vec::new();
            for chunk in bytes.chunks(cut) {
                frames.push(Bytes::copy_from_slice(chunk));
                while let Some(message) = frames.next().expect("sound frames") {
                    seen.push(Ack::decode(message).expect("a sound message").system_id);
                }
            }
            assert_eq!(seen, ["a", "", "a-longer-one"], "cut at {cut}");
            assert!(frames.is_empty());
        }
    }

    #[test]
    fn a_broken_header_is_an_error() {
        for header in [[1, 0, 0, 0, 1], [0, 255, 0, 0, 0]] {
            let mut frames = Frames::default();
            frames.push(Bytes::copy_from_slice(&header));
            assert!(matches!(frames.next(), Err(CallError::Protocol(_))));
        }
    }
}
