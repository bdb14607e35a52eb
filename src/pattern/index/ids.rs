//! Numbers of patterns, what lists of them look like, and when a number may be used again.

use std::collections::VecDeque;

use crate::limits::{BRACE_EXPANSIONS, DISTINCT_PATTERNS};

/// The number of a distinct pattern within one index.
pub(super) type Id = u32;

const ATOM_BITS: u32 = 6;
/// Ids are below this.
pub(super) const IDS: Id = 1 << (POSTING_BITS - ATOM_BITS - 1);
/// One less than a word has, so that a posting and a bit make one.
const POSTING_BITS: u32 = 31;

const _: () = {
    assert!(BRACE_EXPANSIONS <= 1 << ATOM_BITS);
    // Twice as many: what is gone keeps its id until a merge.
    assert!(2 * DISTINCT_PATTERNS < IDS as usize);
};

/// An entry of a list that hangs on a literal: one expansion of one pattern. Sorts by id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Posting(u32);

impl Posting {
    /// `verify`: to find the literal is not yet a match, the expansion has to be tried.
    pub fn new(id: Id, atom: usize, verify: bool) -> Self {
        debug_assert!(id < IDS && atom < 1 << ATOM_BITS);
        Self(id << (ATOM_BITS + 1) | (atom as u32) << 1 | u32::from(verify))
    }

    /// The posting as a number below 2^31.
    pub fn bits(self) -> u32 {
        self.0
    }

    /// The posting with this number.
    pub fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    pub fn id(self) -> Id {
        self.0 >> (ATOM_BITS + 1)
    }

    /// Which expansion of its pattern this is.
    pub fn atom(self) -> usize {
        (self.0 >> 1) as usize & ((1 << ATOM_BITS) - 1)
    }

    pub fn verify(self) -> bool {
        self.0 & 1 != 0
    }
}

/// Ids that wait in line. Takes them in one at a time or another line as a whole, without moving what is there.
#[derive(Debug, Default)]
pub(super) struct IdQueue {
    chunks: VecDeque<Chunk>,
    len: usize,
}

#[derive(Debug)]
struct Chunk {
    ids: Vec<Id>,
    /// The number of the change after which the last one came in.
    since: u64,
}

const CHUNK: usize = 128;

impl IdQueue {
    pub fn len(&self) -> usize {
        self.len
    }

    /// Adds an id; `change` counts the changes so far.
    pub fn push(&mut self, id: Id, change: u64) {
        self.len += 1;
        match self.chunks.back_mut() {
            Some(last) if last.ids.len() < CHUNK => {
                last.ids.push(id);
                last.since = change;
            }
            _ => {
                let mut ids = Vec::with_capacity(CHUNK);
                ids.push(id);
                self.chunks.push_back(Chunk { ids, since: change });
            }
        }
    }

    /// Adds all ids of another line as if they came in now.
    pub fn append(&mut self, mut other: IdQueue, change: u64) {
        other.chunks.iter_mut().for_each(|chunk| chunk.since = change);
        self.len += other.len;
        self.chunks.append(&mut other.chunks);
    }

    /// Takes an id out after which more than `rest` changes have been counted.
    pub fn pop_rested(&mut self, change: u64, rest: u64) -> Option<Id> {
        let first = self.chunks.front_mut().filter(|first| change > first.since + rest)?;
        let id = first.ids.pop();
        if first.ids.is_empty() {
            self.chunks.pop_front();
        }
        self.len -= 1;
        id
    }

    pub fn iter(&self) -> impl Iterator<Item = Id> {
        self.chunks.iter().flat_map(|chunk| &chunk.ids).copied()
    }
}

/// A set of ids, or of other small numbers, a bit each. What lies beyond its end is not in it.
#[derive(Default)]
pub(super) struct IdSet {
    words: Vec<u64>,
}

impl IdSet {
    pub fn contains(&self, id: Id) -> bool {
        self.words.get(id as usize / 64).is_some_and(|word| word >> (id % 64) & 1 != 0)
    }
}

impl FromIterator<Id> for IdSet {
    fn from_iter<I: IntoIterator<Item = Id>>(ids: I) -> Self {
        let mut words = Vec::new();
        for id in ids {
            let word = id as usize / 64;
            if words.len() <= word {
                words.resize(word + 1, 0);
            }
            words[word] |= 1 << (id % 64);
        }
        Self { words }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_posting_holds_the_largest_of_each() {
        for (id, atom, verify) in [(0, 0, false), (IDS - 1, 63, true), (IDS - 1, 0, false), (0, 63, false)] {
            let posting = Posting::new(id, atom, verify);
            assert_eq!((posting.id(), posting.atom(), posting.verify()), (id, atom, verify));
        }
        assert!(Posting::new(1, 63, true) < Posting::new(2, 0, false));
    }

    #[test]
    fn an_id_rests_before_it_is_used_again() {
        let mut queue = IdQueue::default();
        queue.push(7, 10);
        assert_eq!(queue.pop_rested(74, 64), None);
        queue.push(8, 11);
        assert_eq!(queue.pop_rested(75, 64), None);
        let mut popped = [queue.pop_rested(76, 64), queue.pop_rested(76, 64)];
        popped.sort();
        assert_eq!(popped, [Some(7), Some(8)]);
        assert_eq!((queue.pop_rested(999, 64), queue.len()), (None, 0));
    }

    #[test]
    fn a_line_that_is_appended_rests_anew() {
        let mut queue = IdQueue::default();
        let mut other = IdQueue::default();
        (0..300).for_each(|id| other.push(id, 0));
        queue.append(other, 500);
        assert_eq!((queue.pop_rested(564, 64), queue.len(), queue.iter().count()), (None, 300, 300));
        let mut all: Vec<Id> = std::iter::from_fn(|| queue.pop_rested(565, 64)).collect();
        all.sort();
        assert!(all.into_iter().eq(0..300));
    }

    #[test]
    fn a_set_knows_no_ids_beyond_its_end() {
        let set: IdSet = [3, 64, 127].into_iter().collect();
        let found: Vec<Id> = (0..1_000).filter(|id| set.contains(*id)).collect();
        assert_eq!(found, [3, 64, 127]);
        assert!(!set.contains(IDS - 1) && !IdSet::from_iter([]).contains(0));
    }
}
