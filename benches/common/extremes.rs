//! Patterns that are alike, and patterns and sets within the bounds that take long on the longest topics.

use tinybroker::limits::{
    ALIKE_PATTERNS, DISTINCT_PATTERNS, SEGMENT_ELEMENTS, SIMILAR_PATTERNS, TOPIC_BYTES, UNSELECTIVE_PATTERNS,
};
use tinybroker::pattern::{Index, Pattern};

use crate::workload::{Workload, mixed, scattered};

const MILLION: usize = 1_000_000;

/// What a topic is looked up in, by name.
pub const LARGE: [(&str, Workload); 6] = [
    ("mixed_10k", Workload { text: mixed, size: MILLION / 100 }),
    ("mixed_100k", Workload { text: mixed, size: MILLION / 10 }),
    ("mixed_1m", Workload { text: mixed, size: MILLION }),
    ("prefix_or_exact_1m", Workload { text: prefix_or_exact, size: MILLION }),
    ("shared_prefix_1m", Workload { text: shared_prefix, size: MILLION }),
    ("stars_first_1m", Workload { text: stars_first, size: MILLION }),
];

/// The mix without stars in front and in the middle.
fn prefix_or_exact(number: usize) -> String {
    mixed(number / 14 * 20 + number % 14)
}

fn shared_prefix(number: usize) -> String {
    format!("company.eu-west.production.{}", mixed(number))
}

fn stars_first(number: usize) -> String {
    let tenant = scattered(number);
    match number % 4 {
        0 => format!("*.order-{tenant}"),
        1 => format!("*.tenant-{tenant}.*"),
        2 => format!("*order.{tenant}.placed"),
        _ => format!("*-{tenant}.order-?*"),
    }
}

impl Workload {
    /// Each pattern held by a key of its own, its number; nothing is merged yet.
    pub fn index(&self) -> Index<usize> {
        // A million and some guests, and braces count more than once.
        let mut index = Index::with_bounds(2 * DISTINCT_PATTERNS, UNSELECTIVE_PATTERNS);
        for number in 0..self.size {
            index.insert(number, &[self.pattern(number)]).expect("there is room");
        }
        index
    }
}

/// Patterns that are held together, and what the longest topics are made of that they are looked up in.
pub struct Crafted {
    pub name: &'static str,
    texts: Vec<String>,
    filler: String,
}

impl Crafted {
    fn new(name: &'static str, texts: impl IntoIterator<Item = String>) -> Self {
        Self { name, texts: texts.into_iter().collect(), filler: "a".repeat(TOPIC_BYTES) }
    }

    /// Those that the bounds let in, with how many they are.
    pub fn index(&self) -> (Index<usize>, usize) {
        let mut index = Index::new();
        for (number, text) in self.texts.iter().enumerate() {
            let pattern = Pattern::parse(text).expect("a pattern");
            // Sets are larger than the bounds, to be as large as they allow.
            let _ = index.insert(number, &[pattern]);
        }
        let taken = index.patterns();
        (index, taken)
    }

    /// A topic as long as may be, each time another.
    pub fn topic(&self, nth: usize) -> String {
        let number = format!("{nth:08}");
        let end = self.filler.floor_char_boundary(TOPIC_BYTES - number.len());
        format!("{}{number}", &self.filler[..end])
    }
}

/// One pattern each.
pub fn single_patterns() -> Vec<Crafted> {
    let one = |name, text: String| Crafted::new(name, [text]);
    let most = SEGMENT_ELEMENTS;
    let mut wide = one("two_byte_characters", format!("*{}[b-d]*", "?".repeat(most - 1)));
    wide.filler = "é".repeat(TOPIC_BYTES / 2);
    let expansions = "*{a,b}{?,[ab]}{?,[ac]}{?,[ad]}{?,[ae]}{?,[af]}";
    let mut nearly = one("64_expansions_nearly", format!("{expansions}[ay][xy]b*"));
    nearly.filler = "abaababbabaaabaababbababbabaababbabbbabyz".repeat(TOPIC_BYTES / 40);
    vec![
        one("no_wildcard_near", "zzz*".into()),
        one("stars_in_vain", "*a".repeat(15) + "*b?"),
        one("stars", "*aaa".repeat(15) + "*"),
        one("any_then_class", format!("*{}[bcd]*", "?".repeat(most - 1))),
        one("classes", format!("*{}[0-9]b*", "[a-z]".repeat(40))),
        wide,
        one("64_expansions", format!("{expansions}[xy]*")),
        nearly,
    ]
}

/// One of 260 classes, none of which the topics meet.
fn class(number: usize) -> String {
    format!("[x-z{}{}]", char::from(b'A' + (number % 26) as u8), number / 26 % 10)
}

/// Prefixes and suffixes that nest, each with each: some 27,000 pairs lie in one topic.
fn pairs() -> Crafted {
    let each = |n: usize| "a".repeat(n);
    let texts = (3..235).flat_map(|n| (3..235 - n).map(move |m| (n, m)));
    Crafted::new(
        "pairs",
        texts.flat_map(|(n, m)| (0..2).map(move |c| format!("{}?{}*{}", each(n), class(c), each(m)))),
    )
}

/// Texts of every length at every place of one topic, which no part of it repeats, with more behind each than is there:
/// what `behind` makes of a number, the topic and the place.
fn windows(name: &'static str, behind: fn(usize, &str, usize) -> String) -> Crafted {
    let filler = unrepeated();
    let places = || 32..TOPIC_BYTES - 32;
    let windows = [3, 4, 6, 8, 12, 16].into_iter().flat_map(|len| places().map(move |at| (at, len)));
    // More than are free, until the bounds let no more in.
    let texts = (0..2 * ALIKE_PATTERNS).flat_map(|n| windows.clone().map(move |(at, len)| (n, at, len)));
    let text = |(n, at, len): (usize, usize, usize)| {
        format!("*{}{}*", &filler[at..at + len], behind(n, &filler, at))
    };
    let texts: Vec<String> = texts.map(text).collect();
    Crafted { filler, ..Crafted::new(name, texts) }
}

/// What stands before a place and so cannot stand behind it.
fn before(number: usize, topic: &str, at: usize) -> String {
    format!("*{}", &topic[at - 12 - number..at])
}

/// Classes each of which takes half of the letters, in an order in which hardly any topic has them.
fn halves(number: usize, _: &str, at: usize) -> String {
    let bits = scattered(8 * at + number);
    let half = |bit: u32| if bits >> bit & 1 == 0 { "[a-k]" } else { "[l-w]" };
    format!("*{}", (0..30).map(half).collect::<String>())
}

/// Letters of which no four come twice in the same order, or hardly.
fn unrepeated() -> String {
    let letter = |n: usize| {
        let mixed = scattered(n) ^ scattered(n) >> 15;
        char::from(b'a' + (scattered(mixed as usize) >> 24) as u8 % 23)
    };
    (0..TOPIC_BYTES).map(letter).collect()
}

/// Sets that are as large as the bounds allow, of patterns that one topic makes the index try.
pub fn sets() -> Vec<Crafted> {
    let runs = || (1..250).map(|n| "a".repeat(n));
    let nested = runs().flat_map(|run| [format!("{run}*zz"), format!("zz*{run}"), format!("*{run}*")]);
    let ends = runs().zip(1..).flat_map(|(run, n)| [format!("{run}*{n}z"), format!("z{n}*{run}")]);
    let similar = |n| format!("*aaa*??{}{}*", class(n), class(n / 260));
    let nested_and_similar = (3..235).flat_map(|n| {
        let run = "a".repeat(n);
        (0..SIMILAR_PATTERNS).map(move |n| format!("{run}{}{}*", class(n), class(n / 260)))
    });
    vec![
        Crafted::new("unselective", (0..2 * UNSELECTIVE_PATTERNS).map(|n| format!("*a?{}*", class(n)))),
        Crafted::new("similar", (0..10 * SIMILAR_PATTERNS).map(similar)),
        Crafted::new("nested", nested),
        Crafted::new("nested_ends", ends),
        Crafted::new("nested_and_similar", nested_and_similar),
        pairs(),
        windows("windows", |n, _, _| format!("?{}", class(n))),
        windows("windows_and_searches", |n, _, _| format!("*??{}*", class(n))),
        windows("windows_and_what_was_before", before),
        windows("windows_and_classes", halves),
    ]
}
