//! The expansions that came since the last merge: hash tables, which can be changed.

mod ends;
mod inner;
mod lengths;
mod pairs;

use smallvec::SmallVec;

pub(super) use self::ends::Ends;
pub(super) use self::inner::Inner;
use self::pairs::{Hashed, Pairs};
use super::anchor::Anchor;
use super::few::Few;
use super::hashes::{Hashes, Probe};
use super::ids::Posting;

/// Expansions by their anchors.
pub(super) struct Overlay {
    pub prefixes: Ends,
    /// Written backwards, as the base has them.
    pub suffixes: Ends,
    pub inner: Inner,
    pub pairs: Pairs,
    hashes: Hashes,
    postings: usize,
}

type Postings = Few<Posting>;

/// With as many, a table of 100,000 grows in steps of some hundred entries.
const PIECES: usize = 256;

impl Overlay {
    /// Without any; probes are read with the same hashes.
    pub fn new(hashes: Hashes) -> Self {
        Self {
            prefixes: Ends::new(),
            suffixes: Ends::new(),
            inner: Inner::new(),
            pairs: Pairs::new(),
            hashes,
            postings: 0,
        }
    }

    /// How many postings there are.
    pub fn len(&self) -> usize {
        self.postings
    }

    pub fn insert(&mut self, anchor: Anchor<'_>, posting: Posting) {
        self.postings += 1;
        match anchor {
            Anchor::Prefix(text) => {
                let hash = self.hash(text);
                self.prefixes.add(hash, text, |literal| _ = literal.postings.insert(posting));
            }
            Anchor::Suffix(text) => {
                let text = backwards(text);
                let hash = self.hash(&text);
                self.suffixes.add(hash, &text, |literal| _ = literal.postings.insert(posting));
            }
            Anchor::Inner(text) => self.inner.insert(text, posting),
            Anchor::Pair(prefix, suffix) => {
                let suffix = backwards(suffix);
                let [prefix, suffix] = self.hashed([prefix, &suffix]);
                if self.pairs.insert(prefix, suffix, posting) {
                    self.prefixes.add(prefix.0, prefix.1, |literal| literal.pairs += 1);
                    self.suffixes.add(suffix.0, suffix.1, |literal| literal.pairs += 1);
                }
            }
        }
    }

    /// Whether the posting hung there.
    pub fn remove(&mut self, anchor: Anchor<'_>, posting: Posting) -> bool {
        let removed = match anchor {
            Anchor::Prefix(text) => {
                let hash = self.hash(text);
                self.prefixes.remove(hash, text, Some(posting))
            }
            Anchor::Suffix(text) => {
                let text = backwards(text);
                let hash = self.hash(&text);
                self.suffixes.remove(hash, &text, Some(posting))
            }
            Anchor::Inner(text) => self.inner.remove(text, posting),
            Anchor::Pair(prefix, suffix) => {
                let suffix = backwards(suffix);
                let [prefix, suffix] = self.hashed([prefix, &suffix]);
                let removed = self.pairs.remove(prefix, suffix, posting);
                if removed && self.pairs.at(prefix, suffix).is_none() {
                    self.prefixes.remove(prefix.0, prefix.1, None);
                    self.suffixes.remove(suffix.0, suffix.1, None);
                }
                removed
            }
        };
        self.postings -= usize::from(removed);
        removed
    }

    /// What hangs on an anchor.
    pub fn at(&self, anchor: Anchor<'_>) -> impl Iterator<Item = Posting> {
        let postings = match anchor {
            Anchor::Prefix(text) => self.prefixes.at(self.hash(text), text),
            Anchor::Suffix(text) => {
                let text = backwards(text);
                self.suffixes.at(self.hash(&text), &text)
            }
            Anchor::Inner(text) => self.inner.at(text),
            Anchor::Pair(prefix, suffix) => {
                let suffix = backwards(suffix);
                let [prefix, suffix] = self.hashed([prefix, &suffix]);
                self.pairs.at(prefix, suffix)
            }
        };
        postings.into_iter().flat_map(Few::iter)
    }

    /// Appends what hangs on any anchor that is found in the topic.
    pub fn find(&self, probe: &Probe<'_>, found: &mut Vec<Posting>) {
        let mut heads: SmallVec<[Hashed<'_>; 16]> = SmallVec::new();
        self.prefixes.find(&self.hashes, probe.start, |hash, literal| {
            found.extend(literal.postings.iter());
            if literal.pairs > 0 {
                heads.push(Hashed(hash, &probe.start.bytes()[..literal.text.len()]));
            }
        });
        self.suffixes.find(&self.hashes, probe.back, |hash, literal| {
            found.extend(literal.postings.iter());
            if literal.pairs > 0 {
                let tail = Hashed(hash, &probe.back.bytes()[..literal.text.len()]);
                // Prefixes came with the shortest first.
                let fit = |head: &&Hashed<'_>| head.1.len() + tail.1.len() <= probe.topic.len();
                for head in heads.iter().take_while(fit) {
                    found.extend(self.pairs.at(*head, tail).into_iter().flat_map(Few::iter));
                }
            }
        });
        self.inner.find(probe.topic, found);
    }

    fn hash(&self, text: &[u8]) -> u64 {
        self.hashes.of(text)
    }

    fn hashed<'t>(&self, texts: [&'t [u8]; 2]) -> [Hashed<'t>; 2] {
        texts.map(|text| Hashed(self.hash(text), text))
    }
}

fn backwards(text: &[u8]) -> SmallVec<[u8; 64]> {
    text.iter().rev().copied().collect()
}

#[cfg(test)]
mod tests {
    use super::super::hashes::End;
    use super::*;
    use crate::pattern::index::anchor::examples::{ANCHORS, FOUND};

    /// The ids of what is found in a topic, repeats left out.
    fn found(overlay: &Overlay, topic: &str) -> Vec<u32> {
        let (mut start, mut back) = (End::default(), End::default());
        start.read(topic.as_bytes());
        back.read_backwards(topic.as_bytes());
        [&mut start, &mut back].into_iter().for_each(|end| overlay.hashes.prepare(end));
        let mut found = Vec::new();
        overlay.find(&Probe { topic: topic.as_bytes(), start: &start, back: &back }, &mut found);
        found.sort_unstable();
        found.dedup();
        found.into_iter().map(Posting::id).collect()
    }

    fn filled() -> Overlay {
        let mut overlay = Overlay::new(Hashes::new());
        for (anchor, id) in ANCHORS {
            overlay.insert(anchor, Posting::new(id, 0, false));
        }
        overlay
    }

    #[test]
    fn each_anchor_is_found_where_it_lies() {
        let overlay = filled();
        for (topic, wanted) in FOUND {
            assert_eq!(found(&overlay, topic), wanted, "{topic}");
        }
    }

    #[test]
    fn removal_leaves_nothing_behind() {
        let mut overlay = filled();
        let twin = Posting::new(99, 3, true);
        for (anchor, id) in ANCHORS {
            let posting = Posting::new(id, 0, false);
            overlay.insert(anchor, twin);
            assert!(overlay.at(anchor).eq([posting, twin]));
            assert!(overlay.remove(anchor, posting));
            assert!(!overlay.remove(anchor, posting));
            assert!(overlay.at(anchor).eq([twin]));
            assert!(overlay.remove(anchor, twin));
            assert_eq!(overlay.at(anchor).count(), 0);
        }
        assert_eq!(overlay.len(), 0);
        assert_eq!(overlay.inner.iter().count() + overlay.pairs.iter().count(), 0);
        for ends in [&overlay.prefixes, &overlay.suffixes] {
            assert_eq!(ends.iter().count(), 0);
        }
    }

    #[test]
    fn a_text_that_goes_leaves_the_pairs_that_have_it() {
        let mut overlay = Overlay::new(Hashes::new());
        let [first, second, third] = [1, 2, 3].map(|id| Posting::new(id, 0, false));
        overlay.insert(Anchor::Pair(b"ab", b"c"), first);
        overlay.insert(Anchor::Pair(b"ab", b"bc"), second);
        overlay.insert(Anchor::Prefix(b"ab"), third);
        assert!(overlay.remove(Anchor::Prefix(b"ab"), third));
        assert!(overlay.remove(Anchor::Pair(b"ab", b"c"), first));
        assert!(!overlay.remove(Anchor::Pair(b"a", b"bc"), second));
        assert_eq!(found(&overlay, "abbc"), [2]);
        assert!(overlay.remove(Anchor::Pair(b"ab", b"bc"), second));
        assert_eq!(overlay.prefixes.iter().count() + overlay.suffixes.iter().count(), 0);
    }
}
