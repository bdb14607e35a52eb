//! Which lengths the texts of a table have, and with which bytes those of a length end.

/// Lengths below `N`, in bytes. Most texts end with one of few bytes, a dot above all: few lengths of a topic are worth
/// a look at the table.
pub(super) struct Lengths<const N: usize> {
    /// How many texts there are of each length.
    counts: [u32; N],
    /// A bit for each last byte, which shares it with others. They stay until no text of the length is left.
    last: [u64; N],
    /// A bit for each length of which there are some.
    words: [u64; WORDS],
}

/// As many as the longest literal needs.
const WORDS: usize = 5;

impl<const N: usize> Lengths<N> {
    pub fn new() -> Self {
        const { assert!(N <= WORDS * u64::BITS as usize) }
        Self { counts: [0; N], last: [0; N], words: [0; WORDS] }
    }

    pub fn add(&mut self, text: &[u8]) {
        let len = text.len();
        self.counts[len] += 1;
        self.last[len] |= last_bit(text);
        self.words[len / 64] |= 1 << (len % 64);
    }

    pub fn remove(&mut self, text: &[u8]) {
        let len = text.len();
        self.counts[len] -= 1;
        if self.counts[len] == 0 {
            self.last[len] = 0;
            self.words[len / 64] &= !(1 << (len % 64));
        }
    }

    /// The lengths, ascending, of which there may be a text that the bytes begin with.
    pub fn of_starts(&self, bytes: &[u8]) -> impl Iterator<Item = usize> {
        let in_word = |(word, bits): (usize, u64)| {
            let rest = std::iter::successors(Some(bits), |bits| Some(bits & bits.wrapping_sub(1)));
            rest.take_while(|bits| *bits != 0).map(move |bits| word * 64 + bits.trailing_zeros() as usize)
        };
        let lengths = self.words.iter().copied().enumerate().flat_map(in_word);
        let fitting = lengths.take_while(|len| *len <= bytes.len());
        fitting.filter(|len| self.last[*len] & last_bit(&bytes[..*len]) != 0)
    }
}

fn last_bit(text: &[u8]) -> u64 {
    1 << (text.last().copied().unwrap_or_default() % 64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::PATTERN_BYTES;

    #[test]
    fn lengths_are_told_by_the_last_byte_until_their_texts_are_gone() {
        let mut lengths = Lengths::<{ PATTERN_BYTES + 1 }>::new();
        let longest = [b'a'; PATTERN_BYTES];
        let found = |lengths: &Lengths<_>, bytes: &[u8]| lengths.of_starts(bytes).collect::<Vec<_>>();
        for text in [&b""[..], b"a.", b"b.", b"abc", &longest] {
            lengths.add(text);
        }
        assert_eq!(found(&lengths, b"x.c"), [0, 2, 3]);
        assert_eq!(found(&lengths, b"xxx"), [0]);
        assert_eq!(found(&lengths, &[b'a'; 1024]), [0, PATTERN_BYTES]);
        lengths.remove(b"a.");
        assert_eq!(found(&lengths, b"x."), [0, 2]);
        for text in [&b""[..], b"b.", b"abc", &longest] {
            lengths.remove(text);
        }
        assert!(found(&lengths, b"x.c").is_empty() && lengths.last.iter().all(|last| *last == 0));
    }
}
