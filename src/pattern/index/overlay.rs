//! The expansions that came since the last merge: hash tables, which can be changed.

use smallvec::SmallVec;

use super::anchor::{Anchor, INNER_BYTES};
use super::ids::Posting;
use super::rolling::{self, Rolling, TopicHashes};
use super::table::Table;
use crate::limits::PATTERN_BYTES;

/// Expansions by their anchors.
pub(super) struct Overlay {
    pub prefixes: Literals,
    /// Written backwards, as the base has them.
    pub suffixes: Literals,
    pub inner: Literals,
    pub pairs: Pairs,
    postings: usize,
}

/// What is looked at again and again while a topic is matched.
pub(super) struct Probe<'t> {
    pub topic: &'t [u8],
    pub rolling: &'t Rolling,
    pub hashes: &'t TopicHashes,
}

type Postings = SmallVec<[Posting; 4]>;

/// Postings by a literal text.
pub(super) struct Literals {
    table: Table<Literal>,
    sieve: Sieve,
}

pub(super) struct Literal {
    pub text: Box<[u8]>,
    pub postings: Postings,
}

/// Postings by prefix and suffix.
pub(super) struct Pairs {
    table: Table<Pair>,
    prefixes: Sieve,
    suffixes: Sieve,
}

pub(super) struct Pair {
    pub prefix: Box<[u8]>,
    /// Written backwards.
    pub suffix: Box<[u8]>,
    pub postings: Postings,
}

/// With as many, a table of 100,000 grows in steps of some hundred entries.
const PIECES: usize = 256;

impl Overlay {
    pub fn new() -> Self {
        Self {
            prefixes: Literals::new(),
            suffixes: Literals::new(),
            inner: Literals::new(),
            pairs: Pairs::new(),
            postings: 0,
        }
    }

    /// How many postings there are.
    pub fn len(&self) -> usize {
        self.postings
    }

    pub fn insert(&mut self, rolling: &Rolling, anchor: Anchor<'_>, posting: Posting) {
        self.postings += 1;
        match anchor {
            Anchor::Prefix(text) => self.prefixes.insert(rolling.hash(text), text.into(), posting),
            Anchor::Suffix(text) => self.suffixes.insert(rolling.hash(text), backwards(text), posting),
            Anchor::Inner(text) => self.inner.insert(rolling.hash(text), text.into(), posting),
            Anchor::Pair(prefix, suffix) => self.pairs.insert(rolling, prefix, suffix, posting),
        }
    }

    /// Whether the posting hung there.
    pub fn remove(&mut self, rolling: &Rolling, anchor: Anchor<'_>, posting: Posting) -> bool {
        let removed = match anchor {
            Anchor::Prefix(text) => self.prefixes.remove(rolling.hash(text), text, posting),
            Anchor::Suffix(text) => self.suffixes.remove(rolling.hash(text), &backwards(text), posting),
            Anchor::Inner(text) => self.inner.remove(rolling.hash(text), text, posting),
            Anchor::Pair(prefix, suffix) => self.pairs.remove(rolling, prefix, suffix, posting),
        };
        self.postings -= usize::from(removed);
        removed
    }

    /// What hangs on an anchor.
    pub fn at(&self, rolling: &Rolling, anchor: Anchor<'_>) -> &[Posting] {
        match anchor {
            Anchor::Prefix(text) => self.prefixes.at(rolling.hash(text), |found| found == text),
            Anchor::Suffix(text) => self.suffixes.at(rolling.hash(text), |found| is_backwards(found, text)),
            Anchor::Inner(text) => self.inner.at(rolling.hash(text), |found| found == text),
            Anchor::Pair(prefix, suffix) => {
                self.pairs.at(rolling.hash(prefix), rolling.hash(suffix), prefix, suffix)
            }
        }
    }

    /// Appends what hangs on any anchor that is found in the topic; some of it may come twice.
    pub fn find(&self, probe: &Probe<'_>, found: &mut Vec<Posting>) {
        let Probe { topic, rolling, hashes } = *probe;
        for len in self.prefixes.sieve.lengths(topic.len()) {
            let hash = rolling.stretch(hashes, 0, len);
            found.extend_from_slice(self.prefixes.at(hash, |text| text == &topic[..len]));
        }
        for len in self.suffixes.sieve.lengths(topic.len()) {
            let start = topic.len() - len;
            let hash = rolling.stretch(hashes, start, len);
            found.extend_from_slice(self.suffixes.at(hash, |text| is_backwards(text, &topic[start..])));
        }
        self.pairs.find(probe, found);
        self.find_inner(probe, found);
    }

    fn find_inner(&self, probe: &Probe<'_>, found: &mut Vec<Posting>) {
        let Probe { topic, rolling, hashes } = *probe;
        // A text that occurs again and again is looked up once.
        let mut places: SmallVec<[(u64, &[u8]); 16]> = SmallVec::new();
        for len in self.inner.sieve.lengths(topic.len().min(*INNER_BYTES.end())) {
            for start in 0..=topic.len() - len {
                let hash = rolling.stretch(hashes, start, len);
                if self.inner.sieve.may_hold(hash) {
                    places.push((hash, &topic[start..start + len]));
                }
            }
        }
        places.sort_unstable_by_key(|(hash, _)| *hash);
        places.dedup();
        for (hash, place) in places {
            found.extend_from_slice(self.inner.at(hash, |text| text == place));
        }
    }
}

impl Literals {
    fn new() -> Self {
        Self { table: Table::new(PIECES), sieve: Sieve::new() }
    }

    pub fn iter(&self) -> impl Iterator<Item = &Literal> {
        self.table.iter()
    }

    fn insert(&mut self, hash: u64, text: Box<[u8]>, posting: Posting) {
        match self.table.find_mut(hash, |literal| literal.text == text) {
            Some(literal) => literal.postings.push(posting),
            None => {
                self.sieve.add(text.len(), hash);
                self.table.insert(hash, Literal { text, postings: SmallVec::from_iter([posting]) });
            }
        }
    }

    fn remove(&mut self, hash: u64, text: &[u8], posting: Posting) -> bool {
        let Some(literal) = self.table.find_mut(hash, |literal| *literal.text == *text) else { return false };
        let removed = take_out(&mut literal.postings, posting);
        if literal.postings.is_empty() {
            self.table.remove(hash, |literal| *literal.text == *text);
            self.sieve.remove(text.len(), hash);
        }
        removed
    }

    fn at(&self, hash: u64, is_it: impl Fn(&[u8]) -> bool) -> &[Posting] {
        if !self.sieve.may_hold(hash) {
            return &[];
        }
        self.table.find(hash, |literal| is_it(&literal.text)).map_or(&[], |literal| &literal.postings)
    }
}

impl Pairs {
    fn new() -> Self {
        Self { table: Table::new(PIECES), prefixes: Sieve::new(), suffixes: Sieve::new() }
    }

    pub fn iter(&self) -> impl Iterator<Item = &Pair> {
        self.table.iter()
    }

    fn insert(&mut self, rolling: &Rolling, prefix: &[u8], suffix: &[u8], posting: Posting) {
        let (head, tail) = (rolling.hash(prefix), rolling.hash(suffix));
        let hash = rolling::pair(head, tail);
        match self.table.find_mut(hash, |pair| pair.is(prefix, suffix)) {
            Some(pair) => pair.postings.push(posting),
            None => {
                self.prefixes.add(prefix.len(), head);
                self.suffixes.add(suffix.len(), tail);
                let postings = SmallVec::from_iter([posting]);
                self.table.insert(hash, Pair { prefix: prefix.into(), suffix: backwards(suffix), postings });
            }
        }
    }

    fn remove(&mut self, rolling: &Rolling, prefix: &[u8], suffix: &[u8], posting: Posting) -> bool {
        let (head, tail) = (rolling.hash(prefix), rolling.hash(suffix));
        let hash = rolling::pair(head, tail);
        let Some(pair) = self.table.find_mut(hash, |pair| pair.is(prefix, suffix)) else { return false };
        let removed = take_out(&mut pair.postings, posting);
        if pair.postings.is_empty() {
            self.table.remove(hash, |pair| pair.is(prefix, suffix));
            self.prefixes.remove(prefix.len(), head);
            self.suffixes.remove(suffix.len(), tail);
        }
        removed
    }

    fn at(&self, head: u64, tail: u64, prefix: &[u8], suffix: &[u8]) -> &[Posting] {
        let found = self.table.find(rolling::pair(head, tail), |pair| pair.is(prefix, suffix));
        found.map_or(&[], |pair| &pair.postings)
    }

    fn find(&self, probe: &Probe<'_>, found: &mut Vec<Posting>) {
        let Probe { topic, rolling, hashes } = *probe;
        let heads = self.prefixes.lengths(topic.len()).map(|len| (len, rolling.stretch(hashes, 0, len)));
        let tails = |most| {
            let start_and_hash = |len| (topic.len() - len, rolling.stretch(hashes, topic.len() - len, len));
            let tails = self.suffixes.lengths(most).map(start_and_hash);
            tails.filter(|(_, hash)| self.suffixes.may_hold(*hash))
        };
        for (len, head) in heads.filter(|(_, hash)| self.prefixes.may_hold(*hash)) {
            for (start, tail) in tails(topic.len() - len) {
                found.extend_from_slice(self.at(head, tail, &topic[..len], &topic[start..]));
            }
        }
    }
}

impl Pair {
    fn is(&self, prefix: &[u8], suffix: &[u8]) -> bool {
        *self.prefix == *prefix && is_backwards(&self.suffix, suffix)
    }
}

/// Which literals there may be, by length and by hash: most look-ups end here.
struct Sieve {
    /// How many there are of each length; longer ones than a pattern there are not.
    by_length: [u32; PATTERN_BYTES + 1],
    /// A bit for each length of which there are some.
    lengths: [u64; PATTERN_BYTES / 64 + 1],
    /// How many there are by some bits of their hash; what has come to the top stays there. Made with the first.
    by_hash: Box<[u8]>,
}

/// Bits of a hash that a sieve looks at.
const SIEVE_BITS: u32 = 17;

impl Sieve {
    fn new() -> Self {
        Self {
            by_length: [0; PATTERN_BYTES + 1],
            lengths: [0; PATTERN_BYTES / 64 + 1],
            by_hash: Box::default(),
        }
    }

    fn add(&mut self, len: usize, hash: u64) {
        self.by_length[len] += 1;
        self.lengths[len / 64] |= 1 << (len % 64);
        if self.by_hash.is_empty() {
            self.by_hash = vec![0; 1 << SIEVE_BITS].into();
        }
        let count = &mut self.by_hash[sieve_place(hash)];
        *count = count.saturating_add(1);
    }

    fn remove(&mut self, len: usize, hash: u64) {
        self.by_length[len] -= 1;
        if self.by_length[len] == 0 {
            self.lengths[len / 64] &= !(1 << (len % 64));
        }
        let count = &mut self.by_hash[sieve_place(hash)];
        if *count < u8::MAX {
            *count -= 1;
        }
    }

    /// The lengths of which there are some, up to `most`, ascending.
    fn lengths(&self, most: usize) -> impl Iterator<Item = usize> {
        let in_word = |(word, bits): (usize, u64)| {
            let rest = std::iter::successors(Some(bits), |bits| Some(bits & bits.wrapping_sub(1)));
            rest.take_while(|bits| *bits != 0).map(move |bits| word * 64 + bits.trailing_zeros() as usize)
        };
        self.lengths.iter().copied().enumerate().flat_map(in_word).take_while(move |len| *len <= most)
    }

    fn may_hold(&self, hash: u64) -> bool {
        self.by_hash.get(sieve_place(hash)).is_some_and(|count| *count > 0)
    }
}

fn sieve_place(hash: u64) -> usize {
    (hash >> (u64::BITS - SIEVE_BITS)) as usize
}

fn take_out(postings: &mut Postings, posting: Posting) -> bool {
    let place = postings.iter().position(|found| *found == posting);
    place.map(|place| postings.swap_remove(place)).is_some()
}

fn backwards(text: &[u8]) -> Box<[u8]> {
    text.iter().rev().copied().collect()
}

fn is_backwards(one: &[u8], other: &[u8]) -> bool {
    one.iter().rev().eq(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::index::anchor::examples::{ANCHORS, FOUND};

    /// The ids of what is found in a topic, repeats left out.
    fn found(overlay: &Overlay, rolling: &Rolling, topic: &str) -> Vec<u32> {
        let mut hashes = TopicHashes::default();
        rolling.read(topic.as_bytes(), &mut hashes);
        let mut found = Vec::new();
        overlay.find(&Probe { topic: topic.as_bytes(), rolling, hashes: &hashes }, &mut found);
        found.sort_unstable();
        found.dedup();
        found.into_iter().map(Posting::id).collect()
    }

    fn filled(rolling: &Rolling) -> Overlay {
        let mut overlay = Overlay::new();
        for (anchor, id) in ANCHORS {
            overlay.insert(rolling, anchor, Posting::new(id, 0, false));
        }
        overlay
    }

    #[test]
    fn each_anchor_is_found_where_it_lies() {
        let rolling = Rolling::new();
        let overlay = filled(&rolling);
        for (topic, wanted) in FOUND {
            assert_eq!(found(&overlay, &rolling, topic), wanted, "{topic}");
        }
    }

    #[test]
    fn removal_leaves_nothing_behind() {
        let rolling = Rolling::new();
        let mut overlay = filled(&rolling);
        let twin = Posting::new(99, 3, true);
        for (anchor, id) in ANCHORS {
            let posting = Posting::new(id, 0, false);
            overlay.insert(&rolling, anchor, twin);
            assert_eq!(overlay.at(&rolling, anchor), [posting, twin]);
            assert!(overlay.remove(&rolling, anchor, posting));
            assert!(!overlay.remove(&rolling, anchor, posting));
            assert_eq!(overlay.at(&rolling, anchor), [twin]);
            assert!(overlay.remove(&rolling, anchor, twin));
            assert!(overlay.at(&rolling, anchor).is_empty());
        }
        assert_eq!(overlay.len(), 0);
        let sieves = [
            &overlay.prefixes.sieve,
            &overlay.suffixes.sieve,
            &overlay.inner.sieve,
            &overlay.pairs.prefixes,
            &overlay.pairs.suffixes,
        ];
        for sieve in sieves {
            assert_eq!(sieve.lengths(PATTERN_BYTES).count(), 0);
            assert!(sieve.by_hash.iter().all(|count| *count == 0));
        }
    }

    #[test]
    fn a_sieve_that_is_full_in_one_place_forgets_nothing() {
        let mut sieve = Sieve::new();
        (0..300).for_each(|_| sieve.add(256, 7));
        (0..299).for_each(|_| sieve.remove(256, 7));
        assert!(sieve.may_hold(7));
        assert_eq!(sieve.lengths(256).collect::<Vec<_>>(), [256]);
        assert_eq!(sieve.lengths(255).count(), 0);
    }
}
