//! The expansions up to the last merge: packed, and never changed.

use ahash::RandomState;
use fst::Streamer;
use fst::raw::{Builder, Fst};
use hashbrown::HashTable;

use super::anchor::{Anchor, INNER_BYTES};
use super::ids::{IdSet, Posting};
use super::overlay::{self, Overlay, Pair};

/// Expansions by their anchors; shared by the index and whoever builds the next one.
pub(super) struct Base {
    prefixes: Literals,
    /// Written backwards, so that a topic is read from its end.
    suffixes: Literals,
    inner: Literals,
    pairs: Pairs,
    grams: Grams,
}

/// Postings by a literal text. Texts are numbered in their order: that is their rank.
struct Literals {
    /// Text to twice its rank, plus one where a pair has it; none where there are no texts.
    ranks: Option<Fst<Vec<u8>>>,
    /// By rank.
    heads: Box<[Head]>,
    /// Where each list begins, and where the last one ends.
    starts: Box<[u32]>,
    lists: Box<[Posting]>,
}

/// What hangs on a text: its only posting, or the number of a list, be it empty.
#[derive(Clone, Copy)]
struct Head(u32);

impl Head {
    fn only(posting: Posting) -> Self {
        Self(posting.bits() << 1)
    }

    fn list(number: usize) -> Self {
        Self((number as u32) << 1 | 1)
    }

    fn unpack(self) -> Result<Posting, usize> {
        if self.0 & 1 == 0 { Ok(Posting::from_bits(self.0 >> 1)) } else { Err((self.0 >> 1) as usize) }
    }
}

/// Postings by the ranks of a prefix and a suffix.
struct Pairs {
    /// In order, so that those of one pair are neighbours.
    entries: Box<[PairEntry]>,
    /// The first entry of each pair.
    firsts: HashTable<u32>,
    hasher: RandomState,
}

type PairEntry = (u32, u32, Posting);

/// Scratch of one search, kept for the next.
#[derive(Default)]
pub(super) struct Ranks {
    prefixes: Vec<(u32, usize)>,
    suffixes: Vec<(u32, usize)>,
    inner: Vec<u32>,
}

impl Base {
    pub fn new() -> Self {
        Self {
            prefixes: Literals::default(),
            suffixes: Literals::default(),
            inner: Literals::default(),
            pairs: Pairs::new(Vec::new()),
            grams: Grams::of(&Literals::default()),
        }
    }

    /// How many postings there are, those of ids that are gone included.
    pub fn len(&self) -> usize {
        let literals = [&self.prefixes, &self.suffixes, &self.inner];
        literals.iter().map(|literals| literals.postings()).sum::<usize>() + self.pairs.entries.len()
    }

    /// Appends what hangs on any anchor that is found in the topic.
    pub fn find(&self, topic: &[u8], ranks: &mut Ranks, found: &mut Vec<Posting>) {
        ranks.prefixes.clear();
        self.prefixes.walk(topic.iter().copied(), |rank, len, in_pair| {
            found.extend(self.prefixes.at(rank));
            if in_pair {
                ranks.prefixes.push((rank, len));
            }
        });
        ranks.suffixes.clear();
        self.suffixes.walk(topic.iter().rev().copied(), |rank, len, in_pair| {
            found.extend(self.suffixes.at(rank));
            if in_pair {
                ranks.suffixes.push((rank, len));
            }
        });
        for (prefix, head) in &ranks.prefixes {
            // Suffixes come with the shortest first.
            for (suffix, _) in ranks.suffixes.iter().take_while(|(_, tail)| head + tail <= topic.len()) {
                found.extend(self.pairs.at(*prefix, *suffix));
            }
        }
        ranks.inner.clear();
        let mut walked = [0; WALKED];
        for start in self.grams.places(topic) {
            if is_repeat(&topic[start..], &mut walked) {
                continue;
            }
            let most = topic.len().min(start + INNER_BYTES.end());
            self.inner.walk(topic[start..most].iter().copied(), |rank, _, _| ranks.inner.push(rank));
        }
        // A text that occurs again and again counts once.
        ranks.inner.sort_unstable();
        ranks.inner.dedup();
        ranks.inner.iter().for_each(|rank| found.extend(self.inner.at(*rank)));
    }

    /// What hangs on an anchor.
    pub fn at(&self, anchor: Anchor<'_>) -> impl Iterator<Item = Posting> {
        let backwards = |text: &[u8]| text.iter().rev().copied().collect::<Vec<_>>();
        let (literals, rank, pair) = match anchor {
            Anchor::Prefix(text) => (&self.prefixes, self.prefixes.rank(text), None),
            Anchor::Suffix(text) => (&self.suffixes, self.suffixes.rank(&backwards(text)), None),
            Anchor::Inner(text) => (&self.inner, self.inner.rank(text), None),
            Anchor::Pair(prefix, suffix) => {
                let pair = self.prefixes.rank(prefix).zip(self.suffixes.rank(&backwards(suffix)));
                (&self.prefixes, None, pair)
            }
        };
        let in_pair = pair.into_iter().flat_map(|(prefix, suffix)| self.pairs.at(prefix, suffix));
        rank.into_iter().flat_map(|rank| literals.at(rank)).chain(in_pair)
    }

    /// The base that holds what `self` and the overlay hold, without the postings of ids that are `gone`.
    pub fn merged(&self, overlay: &Overlay, gone: &IdSet) -> Base {
        let kept = self.pairs.entries.iter().copied();
        let kept: Vec<PairEntry> = kept.filter(|(_, _, posting)| !gone.contains(posting.id())).collect();
        let added: Vec<&Pair> = overlay.pairs.iter().collect();

        let in_pair = kept.iter().map(|(prefix, _, _)| *prefix).collect();
        let delta = delta(&overlay.prefixes, added.iter().map(|pair| &*pair.prefix));
        let (prefixes, prefix_ranks) = self.prefixes.merged(&delta, &in_pair, gone);

        let in_pair = kept.iter().map(|(_, suffix, _)| *suffix).collect();
        let delta = self::delta(&overlay.suffixes, added.iter().map(|pair| &*pair.suffix));
        let (suffixes, suffix_ranks) = self.suffixes.merged(&delta, &in_pair, gone);

        let delta = self::delta(&overlay.inner, std::iter::empty());
        let (inner, _) = self.inner.merged(&delta, &IdSet::default(), gone);

        let kept = kept.into_iter().map(|(prefix, suffix, posting)| {
            (prefix_ranks[prefix as usize], suffix_ranks[suffix as usize], posting)
        });
        let added = added.iter().flat_map(|pair| {
            let ranks = prefixes.rank(&pair.prefix).zip(suffixes.rank(&pair.suffix));
            debug_assert!(ranks.is_some(), "both were just added");
            let entry = |posting: &Posting| ranks.map(|(prefix, suffix)| (prefix, suffix, *posting));
            pair.postings.iter().filter_map(entry).collect::<Vec<_>>()
        });
        let pairs = Pairs::new(kept.chain(added).collect());
        let grams = Grams::of(&inner);
        Base { prefixes, suffixes, inner, pairs, grams }
    }
}

/// What an overlay adds at a text: postings, or a pair that has it.
type Added<'o> = (&'o [u8], Option<&'o [Posting]>);

/// All of it, texts in order.
fn delta<'o>(literals: &'o overlay::Literals, in_pairs: impl Iterator<Item = &'o [u8]>) -> Vec<Added<'o>> {
    let literals = literals.iter().map(|literal| (&*literal.text, Some(&*literal.postings)));
    let mut delta: Vec<Added<'_>> = literals.chain(in_pairs.map(|text| (text, None))).collect();
    delta.sort_unstable_by_key(|(text, _)| *text);
    delta
}

impl Default for Literals {
    fn default() -> Self {
        Packer::default().packed()
    }
}

impl Literals {
    fn len(&self) -> usize {
        self.heads.len()
    }

    fn postings(&self) -> usize {
        self.heads.len() - (self.starts.len() - 1) + self.lists.len()
    }

    fn at(&self, rank: u32) -> impl Iterator<Item = Posting> {
        let (only, list) = match self.heads[rank as usize].unpack() {
            Ok(only) => (Some(only), &[][..]),
            Err(list) => (None, &self.lists[self.starts[list] as usize..self.starts[list + 1] as usize]),
        };
        only.into_iter().chain(list.iter().copied())
    }

    fn rank(&self, text: &[u8]) -> Option<u32> {
        let value = self.ranks.as_ref()?.get(text)?;
        Some((value.value() / 2) as u32)
    }

    /// Visits each text that the bytes begin with, the shortest first: its rank, its length, and whether a pair has
    /// it.
    fn walk(&self, mut bytes: impl Iterator<Item = u8>, mut visit: impl FnMut(u32, usize, bool)) {
        let Some(ranks) = &self.ranks else { return };
        let mut node = ranks.root();
        let (mut value, mut len) = (0, 0);
        loop {
            if node.is_final() {
                let value = value + node.final_output().value();
                visit((value / 2) as u32, len, value % 2 != 0);
            }
            let Some(at) = bytes.next().and_then(|byte| node.find_input(byte)) else { return };
            let transition = node.transition(at);
            value += transition.out.value();
            node = ranks.node(transition.addr);
            len += 1;
        }
    }

    /// With what was added and without what is gone, and the new rank of each old one that is left. `in_pair` are
    /// the ranks that old pairs still need.
    fn merged(&self, delta: &[Added<'_>], in_pair: &IdSet, gone: &IdSet) -> (Literals, Vec<u32>) {
        let mut new_ranks = vec![NO_RANK; self.len()];
        let mut packer = Packer::default();
        let mut delta = delta.chunk_by(|(one, _), (other, _)| one == other).peekable();
        let mut old = self.ranks.as_ref().map(Fst::stream);
        while let Some((text, value)) = old.as_mut().and_then(Streamer::next) {
            while let Some(added) = delta.next_if(|added| added[0].0 < text) {
                packer.add(added[0].0, std::iter::empty(), false, added);
            }
            let rank = (value.value() / 2) as u32;
            let added = delta.next_if(|added| added[0].0 == text).unwrap_or_default();
            let left = self.at(rank).filter(|posting| !gone.contains(posting.id()));
            new_ranks[rank as usize] = packer.add(text, left, in_pair.contains(rank), added);
        }
        for added in delta {
            packer.add(added[0].0, std::iter::empty(), false, added);
        }
        (packer.packed(), new_ranks)
    }
}

/// Takes texts in their order and gives each its rank.
#[derive(Default)]
struct Packer {
    ranks: Option<Builder<Vec<u8>>>,
    heads: Vec<Head>,
    starts: Vec<u32>,
    lists: Vec<Posting>,
    /// Scratch.
    list: Vec<Posting>,
}

/// That of a text which is left out.
const NO_RANK: u32 = u32::MAX;

impl Packer {
    /// Adds a text with what is left of its postings and what was added, unless there is neither.
    fn add(
        &mut self,
        text: &[u8],
        left: impl Iterator<Item = Posting>,
        mut in_pair: bool,
        added: &[Added<'_>],
    ) -> u32 {
        self.list.clear();
        self.list.extend(left);
        for (_, postings) in added {
            self.list.extend_from_slice(postings.unwrap_or_default());
            in_pair |= postings.is_none();
        }
        let head = match self.list[..] {
            [] if !in_pair => return NO_RANK,
            [only] => Head::only(only),
            _ => {
                self.starts.push(self.lists.len() as u32);
                self.lists.extend_from_slice(&self.list);
                Head::list(self.starts.len() - 1)
            }
        };
        let rank = self.heads.len() as u32;
        self.heads.push(head);
        let inserted = self
            .ranks
            .get_or_insert_with(Builder::memory)
            .insert(text, u64::from(rank) * 2 + u64::from(in_pair));
        debug_assert!(inserted.is_ok(), "texts come in order and once, and memory takes all");
        rank
    }

    fn packed(mut self) -> Literals {
        self.starts.push(self.lists.len() as u32);
        let (heads, starts, lists) = (self.heads.into(), self.starts.into(), self.lists.into());
        Literals { ranks: self.ranks.map(Builder::into_fst), heads, starts, lists }
    }
}

impl Pairs {
    fn new(mut entries: Vec<PairEntry>) -> Self {
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

    fn at(&self, prefix: u32, suffix: u32) -> impl Iterator<Item = Posting> {
        let is_it = move |entry: &PairEntry| (entry.0, entry.1) == (prefix, suffix);
        let hash = self.hasher.hash_one((prefix, suffix));
        let first = self.firsts.find(hash, |first| is_it(&self.entries[*first as usize]));
        let run = first.map_or(&[][..], |first| &self.entries[*first as usize..]);
        run.iter().take_while(move |entry| is_it(entry)).map(|entry| entry.2)
    }
}

/// So many places of a topic are remembered as walked.
const WALKED: usize = 16;

/// Whether the text begins with as many bytes as matter, and was walked from such a place before: in a topic that
/// repeats itself each walk is long.
fn is_repeat(text: &[u8], walked: &mut [u128; WALKED]) -> bool {
    const _: () = assert!(*INNER_BYTES.end() == size_of::<u128>());
    let Some((bytes, _)) = text.split_first_chunk() else { return false };
    let bytes = u128::from_ne_bytes(*bytes);
    let mixed = (bytes as u64 ^ (bytes >> 64) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let place = &mut walked[mixed as usize >> (usize::BITS - WALKED.ilog2())];
    std::mem::replace(place, bytes) == bytes
}

/// Which three or four bytes the inner texts begin with: few places of a topic are worth a walk.
struct Grams {
    /// A bit for each gram, by the highest bits of a hash.
    bits: Box<[u64]>,
    shift: u32,
    /// Whether some texts have only three bytes.
    short: bool,
}

/// Bits for each text; most share their grams with others.
const BITS_PER_TEXT: usize = 8;

impl Grams {
    fn of(texts: &Literals) -> Self {
        let bits = (texts.len() * BITS_PER_TEXT).next_power_of_two().max(64);
        let mut grams =
            Self { bits: vec![0; bits / 64].into(), shift: 64 - bits.trailing_zeros(), short: false };
        let mut stream = texts.ranks.as_ref().map(Fst::stream);
        while let Some((text, _)) = stream.as_mut().and_then(Streamer::next) {
            let gram = match text {
                [a, b, c] => {
                    grams.short = true;
                    short_gram([*a, *b, *c])
                }
                [a, b, c, d, ..] => gram([*a, *b, *c, *d]),
                _ => continue,
            };
            let (word, bit) = grams.place(gram);
            grams.bits[word] |= bit;
        }
        grams
    }

    /// Where in the topic a text may begin.
    fn places(&self, topic: &[u8]) -> impl Iterator<Item = usize> {
        let holds = |gram| {
            let (word, bit) = self.place(gram);
            self.bits[word] & bit != 0
        };
        let long = topic.windows(4).map(move |w| holds(gram([w[0], w[1], w[2], w[3]])));
        let short = topic.windows(3).map(move |w| self.short && holds(short_gram([w[0], w[1], w[2]])));
        let either = short.zip(long.chain([false])).enumerate();
        either.filter(|(_, (short, long))| *short || *long).map(|(at, _)| at)
    }

    fn place(&self, gram: u64) -> (usize, u64) {
        let bit = gram.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift;
        (bit as usize / 64, 1 << (bit % 64))
    }
}

fn gram(bytes: [u8; 4]) -> u64 {
    u64::from(u32::from_le_bytes(bytes))
}

fn short_gram([a, b, c]: [u8; 3]) -> u64 {
    gram([a, b, c, 0]) | 1 << 32
}

#[cfg(test)]
mod tests {
    use super::Anchor::*;
    use super::*;
    use crate::pattern::index::anchor::examples::{ANCHORS, FOUND};
    use crate::pattern::index::rolling::Rolling;

    fn merged(base: &Base, added: &[(Anchor<'_>, u32)], gone: &[u32]) -> Base {
        let rolling = Rolling::new();
        let mut overlay = Overlay::new();
        for (anchor, id) in added {
            overlay.insert(&rolling, *anchor, Posting::new(*id, 0, false));
        }
        base.merged(&overlay, &gone.iter().copied().collect())
    }

    fn found(base: &Base, topic: &str) -> Vec<u32> {
        let mut found = Vec::new();
        base.find(topic.as_bytes(), &mut Ranks::default(), &mut found);
        let mut ids: Vec<u32> = found.into_iter().map(Posting::id).collect();
        ids.sort();
        ids
    }

    #[test]
    fn each_anchor_is_found_where_it_lies() {
        let base = merged(&Base::new(), &ANCHORS, &[]);
        assert_eq!(base.len(), 9);
        for (topic, wanted) in FOUND {
            assert_eq!(found(&base, topic), wanted, "{topic}");
        }
        for (anchor, id) in ANCHORS {
            assert!(base.at(anchor).eq([Posting::new(id, 0, false)]));
        }
        assert_eq!(base.at(Pair(b"ab", b"a")).chain(base.at(Inner(b"abc"))).count(), 0);
    }

    #[test]
    fn nothing_is_found_in_an_empty_base() {
        assert!(found(&Base::new(), "").is_empty() && found(&Base::new(), "abc").is_empty());
        assert_eq!(Base::new().len(), 0);
    }

    #[test]
    fn a_merge_keeps_what_is_left_and_drops_the_texts_of_what_is_gone() {
        let first = merged(&Base::new(), &ANCHORS, &[]);
        let more =
            [(Prefix(b"ab"), 11), (Pair(b"ab", b"ba"), 15), (Pair(b"a", b"a"), 16), (Inner(b"xxx"), 17)];
        let second = merged(&first, &more, &[2, 4, 6, 8]);
        assert_eq!(second.len(), 9);
        assert_eq!(found(&second, "abcba"), [0, 1, 3, 5, 11, 15, 16]);
        assert_eq!(found(&second, "xxxxcabxxxx"), [0, 7, 17]);
        assert_eq!((second.prefixes.rank(b"abc"), second.inner.len()), (None, 2));

        let third = merged(&second, &[], &[0, 1, 3, 5, 7, 11, 15, 16, 17]);
        assert_eq!((third.len(), third.prefixes.len(), third.suffixes.len()), (0, 0, 0));
        // What the old one holds is as it was.
        assert_eq!(found(&first, "abcba"), [0, 1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn places_that_differ_late_are_all_walked() {
        let anchors =
            [(Inner(b"abcdefgh12345678"), 1), (Inner(b"abcdefgh12345679"), 2), (Inner(b"abcdefgh"), 3)];
        let base = merged(&Base::new(), &anchors, &[]);
        assert_eq!(found(&base, "abcdefgh12345678"), [1, 3]);
        assert_eq!(found(&base, "abcdefgh12345678.abcdefgh12345679.abcdefgh12345678."), [1, 2, 3]);
        assert_eq!(found(&base, "abcdefgh.......0.abcdefgh12345679"), [2, 3]);
    }

    #[test]
    fn a_text_may_begin_at_any_byte_and_at_the_end() {
        let anchors = [(Inner("☕é".as_bytes()), 1), (Inner(&"☕é".as_bytes()[1..]), 2), (Inner(b"abc"), 3)];
        let base = merged(&Base::new(), &anchors, &[]);
        assert_eq!(found(&base, "x☕éx"), [1, 2]);
        assert_eq!(found(&base, "éabc"), [3]);
        assert_eq!(found(&base, "abcabc"), [3]);
    }
}
