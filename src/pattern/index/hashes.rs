//! Hashes of what a topic begins or ends with, of any length, after one pass over each end.

use crate::limits::PATTERN_BYTES;

/// A polynomial modulo 2^61 - 1 over blocks of seven bytes, at a place that nobody outside the process can know: whoever
/// chooses the patterns cannot make them collide.
#[derive(Clone, Copy)]
pub(super) struct Hashes {
    place: u64,
}

const MODULUS: u64 = (1 << 61) - 1;
const BLOCK: usize = 7;

/// One end of a topic, as much of it as a literal may have; the other end is read backwards.
pub(super) struct End {
    len: usize,
    /// With zeros behind it, so that a word can be read wherever a block begins.
    bytes: [u8; PATTERN_BYTES + size_of::<u64>()],
    /// What the polynomial is after so many blocks.
    sums: [u64; PATTERN_BYTES / BLOCK + 1],
}

/// A topic that is matched, as it is looked at again and again.
pub(super) struct Probe<'t> {
    pub topic: &'t [u8],
    /// How the topic begins.
    pub start: &'t End,
    /// The same of the topic backwards.
    pub back: &'t End,
}

impl Default for End {
    fn default() -> Self {
        Self { len: 0, bytes: [0; _], sums: [0; _] }
    }
}

impl End {
    /// Reads what a topic begins with, in place of the one before.
    pub fn read(&mut self, topic: &[u8]) {
        self.len = topic.len().min(PATTERN_BYTES);
        self.bytes[..self.len].copy_from_slice(&topic[..self.len]);
        self.bytes[self.len..][..size_of::<u64>()].fill(0);
    }

    /// Reads what it ends with, from its last byte on.
    pub fn read_backwards(&mut self, topic: &[u8]) {
        self.read(&topic[topic.len().saturating_sub(PATTERN_BYTES)..]);
        self.bytes[..self.len].reverse();
    }

    /// The bytes, as they were read.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    fn word(&self, start: usize) -> u64 {
        let word = self.bytes[start..].first_chunk().copied();
        u64::from_le_bytes(word.unwrap_or_default())
    }
}

impl Hashes {
    pub fn new() -> Self {
        Self { place: 256 + ahash::RandomState::new().hash_one(0) % (MODULUS - 256) }
    }

    /// Makes ready to hash what was read.
    pub fn prepare(&self, end: &mut End) {
        for block in 0..end.len / BLOCK {
            end.sums[block + 1] = self.step(end.sums[block], below(end.word(block * BLOCK), BLOCK));
        }
    }

    /// The hash of the first bytes, so many of them as there are at most, of what was made ready.
    pub fn start(&self, end: &End, len: usize) -> u64 {
        let block = len / BLOCK;
        let last = below(end.word(block * BLOCK), len % BLOCK);
        // Once more, so that the place counts in texts of a single block too.
        mix(reduce(fold(self.step(end.sums[block], last), self.place)))
    }

    /// The same of a text by itself.
    pub fn of(&self, text: &[u8]) -> u64 {
        let mut end = End::default();
        end.read(text);
        self.prepare(&mut end);
        self.start(&end, end.len)
    }

    /// From a sum that may be a little above the modulus to one that may be too.
    fn step(&self, sum: u64, block: u64) -> u64 {
        let sum = fold(sum, self.place) + block;
        (sum & MODULUS) + (sum >> 61)
    }
}

/// The first bytes of a word and a mark behind them, so that zeros and where a text ends count too.
fn below(word: u64, bytes: usize) -> u64 {
    let mark = 1 << (8 * bytes);
    word & (mark - 1) | mark
}

/// The product, below twice the modulus where the factors are about the modulus at most.
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64 & MODULUS) + (product >> 61) as u64
}

/// From below twice the modulus.
fn reduce(sum: u64) -> u64 {
    if sum >= MODULUS { sum - MODULUS } else { sum }
}

/// A bijection that brings every bit to every place, since tables look at some of the bits only.
fn mix(hash: u64) -> u64 {
    let hash = (hash ^ hash >> 32).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    hash ^ hash >> 32
}

/// The mixed hash of a pair of texts.
pub(super) fn pair(prefix: u64, suffix: u64) -> u64 {
    mix(prefix.wrapping_add(suffix.rotate_left(23)))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_start_hashes_like_the_text_it_is() {
        let hashes = Hashes::new();
        let mut end = End::default();
        let topic = "caf\u{e9}\0\0.☕.orders.placed".repeat(20);
        let backwards: Vec<u8> = topic.bytes().rev().collect();
        let mut check = |backwards: bool, wanted: &[u8]| {
            match backwards {
                false => end.read(topic.as_bytes()),
                true => end.read_backwards(topic.as_bytes()),
            }
            hashes.prepare(&mut end);
            assert_eq!(end.bytes(), &wanted[..PATTERN_BYTES]);
            for len in 0..=PATTERN_BYTES {
                assert_eq!(hashes.start(&end, len), hashes.of(&wanted[..len]), "{len}");
            }
        };
        check(true, &backwards);
        check(false, topic.as_bytes());
        // What was read before leaves nothing behind.
        end.read_backwards(b"fac");
        hashes.prepare(&mut end);
        assert_eq!((end.bytes(), hashes.start(&end, 3)), (&b"caf"[..], hashes.of(b"caf")));
    }

    #[test]
    fn other_processes_hash_otherwise_and_zeros_count() {
        let (one, other) = (Hashes::new(), Hashes::new());
        assert_ne!(one.of(b"abc"), other.of(b"abc"));
        let zeros: HashSet<u64> = (0..40).map(|zeros| one.of(&vec![0; zeros])).collect();
        assert_eq!(zeros.len(), 40);
        assert_ne!(one.of(b"\0a"), one.of(b"a"));
        assert_ne!(one.of(b"a\0"), one.of(b"a"));
        assert_ne!(pair(1, 2), pair(2, 1));
    }

    #[test]
    fn steps_are_those_of_the_polynomial() {
        let big = u128::from(MODULUS);
        for place in [256, 257, MODULUS / 2, MODULUS - 1] {
            let hashes = Hashes { place };
            for sum in [0, 1, MODULUS / 2, MODULUS - 1, MODULUS, MODULUS + 2] {
                for block in [1, 1 << 56, (1 << 57) - 1] {
                    let wanted = (u128::from(sum) * u128::from(place) + u128::from(block)) % big;
                    let step = hashes.step(sum, block);
                    assert!(step <= MODULUS + 2 && u128::from(reduce(step)) == wanted, "{sum} {block}");
                }
            }
        }
    }
}
