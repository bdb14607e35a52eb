//! Literals that topics begin or end with.

use super::lengths::Lengths;
use super::{PIECES, Postings};
use crate::limits::PATTERN_BYTES;
use crate::pattern::index::few::Few;
use crate::pattern::index::hashes::{End, Hashes};
use crate::pattern::index::ids::Posting;
use crate::pattern::index::table::Table;

/// Texts at one end of topics, as they are read from there.
pub(in crate::pattern::index) struct Ends {
    table: Table<Literal>,
    /// Longer ones than a pattern there are not.
    lengths: Lengths<{ PATTERN_BYTES + 1 }>,
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
        Self { table: Table::new(PIECES), lengths: Lengths::new() }
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
        let mut literal = Literal { text: text.into(), postings: Few::None, pairs: 0 };
        change(&mut literal);
        self.table.insert(hash, literal);
        self.lengths.add(text);
    }

    /// Takes a posting from a text, or with none a pair; whether it was there.
    pub fn remove(&mut self, hash: u64, text: &[u8], posting: Option<Posting>) -> bool {
        let Some(literal) = self.table.find_mut(hash, |literal| *literal.text == *text) else { return false };
        let removed = match posting {
            Some(posting) => literal.postings.remove(posting),
            None => {
                let pairs = literal.pairs;
                literal.pairs = pairs.saturating_sub(1);
                pairs > 0
            }
        };
        if literal.postings.is_empty() && literal.pairs == 0 {
            self.table.remove(hash, |literal| *literal.text == *text);
            self.lengths.remove(text);
        }
        removed
    }

    pub fn at(&self, hash: u64, text: &[u8]) -> Option<&Postings> {
        let literal = self.table.find(hash, |literal| *literal.text == *text)?;
        Some(&literal.postings)
    }

    /// Visits each text that the end of a topic begins with, the shortest first, and its hash.
    pub fn find(&self, hashes: &Hashes, end: &End, mut visit: impl FnMut(u64, &Literal)) {
        for len in self.lengths.of_starts(end.bytes()) {
            let hash = hashes.start(end, len);
            if let Some(literal) = self.table.find(hash, |literal| *literal.text == end.bytes()[..len]) {
                visit(hash, literal);
            }
        }
    }
}
