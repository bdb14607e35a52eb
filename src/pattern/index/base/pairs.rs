//! What hangs on a prefix and a suffix together.

use ahash::RandomState;
use hashbrown::HashTable;

use crate::pattern::index::ids::Posting;

/// Postings by the ranks of a prefix and a suffix.
pub(super) struct Pairs {
    /// In order, so that those of one pair are neighbours.
    entries: Box<[PairEntry]>,
    /// The first entry of each pair.
    firsts: HashTable<u32>,
    hasher: RandomState,
}

/// The ranks of the prefix and of the suffix, and what hangs on both.
pub(super) type PairEntry = (u32, u32, Posting);

impl Pairs {
    pub fn new(mut entries: Vec<PairEntry>) -> Self {
        entries.sort_unstable();
        let same_pair = |one: &PairEntry, other: &PairEntry| (one.0, one.1) == (other.0, other.1);
        let distinct = entries.chunk_by(same_pair).count();
        let mut firsts = HashTable::with_capacity(distinct);
        let hasher = RandomState::new();
        let hash = |first: &u32| {
            let (prefix, suffix, _) = entries[*first as usize];
            hasher.hash_one((prefix, suffix))
        };
        let mut first = 0;
        for run in entries.chunk_by(same_pair) {
            firsts.insert_unique(hash(&first), first, hash);
            first += run.len() as u32;
        }
        Self { entries: entries.into(), firsts, hasher }
    }

    /// How many postings there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = PairEntry> {
        self.entries.iter().copied()
    }

    /// What hangs on a pair.
    pub fn at(&self, prefix: u32, suffix: u32) -> impl Iterator<Item = Posting> {
        let is_it = move |entry: &PairEntry| (entry.0, entry.1) == (prefix, suffix);
        let hash = self.hasher.hash_one((prefix, suffix));
        let first = self.firsts.find(hash, |first| is_it(&self.entries[*first as usize]));
        let run = first.map_or(&[][..], |first| &self.entries[*first as usize..]);
        run.iter().take_while(move |entry| is_it(entry)).map(|entry| entry.2)
    }
}
