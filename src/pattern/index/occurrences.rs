//! Where the characters of a topic lie, for a topic on which many expansions have to be tried.

use arrayvec::ArrayVec;

use crate::limits::{SEGMENT_ELEMENTS, TOPIC_BYTES};
use crate::pattern::{Class, Element, Segment};

/// The places of each character of a topic, a bit each. Characters that are not ASCII share their bits with others.
///
/// Made in the time that one or two searches take. Then most segments that do not lie in the topic are refused by looking
/// at a few of their characters, many places at a time.
pub(super) struct Occurrences {
    /// By [`row_of`] a character, and one for all that are not ASCII.
    rows: Box<[Row]>,
    /// How many bits are set in each row.
    counts: [u16; ROWS],
    /// The ASCII characters that occur.
    present: u128,
    /// Where characters begin in the topic, in bytes; none where each is one byte.
    starts: Vec<u16>,
    chars: usize,
    /// The places of some classes that were asked for.
    classes: Box<[Option<(Taken, Row)>]>,
}

const WORDS: usize = TOPIC_BYTES / 64;

/// One word more than there are places, so that 64 bits can be read from each.
type Row = [u64; WORDS + 1];

const ASCII: usize = 128;
/// Rows of the other characters.
const OTHER_ROWS: usize = 63;
const ROWS: usize = ASCII + OTHER_ROWS + 1;
/// The row of all other characters.
const OTHERS: usize = ROWS - 1;

/// The places where a segment may lie: where two of its characters fit and so do its classes. What is left is to be
/// tried.
pub(super) struct Places {
    left: [u64; WORDS],
}

/// Classes whose places are kept, and
const KEPT_CLASSES: usize = 32;
/// classes of a segment whose places may be looked for among those of their characters.
const MOST_NEW_CLASSES: usize = 4;
/// So many characters of a segment are looked at to find the rarest.
const MOST_WEIGHED: usize = 16;

/// So many parts of a segment are asked for before anything is searched for: each may wait for memory.
const MOST_ASKED: usize = 8;

/// A character of a segment. The rarer one is less.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct CharPart {
    /// At how many places of the topic it lies.
    count: u16,
    /// How many characters of the segment lie before it.
    offset: u8,
    row: u8,
}

/// What a class takes of the characters of the topic.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Taken {
    ascii: u128,
    /// Whether it may take those that are not ASCII.
    others: bool,
}

const _: () = assert!(TOPIC_BYTES < u16::MAX as usize && SEGMENT_ELEMENTS <= 64 && ROWS <= 1 << u8::BITS);

impl Default for Occurrences {
    fn default() -> Self {
        Self {
            rows: vec![[0; _]; ROWS].into(),
            counts: [0; _],
            present: 0,
            starts: Vec::new(),
            chars: 0,
            classes: vec![None; KEPT_CLASSES].into(),
        }
    }
}

impl Occurrences {
    /// Reads a topic of at most [`TOPIC_BYTES`] in place of the one before.
    pub fn read(&mut self, topic: &str) {
        for (row, _) in self.rows.iter_mut().zip(&self.counts).filter(|(_, count)| **count > 0) {
            *row = [0; _];
        }
        self.starts.clear();
        self.classes.fill(None);
        if topic.is_ascii() {
            self.fill(topic.as_bytes());
        } else {
            self.starts.extend(topic.char_indices().map(|(start, _)| start as u16));
            let rows: ArrayVec<u8, TOPIC_BYTES> = topic.chars().map(|c| row_of(c) as u8).collect();
            self.fill(&rows);
        }
    }

    /// Takes the rows of the characters in their order.
    fn fill(&mut self, rows: &[u8]) {
        // What is added to a word waits for what was added to it before: in a topic of few characters only words that are
        // far from each other are not the same.
        const LANES: usize = 4;
        const LANE: usize = TOPIC_BYTES / LANES;
        let mut counts = [[0; ROWS]; LANES];
        for first in 0..LANE.min(rows.len()) {
            for (lane, counts) in counts.iter_mut().enumerate() {
                let at = first + lane * LANE;
                if let Some(row) = rows.get(at) {
                    self.rows[usize::from(*row)][at / 64] |= 1 << (at % 64);
                    counts[usize::from(*row)] += 1;
                }
            }
        }
        self.chars = rows.len();
        self.counts = std::array::from_fn(|row| counts.iter().map(|counts| counts[row]).sum());
        let (ascii, others) = self.counts.split_at_mut(ASCII);
        let ascii = ascii.iter().enumerate();
        self.present = ascii.fold(0, |present, (c, count)| present | u128::from(*count > 0) << c);
        if let [others @ .., all] = others {
            *all = others.iter().sum();
        }
        if self.counts[OTHERS] > 0 {
            self.rows[OTHERS] = std::array::from_fn(|at| {
                self.rows[ASCII..OTHERS].iter().fold(0, |places, row| places | row[at])
            });
        }
    }

    /// Where a character begins, in bytes.
    pub fn start_of(&self, char: usize) -> usize {
        match self.starts.get(char) {
            Some(start) => usize::from(*start),
            None => char,
        }
    }

    /// Which character begins there.
    pub fn char_at(&self, start: usize) -> usize {
        match &self.starts[..] {
            [] => start,
            starts => starts.partition_point(|other| usize::from(*other) < start),
        }
    }

    /// Whether some class near the end of the segment takes no character of the topic.
    pub fn lacks_class_of(&self, segment: &Segment) -> bool {
        segment.elements().iter().rev().take(MOST_ASKED).any(|element| match element {
            Element::Literal(_) => false,
            Element::One(class) => self.taken(class).is_nothing(),
        })
    }

    /// Where a segment may lie; none where it lies nowhere.
    pub fn places(&mut self, segment: &Segment) -> Option<Places> {
        let mut chars = [None, None];
        let mut offset = 0;
        for element in segment.elements() {
            for c in element.literal().unwrap_or_default().chars().take(MOST_WEIGHED - offset) {
                let row = row_of(c);
                keep_rarer(
                    &mut chars,
                    CharPart { count: self.counts[row], offset: offset as u8, row: row as u8 },
                );
                offset += 1;
            }
            offset += usize::from(element.literal().is_none());
            if offset >= MOST_WEIGHED {
                break;
            }
        }
        let mut places = self.fitting(chars)?;
        let mut new = 0;
        let mut offset = 0;
        for element in segment.elements() {
            match element {
                Element::Literal(text) => offset += text.chars().count(),
                Element::One(class) if class.is_any() => offset += 1,
                Element::One(class) => {
                    let taken = self.taken(class);
                    new += usize::from(!self.is_kept(taken));
                    if new <= MOST_NEW_CLASSES {
                        places.keep_where(self.places_of(taken), offset as u8)?;
                    }
                    offset += 1;
                }
            }
        }
        Some(places)
    }

    /// The places where these characters fit; none where one of them lies nowhere.
    fn fitting(&self, chars: [Option<CharPart>; 2]) -> Option<Places> {
        let (first, second) = match chars {
            [Some(first), second] => (first, second.unwrap_or(first)),
            _ => return Some(Places { left: [u64::MAX; _] }),
        };
        let [one, other] = [first, second].map(|part| (&self.rows[usize::from(part.row)], part.offset));
        let left = std::array::from_fn(|at| shifted(one, at) & shifted(other, at));
        (first.count > 0).then_some(Places { left })
    }

    fn taken(&self, class: &Class) -> Taken {
        let listed = class.ranges().iter().fold(0, |listed, range| listed | ascii(*range));
        let others = class.is_negated() || class.ranges().iter().any(|(_, high)| !high.is_ascii());
        let ascii = self.present & if class.is_negated() { !listed } else { listed };
        Taken { ascii, others: others && self.counts[OTHERS] > 0 }
    }

    fn is_kept(&self, taken: Taken) -> bool {
        self.classes[taken.slot()].as_ref().is_some_and(|(other, _)| *other == taken)
    }

    /// Where these characters lie.
    fn places_of(&mut self, taken: Taken) -> &Row {
        if !self.is_kept(taken) {
            let left = Taken {
                ascii: self.present & !taken.ascii,
                others: self.counts[OTHERS] > 0 && !taken.others,
            };
            // Fewer are looked at.
            let row = if taken.ascii.count_ones() <= left.ascii.count_ones() {
                self.union(taken)
            } else {
                self.all_but(self.union(left))
            };
            self.classes[taken.slot()] = Some((taken, row));
        }
        self.classes[taken.slot()].as_ref().map_or(&self.rows[OTHERS], |(_, row)| row)
    }

    /// The other places of the topic.
    fn all_but(&self, row: Row) -> Row {
        std::array::from_fn(|at| match self.chars.saturating_sub(64 * at) {
            0 => 0,
            chars => !row[at] & u64::MAX >> (64 - chars.min(64)),
        })
    }

    fn union(&self, taken: Taken) -> Row {
        let mut union = [0; _];
        let mut add =
            |row: &Row| union.iter_mut().zip(row).for_each(|(places, more): (&mut u64, _)| *places |= more);
        let mut rest = taken.ascii;
        while rest != 0 {
            add(&self.rows[rest.trailing_zeros() as usize]);
            rest &= rest - 1;
        }
        if taken.others {
            add(&self.rows[OTHERS]);
        }
        union
    }
}

impl Taken {
    fn is_nothing(self) -> bool {
        self.ascii == 0 && !self.others
    }

    fn slot(self) -> usize {
        let mixed = (self.ascii as u64 ^ (self.ascii >> 61) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed >> (u64::BITS - KEPT_CLASSES.ilog2())) as usize
    }
}

impl Places {
    /// None where none is left.
    fn keep_where(&mut self, row: &Row, offset: u8) -> Option<()> {
        let each = self.left.iter_mut().enumerate();
        let all = each.fold(0, |all, (at, places)| {
            *places &= shifted((row, offset), at);
            all | *places
        });
        (all != 0).then_some(())
    }

    /// The first of them between these characters of the topic.
    pub fn next(&self, from: usize, to: usize) -> Option<usize> {
        let mut start = from / 64 * 64;
        let mut behind = u64::MAX << (from % 64);
        while start < to {
            let places = self.left[start / 64] & behind;
            if places != 0 {
                return Some(start + places.trailing_zeros() as usize).filter(|place| *place < to);
            }
            start += 64;
            behind = u64::MAX;
        }
        None
    }
}

fn keep_rarer([first, second]: &mut [Option<CharPart>; 2], part: CharPart) {
    if first.is_none_or(|first| part < first) {
        *second = first.replace(part);
    } else if second.is_none_or(|second| part < second) {
        *second = Some(part);
    }
}

fn row_of(c: char) -> usize {
    let c = c as usize;
    if c < ASCII { c } else { ASCII + c % OTHER_ROWS }
}

/// A word of a row that is moved down by so many places.
fn shifted((row, by): (&Row, u8), at: usize) -> u64 {
    row[at] >> by | row[at + 1] << 1 << (63 - by)
}

/// The ASCII characters of a range.
fn ascii((low, high): (char, char)) -> u128 {
    if low.is_ascii() { (u128::MAX << low as u32) & (u128::MAX >> (127 - (high as u32).min(127))) } else { 0 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::verify::{MOST_FITTING, Program};
    use super::*;
    use crate::pattern::Pattern;

    /// Each topic is read in place of the one before.
    fn check(pattern: &str, topics: &[&str]) {
        let atoms = Pattern::parse(pattern).unwrap().atoms();
        let program = Program::new(atoms.clone());
        let mut occurrences = Occurrences::default();
        for topic in topics {
            occurrences.read(topic);
            for (at, atom) in atoms.iter().enumerate() {
                let found = program.atom_matches_by(&mut occurrences, at, topic);
                assert_eq!(found, atom.matches(topic), "{atom:?} on {topic:?}");
            }
        }
    }

    #[test]
    fn a_place_is_told_in_bytes_and_in_characters() {
        let mut occurrences = Occurrences::default();
        for topic in ["", "é", "a☕é\u{10ffff}b", "abc", "éé"] {
            occurrences.read(topic);
            for (at, (start, _)) in topic.char_indices().enumerate() {
                assert_eq!((occurrences.start_of(at), occurrences.char_at(start)), (start, at), "{topic}");
            }
            assert_eq!(occurrences.char_at(topic.len()), topic.chars().count());
        }
    }

    #[test]
    fn segments_are_found_at_every_place_of_the_longest_topics() {
        for filler in ["a", "é", "aé"] {
            let longest = filler.repeat((TOPIC_BYTES - 3) / filler.len());
            let starts: Vec<usize> = longest.char_indices().map(|(start, _)| start).collect();
            for start in starts.into_iter().step_by(7).chain([longest.len()]) {
                let mut topic = longest.clone();
                topic.insert_str(start, "xyz");
                for pattern in
                    ["*xyz*", "*x[y][!a]*", "*?[x-z]yz*", "*xy*[z]*", "*z*yx*", "*[!aé][!aé]x*", "*aaxyzé*"]
                {
                    check(pattern, &[&topic]);
                }
            }
        }
    }

    #[test]
    fn ends_are_not_searched() {
        for pattern in ["ab*ba*ab", "*aba*ba", "éa*aé*é", "ab*[a]b*ab", "a*?*?*a"] {
            check(
                pattern,
                &["abbaab", "abab", "ababa", "abba", "éaéé", "éaaéé", "éaéaé", "abxabab", "axya", "axa"],
            );
        }
    }

    #[test]
    fn places_where_only_the_rarest_characters_fit_are_passed() {
        for tries in 0..3 * MOST_FITTING {
            for around in ["bbbbbbbbbbbbbbbb", "ébébébébébébébéb"] {
                let topic = format!("{around}{}b{around}", "a".repeat(2 + tries));
                for pattern in ["*aab*", "*aab?bb*", "*aabé*", "*aa[b-d][bé]*", "*aab*aab*", "b*aab*b[!a]bb"]
                {
                    check(pattern, &[&topic, &topic[..topic.len() / 2], &topic.repeat(2)]);
                }
            }
        }
    }

    #[test]
    fn characters_that_share_their_bits_are_told_apart() {
        let twin = |c: char, times: u32| char::from_u32(c as u32 + times * OTHER_ROWS as u32).unwrap();
        let (one, other) = ('é', twin('é', 3));
        let topic = format!("{}x{one}", other.to_string().repeat(3 * MOST_FITTING));
        for pattern in
            [format!("*{one}*"), format!("*x{other}*"), format!("*[{one}]x*"), format!("*{other}x{one}*")]
        {
            check(&pattern, &[&topic, &topic.replace('x', "")]);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn it_agrees_with_the_plain_matcher(
            pattern in r"(\*|\*|[ab.é]|\?|\[ab\]|\[!é\]|\[é-ü.\]|\[!b-é\]|aab|ba.b|é\.a|\{a,\[b.\]é\}){1,14}",
            topics in prop::collection::vec("[ab]{0,400}|[ab.éü]{0,200}|(aab|aba|é|.){0,200}", 4),
        ) {
            let topics: Vec<&str> = topics.iter().map(String::as_str).collect();
            if Pattern::parse(&pattern).is_ok() {
                check(&pattern, &topics);
            }
        }
    }
}
