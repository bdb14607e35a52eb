//! Where in a topic it is worth to look for a text: few places hold the first bytes of one.

use std::mem;

use super::anchor::INNER_BYTES;

/// The places where a text may begin: those whose first four bytes are a gram that `holds`, or whose first three are,
/// where `short` texts have only so many. A place is left out where one was seen before that is like it as far as matters.
pub(super) fn places(
    topic: &[u8],
    short: bool,
    holds: impl Fn(Gram) -> bool + Copy,
) -> impl Iterator<Item = usize> {
    let mut seen = Seen::new();
    let mut at = 0;
    std::iter::from_fn(move || {
        while let Some(rest @ [a, b, c, more @ ..]) = topic.get(at..) {
            let place = at;
            at += 1;
            let may_begin = short && holds(Gram::short([*a, *b, *c]))
                || more.first().is_some_and(|d| holds(Gram::long([*a, *b, *c, *d])));
            if may_begin {
                if !seen.is_repeat(rest) {
                    return Some(place);
                }
                // In a run of one byte all places are alike, but for the last.
                let run = rest.iter().take_while(|byte| *byte == a).count();
                at += run.saturating_sub(INNER_BYTES.end() + 1);
            }
        }
        None
    })
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
struct Seen {
    places: [u128; SEEN],
    last: u128,
}

/// So many are remembered.
const SEEN: usize = 16;
/// Bytes that are in no text.
const NEVER: u128 = u128::MAX;

impl Seen {
    fn new() -> Self {
        Self { places: [NEVER; SEEN], last: NEVER }
    }

    /// Whether the text begins with as many bytes as matter, and such a place was seen before. From now on it was.
    fn is_repeat(&mut self, text: &[u8]) -> bool {
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// What a text may be that begins there.
    fn beginning(topic: &[u8], place: usize) -> &[u8] {
        &topic[place..topic.len().min(place + INNER_BYTES.end())]
    }

    #[test]
    fn each_beginning_is_among_the_places_however_topics_repeat_themselves() {
        let mut left_out = 0;
        for (one, other) in (0..40).flat_map(|one| (0..40).map(move |other| (one, other))) {
            let topic =
                ["a".repeat(one), "b".repeat(other), "a".repeat(one + 1), "ab".repeat(other)].concat();
            let topic = topic.as_bytes();
            let all = 0..topic.len().saturating_sub(2);
            let found: Vec<usize> = places(topic, true, |_| true).collect();
            let beginnings: BTreeSet<&[u8]> = found.iter().map(|place| beginning(topic, *place)).collect();
            left_out += all.len() - found.len();
            assert_eq!(beginnings, all.map(|place| beginning(topic, place)).collect(), "{one} {other}");
        }
        assert!(left_out > 30_000, "{left_out}");
    }

    #[test]
    fn a_place_has_a_gram_that_holds() {
        let long = Gram::of(b"abcd").unwrap().0.0;
        let short = Gram::of(b"bcd").unwrap().0.0;
        let found = |topic: &[u8], has_short| {
            places(topic, has_short, |gram| [long, short].contains(&gram.0)).collect::<Vec<_>>()
        };
        assert_eq!(found(b"xabcd.bcd", true), [1, 2, 6]);
        assert_eq!(found(b"xabcd.bcd", false), [1]);
        assert!(found(b"bc", true).is_empty() && found(b"", true).is_empty());
    }
}
