//! What hangs on a prefix and a suffix together.

use smallvec::SmallVec;

use super::{PIECES, Postings, take_out};
use crate::pattern::index::hashes;
use crate::pattern::index::ids::Posting;
use crate::pattern::index::table::Table;

/// Postings by prefix and suffix, suffixes written backwards.
pub(in crate::pattern::index) struct Pairs {
    table: Table<Pair>,
}

pub(in crate::pattern::index) struct Pair {
    pub prefix: Box<[u8]>,
    pub suffix: Box<[u8]>,
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

    pub fn insert(&mut self, prefix: Hashed<'_>, suffix: Hashed<'_>, posting: Posting) {
        let hash = hash(prefix, suffix);
        match self.table.find_mut(hash, |pair| pair.is(prefix, suffix)) {
            Some(pair) => pair.postings.push(posting),
            None => {
                let postings = SmallVec::from_iter([posting]);
                self.table.insert(hash, Pair { prefix: prefix.1.into(), suffix: suffix.1.into(), postings });
            }
        }
    }

    /// Whether the posting hung there.
    pub fn remove(&mut self, prefix: Hashed<'_>, suffix: Hashed<'_>, posting: Posting) -> bool {
        let hash = hash(prefix, suffix);
        let Some(pair) = self.table.find_mut(hash, |pair| pair.is(prefix, suffix)) else { return false };
        let removed = take_out(&mut pair.postings, posting);
        if pair.postings.is_empty() {
            self.table.remove(hash, |pair| pair.is(prefix, suffix));
        }
        removed
    }

    pub fn at(&self, prefix: Hashed<'_>, suffix: Hashed<'_>) -> &[Posting] {
        let found = self.table.find(hash(prefix, suffix), |pair| pair.is(prefix, suffix));
        found.map_or(&[], |pair| &pair.postings)
    }
}

impl Pair {
    fn is(&self, prefix: Hashed<'_>, suffix: Hashed<'_>) -> bool {
        *self.prefix == *prefix.1 && *self.suffix == *suffix.1
    }
}

fn hash(prefix: Hashed<'_>, suffix: Hashed<'_>) -> u64 {
    hashes::pair(prefix.0, suffix.0)
}
