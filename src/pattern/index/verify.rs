//! Trying one expansion on one topic, in time that grows with the topic alone.

use memchr::memmem;

use super::occurrences::Occurrences;
use crate::limits::SEGMENT_ELEMENTS;
use crate::pattern::{Atom, Element, Segment};

/// A pattern made ready to be tried.
#[derive(Debug)]
pub(super) struct Program {
    globs: Box<[Glob]>,
}

/// One expansion of it.
#[derive(Debug)]
struct Glob {
    atom: Atom,
    /// How to find the segments between the first and the last where text search is not enough; empty where it
    /// always is.
    searches: Box<[Option<Box<BitSearch>>]>,
}

impl Program {
    pub fn new(atoms: Vec<Atom>) -> Self {
        Self { globs: atoms.into_iter().map(Glob::new).collect() }
    }

    /// Whether the pattern matches the whole topic.
    pub fn matches(&self, topic: &str) -> bool {
        self.globs.iter().any(|glob| glob.matches(topic, None))
    }

    /// Whether this expansion of it does.
    pub fn atom_matches(&self, atom: usize, topic: &str) -> bool {
        self.globs.get(atom).is_some_and(|glob| glob.matches(topic, None))
    }

    /// The same, where it is known what lies where in the topic.
    pub fn atom_matches_by(&self, occurrences: &mut Occurrences, atom: usize, topic: &str) -> bool {
        self.globs.get(atom).is_some_and(|glob| glob.matches(topic, Some(occurrences)))
    }
}

impl Glob {
    fn new(atom: Atom) -> Self {
        let searches: Box<[_]> = match atom.segments() {
            [_, between @ .., _] if between.iter().any(|segment| segment.literal().is_none()) => between
                .iter()
                .map(|segment| segment.literal().is_none().then(|| Box::new(BitSearch::new(segment))))
                .collect(),
            _ => Box::default(),
        };
        Self { atom, searches }
    }

    fn matches(&self, topic: &str, occurrences: Option<&mut Occurrences>) -> bool {
        match self.atom.segments() {
            [] => false,
            [only] => only.strip_prefix(topic) == Some(""),
            // Both ends before the search between them, which takes longest.
            [first, between @ .., last] => {
                let Some(behind) = first.strip_prefix(topic) else { return false };
                let Some(rest) = last.strip_suffix(behind) else { return false };
                let start = topic.len() - behind.len();
                match occurrences {
                    None => self.contains_in_order(between, rest),
                    Some(known) => self.lies_in_order(between, &topic[..start + rest.len()], start, known),
                }
            }
        }
    }

    fn contains_in_order(&self, between: &[Segment], text: &str) -> bool {
        let mut rest = text;
        for (at, segment) in between.iter().enumerate() {
            // The leftmost place leaves the most to those that follow, so no other need be tried.
            let Some(end) = self.end_of_first(at, segment, rest) else { return false };
            rest = &rest[end..];
        }
        true
    }

    /// The same of what lies behind `start` in the text that a topic begins with.
    fn lies_in_order(&self, between: &[Segment], text: &str, start: usize, known: &mut Occurrences) -> bool {
        // Before anything is searched for.
        if between.iter().any(|segment| known.lacks_class_of(segment)) {
            return false;
        }
        let (mut from, to) = (known.char_at(start), known.char_at(text.len()));
        for (at, segment) in between.iter().enumerate() {
            let Some(places) = known.places(segment) else { return false };
            let mut tries = 0;
            let end = loop {
                let Some(place) = places.next(from, to) else { return false };
                let rest = &text[known.start_of(place)..];
                let behind = match tries {
                    MOST_FITTING => self.end_of_first(at, segment, rest).map(|end| &rest[end..]),
                    _ => segment.strip_prefix(rest),
                };
                match behind {
                    Some(behind) => break text.len() - behind.len(),
                    None if tries == MOST_FITTING => return false,
                    None => {}
                }
                tries += 1;
                from = place + 1;
            };
            from = known.char_at(end);
        }
        true
    }

    /// Where the leftmost place of a segment between the first and the last ends in a text.
    fn end_of_first(&self, at: usize, segment: &Segment, text: &str) -> Option<usize> {
        match self.searches.get(at).and_then(Option::as_deref) {
            Some(search) => search.end_of_first_of(segment, text),
            None => end_of_first(segment.literal()?, text),
        }
    }
}

/// At so many places where its rarest characters fit a segment is tried before the rest is searched as if nothing were
/// known.
pub(super) const MOST_FITTING: usize = 4;

/// Where the leftmost place of a literal, which is not empty, ends in a text.
fn end_of_first(literal: &str, text: &str) -> Option<usize> {
    let (literal, text) = (literal.as_bytes(), text.as_bytes());
    let mut starts = memchr::memchr_iter(*literal.first()?, text);
    if let Some(start) = starts.by_ref().take(TRIES).find(|start| text[*start..].starts_with(literal)) {
        return Some(start + literal.len());
    }
    let tried = starts.next()?;
    Some(tried + memmem::find(&text[tried..], literal)? + literal.len())
}

/// At so many places that begin alike a literal is tried, before a search is made ready that is better where there are
/// many.
const TRIES: usize = 16;

/// Looks for a segment with all its places at a time, a bit each: bit `n` is set while the last `n + 1`
/// characters are what the first `n + 1` elements ask for.
#[derive(Debug)]
struct BitSearch {
    last: u64,
    /// Which element is the longest text, if one is.
    longest: Option<usize>,
    /// Where ranges of characters begin that all elements treat alike, ascending, and which elements take them.
    ranges: Box<[(u32, u64)]>,
    /// The range of each ASCII character, where there are many.
    ascii: Option<Box<[u8; 128]>>,
}

const _: () = assert!(SEGMENT_ELEMENTS <= u64::BITS as usize);

/// So few ranges are looked through one after the other.
const FEW_RANGES: usize = 8;

impl BitSearch {
    fn new(segment: &Segment) -> Self {
        let takes = accepted(segment);
        debug_assert!((1..=SEGMENT_ELEMENTS).contains(&takes.len()), "pattern bounds");
        let bounds = takes.iter().flat_map(|accepted| &accepted.ranges);
        let bounds = bounds.flat_map(|&(low, high)| [low as u32, high as u32 + 1]);
        let mut starts: Vec<u32> = std::iter::once(0).chain(bounds).collect();
        starts.sort_unstable();
        starts.dedup();
        let mask = |start: u32| {
            let bits = takes.iter().enumerate().map(|(at, accepted)| u64::from(accepted.has(start)) << at);
            bits.fold(0, |mask, bit| mask | bit)
        };
        let mut ranges: Vec<(u32, u64)> = starts.into_iter().map(|start| (start, mask(start))).collect();
        ranges.dedup_by_key(|(_, mask)| *mask);
        let ascii = (ranges.len() > FEW_RANGES).then(|| {
            let range_of = |c: usize| ranges.partition_point(|(start, _)| *start as usize <= c) - 1;
            Box::new(std::array::from_fn(|c| range_of(c) as u8))
        });
        let last = 1 << (takes.len() - 1);
        let texts = segment.elements().iter().enumerate();
        let texts = texts.filter_map(|(at, element)| Some((at, element.literal()?.len())));
        let longest = texts.max_by_key(|(_, len)| *len).map(|(at, _)| at);
        Self { last, longest, ranges: ranges.into(), ascii }
    }

    fn mask(&self, c: char) -> u64 {
        let c = c as u32;
        let range = match &self.ascii {
            Some(ascii) if c < 128 => usize::from(ascii[c as usize]),
            Some(_) => self.ranges.partition_point(|(start, _)| *start <= c) - 1,
            // The first begins at 0.
            None => self.ranges.iter().skip(1).take_while(|(start, _)| *start <= c).count(),
        };
        self.ranges[range].1
    }

    /// Where the leftmost place of the segment that this was made for ends. Where its longest text lies, and not too
    /// often, only what is around it is looked at.
    fn end_of_first_of(&self, segment: &Segment, text: &str) -> Option<usize> {
        let Some((before, [Element::Literal(literal), behind @ ..])) =
            self.longest.and_then(|at| segment.elements().split_at_checked(at))
        else {
            return self.end_of_first(text);
        };
        let mut from = 0;
        for _ in 0..TRIES {
            let end = from + end_of_first(literal, &text[from..])?;
            let start = end - literal.len();
            let fits =
                before.iter().rev().try_fold(&text[..start], |rest, element| element.strip_suffix(rest));
            let rest = behind.iter().try_fold(&text[end..], |rest, element| element.strip_prefix(rest));
            if let (Some(_), Some(rest)) = (fits, rest) {
                return Some(text.len() - rest.len());
            }
            from = start + literal.chars().next()?.len_utf8();
        }
        self.end_of_first(text)
    }

    /// Where the leftmost place of the segment ends.
    fn end_of_first(&self, text: &str) -> Option<usize> {
        let mut places = 0;
        for (at, c) in text.char_indices() {
            places = (places << 1 | 1) & self.mask(c);
            if places & self.last != 0 {
                return Some(at + c.len_utf8());
            }
        }
        None
    }
}

/// The characters that one place of a segment takes.
struct Accepted {
    ranges: Vec<(char, char)>,
    negated: bool,
}

impl Accepted {
    fn has(&self, c: u32) -> bool {
        self.ranges.iter().any(|&(low, high)| low as u32 <= c && c <= high as u32) != self.negated
    }
}

/// One for each character of a match, in order.
fn accepted(segment: &Segment) -> Vec<Accepted> {
    let mut all = Vec::new();
    for element in segment.elements() {
        match element {
            Element::Literal(text) => {
                all.extend(text.chars().map(|c| Accepted { ranges: vec![(c, c)], negated: false }));
            }
            Element::One(class) => {
                all.push(Accepted { ranges: class.ranges().to_vec(), negated: class.is_negated() });
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::Pattern;

    fn check(pattern: &str, topics: &[&str]) {
        let pattern = Pattern::parse(pattern).unwrap();
        let program = Program::new(pattern.atoms());
        for topic in topics {
            assert_eq!(program.matches(topic), pattern.matches(topic), "{pattern:?} on {topic:?}");
            for (at, atom) in pattern.atoms().iter().enumerate() {
                assert_eq!(program.atom_matches(at, topic), atom.matches(topic), "{atom:?} on {topic:?}");
            }
        }
    }

    #[test]
    fn ends_share_no_characters() {
        check("ab*ba", &["aba", "abba", "abxba", "ab", "ba"]);
        check("a?*?b", &["ab", "axb", "axyb", "aéüb"]);
        check("aa*aa*aa", &["aaaaa", "aaaaaa", "aaaaaaa"]);
        check("*ab*ab*", &["aba", "abab", "xabyabz"]);
    }

    #[test]
    fn texts_are_found_behind_many_that_begin_alike() {
        let many = "ab".repeat(TRIES);
        for (pattern, wanted) in [("*abc*d", "abcd"), ("*abc*d", "ababcxd"), ("*abc*abc*", "abcabc")] {
            for before in ["", &many[2..], &many, &many.repeat(2)] {
                check(pattern, &[&format!("{before}{wanted}"), before, &format!("{before}{wanted}b")]);
            }
        }
    }

    #[test]
    fn what_lies_between_is_searched_by_characters() {
        let topics =
            ["", "a", "é", "xéy", "☕é", "a1é", "aa1☕é2", "1\u{d7ff}\u{e000}", "\u{10ffff}", "z\u{10ffff}a"];
        for pattern in
            ["*?é*", "*[a-z]?*", "*[!a]é*", "*a[0-9]é*[☕-\u{10ffff}]*", "*??*??*", "*[!☕-\u{fffff}]?*"]
        {
            check(pattern, &topics);
        }
        check("*?[à-ü]x[!0-9]b*", &["aéxcb", "aéx1b", "éaéxcb☕", "xxéxé", "aéxéb"]);
        // Surrogates lie within a range and are no characters.
        check("*[\u{d7ff}-\u{e000}]?*", &["\u{d7ff}a", "\u{e000}a", "\u{e001}a"]);
    }

    #[test]
    fn a_segment_may_have_as_many_elements_as_a_word_has_bits() {
        let (short, long) = ("a".repeat(63), "a".repeat(64));
        check(&format!("*?{short}*"), &[&short, &long, &format!("b{short}"), &format!("{short}ba")]);
        check(&format!("*{}*", "[a-y]".repeat(40)), &[&short, &"z".repeat(64), &"a".repeat(39)]);
    }

    #[test]
    fn many_different_characters_use_the_table() {
        let middle: String = ('a'..='z').chain('à'..='ü').collect();
        let topic = format!("abc{middle}1{middle}z");
        check(&format!("*{middle}?*"), &[&topic, &middle, &format!("{middle}☕")]);
    }

    #[test]
    fn a_segment_lies_around_its_longest_text() {
        for before in ["", "é", "xabcab", &"abcab".repeat(TRIES), &"abcé".repeat(TRIES + 1)] {
            for around in ["xéabcd1", "éabcdé", "1éabcabcd", "éaabcd1", "éabcd"] {
                let topic = format!("{before}{around}");
                for pattern in ["*?abcd[0-9]*", "*?é[a]bcd?*", "*é?abcd*1*", "*[é]abc?*d*", "*?abc?ab?*"] {
                    check(pattern, &[&topic, &topic.repeat(2)]);
                }
            }
        }
    }

    #[test]
    fn each_expansion_is_tried_by_itself() {
        check("{a,b?}*{c,*d}", &["ac", "bxd", "axxd", "bc", "bxc", "", "d"]);
        assert!(!Program::new(Vec::new()).atom_matches(0, ""));
    }
}
