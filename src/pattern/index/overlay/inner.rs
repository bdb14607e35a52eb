//! Literals that lie anywhere in topics.

use std::ptr;

use ahash::RandomState;
use smallvec::SmallVec;

use super::lengths::Lengths;
use super::{PIECES, Postings};
use crate::pattern::index::anchor::INNER_BYTES;
use crate::pattern::index::few::Few;
use crate::pattern::index::grams::{Gram, places};
use crate::pattern::index::ids::Posting;
use crate::pattern::index::table::Table;

/// Texts of lengths in [`INNER_BYTES`].
pub(in crate::pattern::index) struct Inner {
    table: Table<InnerLiteral>,
    hasher: RandomState,
    lengths: Lengths<{ *INNER_BYTES.end() + 1 }>,
    grams: GramCounts,
}

/// A text and what hangs on it.
pub(in crate::pattern::index) struct InnerLiteral {
    pub text: Box<[u8]>,
    pub postings: Postings,
}

impl Inner {
    pub fn new() -> Self {
        Self {
            table: Table::new(PIECES),
            hasher: RandomState::new(),
            lengths: Lengths::new(),
            grams: GramCounts::default(),
        }
    }

    /// All of them, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &InnerLiteral> {
        self.table.iter()
    }

    pub fn insert(&mut self, text: &[u8], posting: Posting) {
        let hash = self.hasher.hash_one(text);
        match self.table.find_mut(hash, |literal| *literal.text == *text) {
            Some(literal) => _ = literal.postings.insert(posting),
            None => {
                self.lengths.add(text);
                self.grams.add(text);
                self.table.insert(hash, InnerLiteral { text: text.into(), postings: Few::One(posting) });
            }
        }
    }

    /// Whether the posting hung there.
    pub fn remove(&mut self, text: &[u8], posting: Posting) -> bool {
        let hash = self.hasher.hash_one(text);
        let Some(literal) = self.table.find_mut(hash, |literal| *literal.text == *text) else { return false };
        let removed = literal.postings.remove(posting);
        if literal.postings.is_empty() {
            self.table.remove(hash, |literal| *literal.text == *text);
            self.lengths.remove(text);
            self.grams.remove(text);
        }
        removed
    }

    pub fn at(&self, text: &[u8]) -> Option<&Postings> {
        self.get(text).map(|literal| &literal.postings)
    }

    fn get(&self, text: &[u8]) -> Option<&InnerLiteral> {
        self.table.find(self.hasher.hash_one(text), |literal| *literal.text == *text)
    }

    /// Appends what hangs on any text in the topic.
    pub fn find(&self, topic: &[u8], found: &mut Vec<Posting>) {
        if self.table.len() == 0 {
            return;
        }
        let mut literals: SmallVec<[&InnerLiteral; 16]> = SmallVec::new();
        for start in places(topic, self.grams.short > 0, |gram| self.grams.may_hold(gram)) {
            let rest = &topic[start..];
            let lengths = self.lengths.of_starts(rest);
            literals.extend(lengths.filter_map(|len| self.get(&rest[..len])));
        }
        // A text that occurs again and again counts once.
        literals.sort_unstable_by_key(|literal| ptr::from_ref(*literal));
        literals.dedup_by_key(|literal| ptr::from_ref(*literal));
        literals.iter().for_each(|literal| found.extend(literal.postings.iter()));
    }
}

/// How many texts there are by what they begin with, and how many of only three bytes.
#[derive(Default)]
struct GramCounts {
    /// By some bits of the gram; what has come to the top stays there. Made with the first.
    counts: Box<[u8]>,
    short: u32,
}

const GRAM_BITS: u32 = 16;

impl GramCounts {
    fn add(&mut self, text: &[u8]) {
        let Some((gram, short)) = Gram::of(text) else { return };
        self.short += u32::from(short);
        if self.counts.is_empty() {
            self.counts = vec![0; 1 << GRAM_BITS].into();
        }
        let count = &mut self.counts[gram.spread(GRAM_BITS)];
        *count = count.saturating_add(1);
    }

    fn remove(&mut self, text: &[u8]) {
        let Some((gram, short)) = Gram::of(text) else { return };
        self.short -= u32::from(short);
        let count = &mut self.counts[gram.spread(GRAM_BITS)];
        if *count < u8::MAX {
            *count -= 1;
        }
    }

    fn may_hold(&self, gram: Gram) -> bool {
        self.counts[gram.spread(GRAM_BITS)] > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_that_are_full_forget_nothing() {
        let mut counts = GramCounts::default();
        (0..300).for_each(|_| counts.add(b"abcd"));
        (0..299).for_each(|_| counts.remove(b"abcd"));
        let holds =
            |counts: &GramCounts, text: &[u8]| Gram::of(text).is_some_and(|(g, _)| counts.may_hold(g));
        assert!(holds(&counts, b"abcde") && !holds(&counts, b"abc"));
        counts.add(b"abc");
        assert_eq!((counts.short, holds(&counts, b"abc")), (1, true));
        counts.remove(b"abc");
        assert_eq!((counts.short, holds(&counts, b"abc")), (0, false));
    }

    #[test]
    fn texts_are_found_anywhere_and_once_and_go() {
        let mut inner = Inner::new();
        let texts: [&[u8]; 5] = [b"abc", b"abcd", b"bcde", b"0123456789ABCDEF", b"\0\0\0"];
        for (id, text) in (0..).zip(texts) {
            inner.insert(text, Posting::new(id, 0, false));
        }
        let found = |inner: &Inner, topic: &[u8]| {
            let mut found = Vec::new();
            inner.find(topic, &mut found);
            found.sort_unstable();
            found.into_iter().map(Posting::id).collect::<Vec<_>>()
        };
        assert_eq!(found(&inner, b"abcdabcde.abcd"), [0, 1, 2]);
        assert_eq!(found(&inner, b"x0123456789ABCDEF"), [3]);
        assert_eq!(found(&inner, &[0; 40]), [4]);
        assert!(found(&inner, b"ab").is_empty() && found(&inner, b"").is_empty());
        for (id, text) in (0..).zip(texts) {
            assert!(!inner.remove(text, Posting::new(99, 0, false)));
            assert!(inner.remove(text, Posting::new(id, 0, false)));
            assert!(!inner.remove(text, Posting::new(id, 0, false)));
        }
        assert_eq!((inner.table.len(), inner.lengths.of_starts(b"0123456789abcdef").count()), (0, 0));
        assert!(inner.grams.counts.iter().all(|count| *count == 0));
    }
}
