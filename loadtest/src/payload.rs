//! What the payload of every message says: which it is, and when it was meant to be sent.
//!
//! ```text
//! 0        4        8                16               24
//! ├ run ───┼ lane ──┼ sequence ──────┼ intended (ns) ─┼ filler …
//! ```

use bytes::{BufMut, Bytes, BytesMut};
use prost::Message;

use crate::clock::Nanos;
use crate::ledger::LaneId;
use crate::proto::PublishRequest;

/// Shortest payload, in bytes.
pub const SHORTEST: usize = 24;

/// The beginning of a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Tells this run's messages from those of others on the same broker.
    pub run: u32,
    pub lane: LaneId,
    pub sequence: u64,
    /// When the schedule wanted it sent.
    pub intended: Nanos,
}

impl Stamp {
    fn bytes(self) -> [u8; SHORTEST] {
        let mut out = [0; SHORTEST];
        out[0..4].copy_from_slice(&self.run.to_le_bytes());
        out[4..8].copy_from_slice(&self.lane.0.to_le_bytes());
        out[8..16].copy_from_slice(&self.sequence.to_le_bytes());
        out[16..24].copy_from_slice(&self.intended.to_le_bytes());
        out
    }

    /// None where the payload is none of ours.
    pub fn read(payload: &[u8]) -> Option<Stamp> {
        let stamp = payload.first_chunk::<SHORTEST>()?;
        let number = |at: usize| u32::from_le_bytes([stamp[at], stamp[at + 1], stamp[at + 2], stamp[at + 3]]);
        let long = |at: usize| u64::from(number(at)) | u64::from(number(at + 4)) << 32;
        Some(Stamp { run: number(0), lane: LaneId(number(4)), sequence: long(8), intended: long(16) })
    }
}

/// An encoded `PublishRequest` in which only the stamp differs from message to message.
#[derive(Debug, Clone)]
pub struct Template {
    encoded: Vec<u8>,
    stamp_at: usize,
}

impl Template {
    /// With a payload of so many bytes, at least [`SHORTEST`].
    pub fn new(topic: &str, payload_bytes: usize) -> Self {
        let payload_bytes = payload_bytes.max(SHORTEST);
        let request = PublishRequest {
            topic: topic.to_owned(),
            payload: Bytes::from(vec![b'.'; payload_bytes]),
            ..PublishRequest::default()
        };
        let encoded = request.encode_to_vec();
        // The payload is the last field that is set, so it is encoded last.
        let stamp_at = encoded.len() - payload_bytes;
        Template { encoded, stamp_at }
    }

    /// Appends the request as a gRPC message of its own.
    pub fn frame(&self, stamp: Stamp, out: &mut BytesMut) {
        out.reserve(5 + self.encoded.len());
        out.put_u8(0);
        out.put_u32(self.encoded.len() as u32);
        self.body(stamp, out);
    }

    /// Appends the request as one of the `messages` of a `PublishBatchRequest`.
    pub fn element(&self, stamp: Stamp, out: &mut BytesMut) {
        prost::encoding::encode_key(1, prost::encoding::WireType::LengthDelimited, out);
        prost::encoding::encode_varint(self.encoded.len() as u64, out);
        self.body(stamp, out);
    }

    fn body(&self, stamp: Stamp, out: &mut BytesMut) {
        out.put_slice(&self.encoded[..self.stamp_at]);
        out.put_slice(&stamp.bytes());
        out.put_slice(&self.encoded[self.stamp_at + SHORTEST..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::PublishBatchRequest;

    const STAMP: Stamp = Stamp { run: 7, lane: LaneId(3), sequence: 1 << 40, intended: u64::MAX };

    #[test]
    fn a_template_is_a_publish_request_with_the_stamp() {
        for payload_bytes in [0, SHORTEST, 100, 4000] {
            let mut out = BytesMut::new();
            let template = Template::new("a.topic", payload_bytes);
            template.frame(STAMP, &mut out);
            // The frame's header: not compressed, and the length.
            assert_eq!(out[..5], [&[0], &(out.len() as u32 - 5).to_be_bytes()[..]].concat());
            let request = PublishRequest::decode(&out[5..]).expect("a sound request");
            assert_eq!(request.topic, "a.topic");
            assert_eq!(request.payload.len(), payload_bytes.max(SHORTEST));
            assert_eq!(Stamp::read(&request.payload), Some(STAMP));
        }
    }

    #[test]
    fn elements_make_a_batch() {
        let template = Template::new("t", 30);
        let mut out = BytesMut::new();
        for sequence in 0..3 {
            template.element(Stamp { sequence, ..STAMP }, &mut out);
        }
        let batch = PublishBatchRequest::decode(out.freeze()).expect("a sound batch");
        let sequences = batch.messages.iter().filter_map(|message| Stamp::read(&message.payload));
        assert_eq!(sequences.map(|stamp| stamp.sequence).collect::<Vec<_>>(), [0, 1, 2]);
    }

    #[test]
    fn a_foreign_payload_has_no_stamp() {
        assert_eq!(Stamp::read(b"short"), None);
    }
}
