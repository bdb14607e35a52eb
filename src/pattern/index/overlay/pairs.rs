//! What hangs on a prefix and a suffix together.

use super::{PIECES, Postings};
use crate::limits::PATTERN_BYTES;
use crate::pattern::index::few::Few;
use crate::pattern::index::hashes;
use crate::pattern::index::ids::Posting;
use crate::pattern::index::table::Table;

/// Postings by prefix and suffix.
pub(in crate::pattern::index) struct Pairs {
    table: Table<Pair>,
}

pub(in crate::pattern::index) struct Pair {
    /// The prefix, then the suffix backwards.
    texts: Box<[u8]>,
    prefix_bytes: u16,
    pub postings: Postings,
}

/// A text with its hash.
#[derive(Clone, Copy)]
pub(in crate::pattern::index) struct Hashed<'t>(pub u64, pub &'t [u8]);

impl Pairs {
    pub fn new() -> Self {
        Self { table: Table::new(PIECES) }
    }

    /// All of them, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &Pair> {
        self.table.iter()
    }

    /// Whether the pair was not there before.
    pub fn insert(&mut self, prefix: Hashed<'_>, suffix: Hashed<'_>, posting: Posting) -> bool {
        let hash = hash(prefix, suffix);
        match self.table.find_mut(hash, |pair| pair.is(prefix, suffix)) {
            Some(pair) => {
                pair.postings.insert(posting);
                false
            }
            None => {
                self.table.insert(hash, Pair::new(prefix.1, suffix.1, posting));
                true
            }
        }
    }

    /// Whether the posting hung there.
    pub fn remove(&mut self, prefix: Hashed<'_>, suffix: Hashed<'_>, posting: Posting) -> bool {
        let hash = hash(prefix, suffix);
        let Some(pair) = self.table.find_mut(hash, |pair| pair.is(prefix, suffix)) else { return false };
        let removed = pair.postings.remove(posting);
        if pair.postings.is_empty() {
            self.table.remove(hash, |pair| pair.is(prefix, suffix));
        }
        removed
    }

    pub fn at(&self, prefix: Hashed<'_>, suffix: Hashed<'_>) -> Option<&Postings> {
        let pair = self.table.find(hash(prefix, suffix), |pair| pair.is(prefix, suffix))?;
        Some(&pair.postings)
    }
}

impl Pair {
    fn new(prefix: &[u8], suffix: &[u8], posting: Posting) -> Self {
        const _: () = assert!(PATTERN_BYTES <= u16::MAX as usize);
        let texts = [prefix, suffix].concat().into();
        Self { texts, prefix_bytes: prefix.len() as u16, postings: Few::One(posting) }
    }

    pub fn prefix(&self) -> &[u8] {
        &self.texts[..usize::from(self.prefix_bytes)]
    }

    /// Written backwards.
    pub fn suffix(&self) -> &[u8] {
        &self.texts[usize::from(self.prefix_bytes)..]
    }

    fn is(&self, prefix: Hashed<'_>, suffix: Hashed<'_>) -> bool {
        self.prefix() == prefix.1 && self.suffix() == suffix.1
    }
}

fn hash(prefix: Hashed<'_>, suffix: Hashed<'_>) -> u64 {
    hashes::pair(prefix.0, suffix.0)
}
