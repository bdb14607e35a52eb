//! The expansions up to the last merge: packed, and never changed.

mod grams;
mod jumps;
mod literals;
mod pairs;

use self::grams::Grams;
use self::jumps::Place;
use self::literals::{Added, Literals};
use self::pairs::{PairEntry, Pairs};
use super::anchor::{Anchor, INNER_BYTES};
use super::hashes::Probe;
use super::ids::{IdSet, Posting};
use super::overlay::{Ends, Overlay};

/// Expansions by their anchors; shared by the index and whoever builds the next one.
pub(super) struct Base {
    prefixes: Literals,
    /// Written backwards, so that a topic is read from its end.
    suffixes: Literals,
    inner: Literals,
    pairs: Pairs,
    grams: Grams,
}

/// For each kind of anchor there are at most a jump for so many patterns: some 10 bytes each.
const JUMPS_AMONG: usize = 3;

/// Scratch of one search, kept for the next.
#[derive(Default)]
pub(super) struct Ranks {
    prefixes: Vec<(u32, usize)>,
    suffixes: Vec<(u32, usize)>,
    inner: Vec<u32>,
}

/// Where walks begin.
#[derive(Clone, Copy)]
pub(super) struct Begun {
    prefixes: Option<Place>,
    suffixes: Option<Place>,
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
        literals.iter().map(|literals| literals.postings()).sum::<usize>() + self.pairs.len()
    }

    /// Where the walks along a topic begin. What is done before [`find`](Self::find) takes less time: they wait for
    /// memory meanwhile.
    pub fn begin(&self, probe: &Probe<'_>) -> Begun {
        Begun {
            prefixes: self.prefixes.begin(probe.start.bytes()),
            suffixes: self.suffixes.begin(probe.back.bytes()),
        }
    }

    /// Appends what hangs on any anchor that is found in the topic.
    pub fn find(&self, probe: &Probe<'_>, begun: Begun, ranks: &mut Ranks, found: &mut Vec<Posting>) {
        let Ranks { prefixes, suffixes, inner } = ranks;
        let topic = probe.topic;
        let ends = [
            (&self.prefixes, begun.prefixes, probe.start, &mut *prefixes),
            (&self.suffixes, begun.suffixes, probe.back, &mut *suffixes),
        ];
        for (literals, from, end, in_pairs) in ends {
            in_pairs.clear();
            literals.walk(from, end.bytes(), |rank, len, in_pair| {
                found.extend(literals.at(rank));
                if in_pair {
                    in_pairs.push((rank, len));
                }
            });
        }
        for (prefix, head) in prefixes {
            // Suffixes come with the shortest first.
            for (suffix, _) in suffixes.iter().take_while(|(_, tail)| *head + tail <= topic.len()) {
                found.extend(self.pairs.at(*prefix, *suffix));
            }
        }
        inner.clear();
        for start in self.grams.places(topic) {
            let bytes = &topic[start..topic.len().min(start + INNER_BYTES.end())];
            self.inner.walk(self.inner.begin(bytes), bytes, |rank, _, _| inner.push(rank));
        }
        // A text that occurs again and again counts once.
        inner.sort_unstable();
        inner.dedup();
        inner.iter().for_each(|rank| found.extend(self.inner.at(*rank)));
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
        let kept: Vec<PairEntry> = self.pairs.iter().filter(|(_, _, p)| !gone.contains(p.id())).collect();

        let most_jumps = (self.len() + overlay.len()) / JUMPS_AMONG;
        let in_pair = kept.iter().map(|(prefix, _, _)| *prefix).collect();
        let (prefixes, prefix_ranks) =
            self.prefixes.merged(&at_ends(&overlay.prefixes), &in_pair, gone, most_jumps);

        let in_pair = kept.iter().map(|(_, suffix, _)| *suffix).collect();
        let (suffixes, suffix_ranks) =
            self.suffixes.merged(&at_ends(&overlay.suffixes), &in_pair, gone, most_jumps);

        let inner = overlay.inner.iter().map(|literal| (&*literal.text, &literal.postings, false));
        let (inner, _) = self.inner.merged(&in_order(inner), &IdSet::default(), gone, most_jumps);

        let kept = kept.into_iter().map(|(prefix, suffix, posting)| {
            (prefix_ranks[prefix as usize], suffix_ranks[suffix as usize], posting)
        });
        let added = overlay.pairs.iter().flat_map(|pair| {
            let ranks = prefixes.rank(pair.prefix()).zip(suffixes.rank(pair.suffix()));
            debug_assert!(ranks.is_some(), "both were just added");
            let entry = move |posting| ranks.map(|(prefix, suffix)| (prefix, suffix, posting));
            pair.postings.iter().filter_map(entry)
        });
        let pairs = Pairs::new(kept.chain(added).collect());
        let grams = Grams::of(&inner);
        Base { prefixes, suffixes, inner, pairs, grams }
    }
}

/// What an overlay adds at one end of topics.
fn at_ends(ends: &Ends) -> Vec<Added<'_>> {
    in_order(ends.iter().map(|literal| (&*literal.text, &literal.postings, literal.pairs > 0)))
}

fn in_order<'o>(added: impl Iterator<Item = Added<'o>>) -> Vec<Added<'o>> {
    let mut added: Vec<Added<'_>> = added.collect();
    added.sort_unstable_by_key(|(text, _, _)| *text);
    added
}

#[cfg(test)]
mod tests {
    use super::Anchor::*;
    use super::*;
    use crate::pattern::index::anchor::examples::{ANCHORS, FOUND};
    use crate::pattern::index::hashes::{End, Hashes};

    fn merged(base: &Base, added: &[(Anchor<'_>, u32)], gone: &[u32]) -> Base {
        let mut overlay = Overlay::new(Hashes::new());
        for (anchor, id) in added {
            overlay.insert(*anchor, Posting::new(*id, 0, false));
        }
        base.merged(&overlay, &gone.iter().copied().collect())
    }

    fn found(base: &Base, topic: &str) -> Vec<u32> {
        let mut found = Vec::new();
        let (mut start, mut back) = (End::default(), End::default());
        start.read(topic.as_bytes());
        back.read_backwards(topic.as_bytes());
        let probe = Probe { topic: topic.as_bytes(), start: &start, back: &back };
        base.find(&probe, base.begin(&probe), &mut Ranks::default(), &mut found);
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
