//! Where in a topic it is worth to look for a text: few places hold the first bytes of one.

use std::mem;

use super::anchor::INNER_BYTES;

/// The places where a text may begin: those whose first four bytes are a gram that `holds`, or whose first three are,
/// where `short` texts have only so many.
pub(super) fn places(
    topic: &[u8],
    short: bool,
    holds: impl Fn(Gram) -> bool + Copy,
) -> impl Iterator<Item = usize> {
    let long = topic.windows(4).map(move |w| holds(Gram::long([w[0], w[1], w[2], w[3]])));
    let three = topic.windows(3).map(move |w| short && holds(Gram::short([w[0], w[1], w[2]])));
    let either = three.zip(long.chain([false])).enumerate();
    either.filter(|(_, (short, long))| *short || *long).map(|(at, _)| at)
}

/// The first three bytes of a text, or four where it has more.
#[derive(Clone, Copy)]
pub(super) struct Gram(u64);

impl Gram {
    /// That of a text, and whether it is a short one; none where the text has not even three bytes.
    pub fn of(text: &[u8]) -> Option<(Self, bool)> {
        match *text {
            [a, b, c] => Some((Self::short([a, b, c]), true)),
            [a, b, c, d, ..] => Some((Self::long([a, b, c, d]), false)),
            _ => None,
        }
    }

    fn long(bytes: [u8; 4]) -> Self {
        Self(u64::from(u32::from_le_bytes(bytes)))
    }

    fn short([a, b, c]: [u8; 3]) -> Self {
        Self(u64::from(u32::from_le_bytes([a, b, c, 0])) | 1 << 32)
    }

    /// A number of so many bits.
    pub fn spread(self, bits: u32) -> usize {
        (self.0.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - bits)) as usize
    }
}

/// Places of a topic that were looked at: in a topic that repeats itself each look is long.
pub(super) struct Seen {
    places: [u128; SEEN],
    last: u128,
}

/// So many are remembered.
const SEEN: usize = 16;
/// Bytes that are in no text.
const NEVER: u128 = u128::MAX;

impl Seen {
    pub fn new() -> Self {
        Self { places: [NEVER; SEEN], last: NEVER }
    }

    /// Whether the text begins with as many bytes as matter, and such a place was seen before. From now on it was.
    pub fn is_repeat(&mut self, text: &[u8]) -> bool {
        const _: () = assert!(*INNER_BYTES.end() == size_of::<u128>());
        let Some((bytes, _)) = text.split_first_chunk() else { return false };
        let bytes = u128::from_ne_bytes(*bytes);
        if mem::replace(&mut self.last, bytes) == bytes {
            return true;
        }
        let mixed = (bytes as u64 ^ (bytes >> 64) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let place = &mut self.places[mixed as usize >> (usize::BITS - SEEN.ilog2())];
        mem::replace(place, bytes) == bytes
    }
}
