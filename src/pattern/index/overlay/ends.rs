//! Literals that topics begin or end with.

use smallvec::SmallVec;

use super::{PIECES, Postings, take_out};
use crate::limits::PATTERN_BYTES;
use crate::pattern::index::hashes::{End, Hashes};
use crate::pattern::index::ids::Posting;
use crate::pattern::index::table::Table;

/// Texts at one end of topics, as they are read from there.
pub(in crate::pattern::index) struct Ends {
    table: Table<Literal>,
    /// How many there are of each length; longer ones than a pattern there are not.
    by_length: [u32; PATTERN_BYTES + 1],
    /// A bit for each length of which there are some.
    lengths: [u64; PATTERN_BYTES / 64 + 1],
}

/// A text and what hangs on it.
pub(in crate::pattern::index) struct Literal {
    pub text: Box<[u8]>,
    pub postings: Postings,
    /// How many pairs have it.
    pub pairs: u32,
}

impl Ends {
    pub fn new() -> Self {
        Self {
            table: Table::new(PIECES),
            by_length: [0; PATTERN_BYTES + 1],
            lengths: [0; PATTERN_BYTES / 64 + 1],
        }
    }

    /// All of them, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &Literal> {
        self.table.iter()
    }

    /// Changes what hangs on a text with this hash.
    pub fn add(&mut self, hash: u64, text: &[u8], change: impl FnOnce(&mut Literal)) {
        if let Some(literal) = self.table.find_mut(hash, |literal| *literal.text == *text) {
            return change(literal);
        }
        let mut literal = Literal { text: text.into(), postings: SmallVec::new(), pairs: 0 };
        change(&mut literal);
        self.table.insert(hash, literal);
        self.by_length[text.len()] += 1;
        self.lengths[text.len() / 64] |= 1 << (text.len() % 64);
    }

    /// Takes a posting from a text, or with none a pair; whether it was there.
    pub fn remove(&mut self, hash: u64, text: &[u8], posting: Option<Posting>) -> bool {
        let Some(literal) = self.table.find_mut(hash, |literal| *literal.text == *text) else { return false };
        let removed = match posting {
            Some(posting) => take_out(&mut literal.postings, posting),
            None => {
                let pairs = literal.pairs;
                literal.pairs = pairs.saturating_sub(1);
                pairs > 0
            }
        };
        if literal.postings.is_empty() && literal.pairs == 0 {
            self.table.remove(hash, |literal| *literal.text == *text);
            self.by_length[text.len()] -= 1;
            if self.by_length[text.len()] == 0 {
                self.lengths[text.len() / 64] &= !(1 << (text.len() % 64));
            }
        }
        removed
    }

    pub fn at(&self, hash: u64, text: &[u8]) -> &[Posting] {
        self.table.find(hash, |literal| *literal.text == *text).map_or(&[], |literal| &literal.postings)
    }

    /// Visits each text that the end of a topic begins with, the shortest first, and its hash.
    pub fn find(&self, hashes: &Hashes, end: &End, mut visit: impl FnMut(u64, &Literal)) {
        for len in self.lengths(end.len()) {
            let hash = hashes.start(end, len);
            if let Some(literal) = self.table.find(hash, |literal| *literal.text == end.bytes()[..len]) {
                visit(hash, literal);
            }
        }
    }

    /// The lengths of which there are some, up to `most`, ascending.
    pub(super) fn lengths(&self, most: usize) -> impl Iterator<Item = usize> {
        let in_word = |(word, bits): (usize, u64)| {
            let rest = std::iter::successors(Some(bits), |bits| Some(bits & bits.wrapping_sub(1)));
            rest.take_while(|bits| *bits != 0).map(move |bits| word * 64 + bits.trailing_zeros() as usize)
        };
        self.lengths.iter().copied().enumerate().flat_map(in_word).take_while(move |len| *len <= most)
    }
}
