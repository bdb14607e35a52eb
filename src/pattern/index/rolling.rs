//! Hashes of all stretches of a topic, after one pass over it.

use crate::limits::PATTERN_BYTES;

/// A polynomial modulo 2^61 - 1 at a place that nobody outside the process can know: whoever chooses the patterns
/// cannot make them collide.
pub(super) struct Rolling {
    /// Powers of the place, as many as a literal may have bytes.
    powers: Box<[u64]>,
}

const MODULUS: u64 = (1 << 61) - 1;

/// The hashes of the prefixes of one topic, the empty one first.
#[derive(Default)]
pub(super) struct TopicHashes {
    prefixes: Vec<u64>,
}

impl Rolling {
    pub fn new() -> Self {
        let place = 256 + ahash::RandomState::new().hash_one(0) % (MODULUS - 256);
        let powers = std::iter::successors(Some(1), |power| Some(times(*power, place)));
        Self { powers: powers.take(PATTERN_BYTES + 1).collect() }
    }

    /// Reads a topic, in place of the one before.
    pub fn read(&self, topic: &[u8], hashes: &mut TopicHashes) {
        hashes.prefixes.clear();
        hashes.prefixes.push(0);
        let mut hash = 0;
        hashes.prefixes.extend(topic.iter().map(|byte| {
            hash = self.step(hash, *byte);
            reduce(hash)
        }));
    }

    /// The hash of the stretch of the topic that begins at `start` and has `len` bytes, at most [`PATTERN_BYTES`].
    pub fn stretch(&self, hashes: &TopicHashes, start: usize, len: usize) -> u64 {
        let before = times(hashes.prefixes[start], self.powers[len]);
        mix(reduce(hashes.prefixes[start + len] + MODULUS - before))
    }

    /// The same of a text by itself.
    pub fn hash(&self, text: &[u8]) -> u64 {
        mix(reduce(text.iter().fold(0, |hash, byte| self.step(hash, *byte))))
    }

    /// From a hash that may be a little above the modulus to one that may be too: each step waits for the one before,
    /// so it does no more than it must.
    fn step(&self, hash: u64, byte: u8) -> u64 {
        // A zero byte counts too.
        let sum = fold(hash, self.powers[1]) + u64::from(byte) + 1;
        (sum & MODULUS) + (sum >> 61)
    }
}

/// Both below the modulus, and so is the product.
fn times(a: u64, b: u64) -> u64 {
    reduce(fold(a, b))
}

/// The product, below twice the modulus where both are below it.
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
    use super::*;

    #[test]
    fn a_stretch_hashes_like_the_text_it_is() {
        let rolling = Rolling::new();
        let mut hashes = TopicHashes::default();
        let topic = "caf\u{e9}\0\0.☕.orders.placed".repeat(3);
        rolling.read(b"another one", &mut hashes);
        rolling.read(topic.as_bytes(), &mut hashes);
        for start in 0..=topic.len() {
            for len in 0..=topic.len() - start {
                let text = &topic.as_bytes()[start..start + len];
                assert_eq!(rolling.stretch(&hashes, start, len), rolling.hash(text));
            }
        }
    }

    #[test]
    fn other_processes_hash_otherwise_and_zeros_count() {
        let (one, other) = (Rolling::new(), Rolling::new());
        assert_ne!(one.hash(b"abc"), other.hash(b"abc"));
        assert_ne!(one.hash(b"\0a"), one.hash(b"a"));
        assert_ne!(one.hash(b"a\0"), one.hash(b"a"));
        assert_ne!(pair(1, 2), pair(2, 1));
    }

    #[test]
    fn products_stay_below_the_modulus() {
        for a in [0, 1, 2, MODULUS / 2, MODULUS - 2, MODULUS - 1] {
            for b in [0, 1, 3, MODULUS - 1] {
                let wanted = u128::from(a) * u128::from(b) % u128::from(MODULUS);
                assert_eq!(u128::from(times(a, b)), wanted);
            }
        }
    }
}
