//! Where the characters of a topic lie, for a topic on which many expansions have to be tried.

use arrayvec::ArrayVec;

use crate::limits::TOPIC_BYTES;
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

/// The places where a segment may lie: where two of its characters fit and so do some of its classes. What is left is
/// to be tried.
pub(super) struct Places<'o> {
    occurrences: &'o Occurrences,
    /// By the characters alone.
    left: [u64; WORDS],
    /// The rarest first.
    classes: ArrayVec<ClassPart, MOST_CLASSES>,
}

const MOST_CLASSES: usize = 4;

/// So many characters of a segment are looked at to find the rarest.
const MOST_WEIGHED: usize = 16;

/// A character of a segment. The rarer one is less.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct CharPart {
    /// At how many places of the topic it lies.
    count: u16,
    /// How many characters of the segment lie before it.
    offset: u8,
    row: u8,
}

/// A class in a segment, by the characters of the topic.
#[derive(Clone, Copy)]
struct ClassPart {
    count: usize,
    offset: usize,
    /// One of these ASCII characters, or where there are `others` one that is not ASCII.
    ascii: u128,
    others: bool,
    /// None of them instead.
    negated: bool,
}

const _: () = assert!(TOPIC_BYTES < u16::MAX as usize && MOST_WEIGHED <= 64 && ROWS <= 1 << u8::BITS);

impl Default for Occurrences {
    fn default() -> Self {
        Self { rows: vec![[0; _]; ROWS].into(), counts: [0; _], present: 0, starts: Vec::new(), chars: 0 }
    }
}

impl Occurrences {
    /// Reads a topic of at most [`TOPIC_BYTES`] in place of the one before.
    pub fn read(&mut self, topic: &str) {
        for (row, _) in self.rows.iter_mut().zip(&self.counts).filter(|(_, count)| **count > 0) {
            *row = [0; _];
        }
        self.starts.clear();
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

    /// Whether some class of the segment takes no character of the topic.
    pub fn lacks_class_of(&self, segment: &Segment) -> bool {
        segment.elements().iter().any(|element| match element {
            Element::Literal(_) => false,
            Element::One(class) => {
                let (ascii, others) = self.taken(class);
                ascii == 0 && !others
            }
        })
    }

    /// Where a segment may lie; none where one of its characters lies nowhere.
    pub fn places(&self, segment: &Segment) -> Option<Places<'_>> {
        let mut classes = ArrayVec::new();
        let mut chars = [None, None];
        let mut offset = 0;
        for element in segment.elements() {
            match element {
                Element::Literal(text) => {
                    for c in text.chars().take(MOST_WEIGHED - offset) {
                        let row = row_of(c);
                        let count = self.counts[row];
                        if count == 0 {
                            return None;
                        }
                        keep_rarer(&mut chars, CharPart { count, offset: offset as u8, row: row as u8 });
                        offset += 1;
                    }
                }
                Element::One(class) => {
                    if !class.is_any() {
                        keep_rarest(&mut classes, self.class(offset, class)?);
                    }
                    offset += 1;
                }
            }
            if offset >= MOST_WEIGHED {
                break;
            }
        }
        Some(Places { occurrences: self, left: self.fitting(chars), classes })
    }

    /// The places before which these characters fit.
    fn fitting(&self, chars: [Option<CharPart>; 2]) -> [u64; WORDS] {
        let (first, second) = match chars {
            [Some(first), second] => (first, second.unwrap_or(first)),
            _ => return [u64::MAX; _],
        };
        let [first, second] = [first, second].map(|part| (&self.rows[usize::from(part.row)], part.offset));
        std::array::from_fn(|at| shifted(first, at) & shifted(second, at))
    }

    /// None where it takes no character of the topic.
    fn class(&self, offset: usize, class: &Class) -> Option<ClassPart> {
        let (taken, takes_others) = self.taken(class);
        let left = self.present & !taken;
        // Fewer are looked at.
        let negated = taken.count_ones() > left.count_ones();
        let others = self.counts[OTHERS] > 0 && takes_others != negated;
        let ascii = if negated { left } else { taken };
        let count = numbers(ascii, others).map(|row| usize::from(self.counts[row])).sum();
        let count = if negated { self.chars - count } else { count };
        (count > 0).then_some(ClassPart { count, offset, ascii, others, negated })
    }

    /// Which ASCII characters of the topic a class takes, and whether it may take others.
    fn taken(&self, class: &Class) -> (u128, bool) {
        let listed = class.ranges().iter().fold(0, |listed, range| listed | ascii(*range));
        let takes_others = class.is_negated() || class.ranges().iter().any(|(_, high)| !high.is_ascii());
        let taken = if class.is_negated() { !listed } else { listed };
        (self.present & taken, self.counts[OTHERS] > 0 && takes_others)
    }
}

impl Places<'_> {
    /// The first of them between these characters of the topic.
    pub fn next(&self, from: usize, to: usize) -> Option<usize> {
        let mut start = from / 64 * 64;
        let mut behind = u64::MAX << (from % 64);
        while start < to {
            let left = self.left[start / 64] & behind;
            let places = if left == 0 { 0 } else { self.of_classes(start, left) };
            if places != 0 {
                return Some(start + places.trailing_zeros() as usize).filter(|place| *place < to);
            }
            start += 64;
            behind = u64::MAX;
        }
        None
    }

    /// Which of the 64 places from one on the classes leave.
    fn of_classes(&self, start: usize, places: u64) -> u64 {
        let rows = &self.occurrences.rows;
        self.classes.iter().fold(places, |places, part| match places {
            0 => 0,
            _ => {
                let from = start + part.offset;
                let each = numbers(part.ascii, part.others).map(|row| word(&rows[row], from));
                let taken = each.fold(0, |taken, places| taken | places);
                places & if part.negated { !taken } else { taken }
            }
        })
    }
}

fn keep_rarer([first, second]: &mut [Option<CharPart>; 2], part: CharPart) {
    if first.is_none_or(|first| part < first) {
        *second = first.replace(part);
    } else if second.is_none_or(|second| part < second) {
        *second = Some(part);
    }
}

fn keep_rarest(classes: &mut ArrayVec<ClassPart, MOST_CLASSES>, part: ClassPart) {
    if classes.is_full() && classes.last().is_some_and(|last| part.count < last.count) {
        classes.pop();
    }
    if !classes.is_full() {
        let mut at = classes.len();
        classes.push(part);
        while at > 0 && classes[at].count < classes[at - 1].count {
            classes.swap(at, at - 1);
            at -= 1;
        }
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

/// The 64 bits from one on.
fn word(row: &Row, from: usize) -> u64 {
    row.get(from / 64..).map_or(0, |rest| match rest {
        [first, second, ..] => first >> (from % 64) | second << 1 << (63 - from % 64),
        _ => 0,
    })
}

/// The ASCII characters of a range.
fn ascii((low, high): (char, char)) -> u128 {
    if low.is_ascii() { (u128::MAX << low as u32) & (u128::MAX >> (127 - (high as u32).min(127))) } else { 0 }
}

/// The numbers of the bits, and that of the others.
fn numbers(ascii: u128, others: bool) -> impl Iterator<Item = usize> {
    let rest = std::iter::successors(Some(ascii), |bits| Some(bits & bits.wrapping_sub(1)));
    let numbers = rest.take_while(|bits| *bits != 0).map(|bits| bits.trailing_zeros() as usize);
    numbers.chain(others.then_some(OTHERS))
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
                let found = program.atom_matches_by(&occurrences, at, topic);
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
