//! What an expansion of a pattern is found by: the literal text it hangs on.

use std::cmp::Reverse;
use std::ops::RangeInclusive;

use smallvec::SmallVec;

use crate::limits::SELECTIVE_RUN_BYTES;
use crate::pattern::{Atom, Segment};

/// Lengths of the texts that are looked for at every place of a topic, in bytes.
pub(super) const INNER_BYTES: RangeInclusive<usize> = SELECTIVE_RUN_BYTES..=16;

/// Lengths of those among them that say only a part of the pattern: fewer, so that fewer lie in one topic.
const PART_BYTES: [usize; 6] = [3, 4, 6, 8, 12, 16];

/// More places to hang an expansion on are not weighed.
const MOST_CHOICES: usize = 8;

/// A literal text and where it lies in each topic that the expansion matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor<'a> {
    /// The topic begins with it. The empty text is that of expansions which nothing else finds.
    Prefix(&'a [u8]),
    /// The topic ends with it.
    Suffix(&'a [u8]),
    /// The topic begins with the one and ends with the other, and they share no bytes of it.
    Pair(&'a [u8], &'a [u8]),
    /// The topic contains it; of a length in [`INNER_BYTES`].
    Inner(&'a [u8]),
}

impl Anchor<'_> {
    fn bytes(&self) -> usize {
        match self {
            Anchor::Prefix(text) | Anchor::Suffix(text) | Anchor::Inner(text) => text.len(),
            Anchor::Pair(prefix, suffix) => prefix.len() + suffix.len(),
        }
    }
}

/// How an expansion may be found.
#[derive(Debug)]
pub(super) struct Choices<'a> {
    /// The longest first, never none. Any of them will do.
    pub anchors: SmallVec<[Anchor<'a>; MOST_CHOICES]>,
    /// Whether a topic in which the anchor is found may still not match.
    pub verify: bool,
}

/// The anchors of an expansion that has wildcards.
pub(super) fn choices(atom: &Atom) -> Choices<'_> {
    let literal = |segment: &Segment| segment.literal().is_some();
    let ends = ends(atom.prefix().as_bytes(), atom.suffix().as_bytes());
    match atom.segments() {
        [first, last] if literal(first) && literal(last) => return certain(ends),
        [first, middle, last] if first.is_empty() && last.is_empty() => {
            let text = middle.literal().unwrap_or_default().as_bytes();
            if INNER_BYTES.contains(&text.len()) {
                return certain(Anchor::Inner(text));
            }
        }
        _ => {}
    }
    let runs: SmallVec<[&str; MOST_CHOICES]> = atom.literal_runs().collect();
    // The ends are known better than to lie somewhere.
    let inner = usize::from(!atom.prefix().is_empty())..runs.len() - usize::from(!atom.suffix().is_empty());
    let mut anchors: Vec<Anchor<'_>> =
        runs[inner].iter().flat_map(|run| windows(run)).map(Anchor::Inner).collect();
    anchors.push(ends);
    if let Anchor::Pair(prefix, suffix) = ends {
        anchors.extend([Anchor::Prefix(prefix), Anchor::Suffix(suffix)]);
    }
    // What is short is found everywhere, however few hang on it.
    if anchors.iter().any(|anchor| anchor.bytes() >= SELECTIVE_RUN_BYTES) {
        anchors.retain(|anchor| anchor.bytes() >= SELECTIVE_RUN_BYTES);
    }
    anchors.sort_by_key(|anchor| Reverse(anchor.bytes()));
    anchors.truncate(MOST_CHOICES);
    Choices { anchors: anchors.into(), verify: true }
}

fn certain(anchor: Anchor<'_>) -> Choices<'_> {
    Choices { anchors: SmallVec::from_iter([anchor]), verify: false }
}

fn ends<'a>(prefix: &'a [u8], suffix: &'a [u8]) -> Anchor<'a> {
    match (prefix, suffix) {
        (prefix, []) => Anchor::Prefix(prefix),
        ([], suffix) => Anchor::Suffix(suffix),
        (prefix, suffix) => Anchor::Pair(prefix, suffix),
    }
}

/// Stretches that cover the run, as long as may be. Bytes will do: a text that begins within a character is found where
/// that character is.
fn windows(run: &str) -> impl Iterator<Item = &[u8]> {
    let run = run.as_bytes();
    let len = PART_BYTES.into_iter().rfind(|len| *len <= run.len());
    len.into_iter().flat_map(move |len| {
        let starts = (0..run.len()).step_by(len).map(move |start| start.min(run.len() - len));
        starts.map(move |start| &run[start..start + len])
    })
}

/// Anchors of every kind, and which of them lie in a topic: for the tests of whatever finds them.
#[cfg(test)]
pub(super) mod examples {
    use super::Anchor::{self, Inner, Pair, Prefix, Suffix};

    /// Each with its number.
    pub const ANCHORS: [(Anchor<'_>, u32); 9] = [
        (Prefix(b""), 0),
        (Prefix(b"ab"), 1),
        (Prefix(b"abc"), 2),
        (Suffix(b"ba"), 3),
        (Suffix(b"cba"), 4),
        (Pair(b"ab", b"ba"), 5),
        (Pair(b"abc", b"a"), 6),
        (Inner(b"cab"), 7),
        (Inner(b"abcabcabcabcabca"), 8),
    ];

    /// The numbers of those that lie in a topic.
    pub const FOUND: [(&str, &[u32]); 9] = [
        ("", &[0]),
        ("ab", &[0, 1]),
        ("aba", &[0, 1, 3]),
        ("abba", &[0, 1, 3, 5]),
        ("abca", &[0, 1, 2, 6]),
        ("abcba", &[0, 1, 2, 3, 4, 5, 6]),
        ("xcab", &[0, 7]),
        ("xabcab", &[0, 7]),
        ("abcabcabcabcabcabcabcabc", &[0, 1, 2, 7, 8]),
    ];
}

#[cfg(test)]
mod tests {
    use super::Anchor::*;
    use super::*;
    use crate::pattern::Pattern;

    fn check(pattern: &str, verify: bool, anchors: &[Anchor<'_>]) {
        let atoms = Pattern::parse(pattern).unwrap().atoms();
        let choices = choices(&atoms[0]);
        assert_eq!((choices.verify, &choices.anchors[..]), (verify, anchors), "{pattern}");
    }

    #[test]
    fn what_the_anchor_says_all_of_is_not_verified() {
        check("*", false, &[Prefix(b"")]);
        check("a.*", false, &[Prefix(b"a.")]);
        check("*.b", false, &[Suffix(b".b")]);
        check("a.*.b", false, &[Pair(b"a.", b".b")]);
        check("*abc*", false, &[Inner(b"abc")]);
        check(&format!("*{}*", "x".repeat(16)), false, &[Inner(&[b'x'; 16])]);
    }

    #[test]
    fn all_else_is_verified_wherever_it_hangs() {
        check("a?", true, &[Prefix(b"a")]);
        check("?a", true, &[Suffix(b"a")]);
        check("?", true, &[Prefix(b"")]);
        check("*ab*", true, &[Prefix(b"")]);
        check("a?b", true, &[Pair(b"a", b"b"), Prefix(b"a"), Suffix(b"b")]);
        check("*abc*abcd*", true, &[Inner(b"abcd"), Inner(b"abc")]);
        check("[x]abc*", true, &[Inner(b"abc")]);
        check("*.order-?.*", true, &[Inner(b".order"), Inner(b"order-")]);
    }

    #[test]
    fn short_texts_are_left_where_there_is_a_longer_one() {
        check("a*bcd?*", true, &[Inner(b"bcd")]);
        check("a*b?*", true, &[Prefix(b"a")]);
        check("ab*x?*c", true, &[Pair(b"ab", b"c")]);
        check("abc*x?*cde", true, &[Pair(b"abc", b"cde"), Prefix(b"abc"), Suffix(b"cde")]);
    }

    #[test]
    fn a_long_run_is_cut_so_that_its_end_counts_too() {
        let run = "0123456789abcdefghijk";
        check(&format!("*{run}*"), true, &[Inner(b"0123456789abcdef"), Inner(b"56789abcdefghijk")]);
        // A character may be cut.
        check(
            "*☕☕☕☕☕☕*",
            true,
            &[Inner(&"☕☕☕☕☕☕".as_bytes()[..16]), Inner(&"☕☕☕☕☕☕".as_bytes()[2..])],
        );
        check(&format!("{run}?*"), true, &[Prefix(run.as_bytes())]);
    }
}
