//! The pattern index beside other ways to do the same, on the same patterns and topics in the same run. Prints Markdown and
//! ends by itself.
//!
//! Each gets those patterns of the mix that it can express. Every topic is another one. All take turns, a stretch of topics
//! each, in CPU time; the figure is the median of the stretches.

#[path = "common/allocator.rs"]
mod allocator;
#[path = "common/clock.rs"]
mod clock;
mod rivals;
#[path = "common/table.rs"]
mod table;
#[path = "common/workload.rs"]
mod workload;

use std::time::Duration;

use tinybroker::limits::{DISTINCT_PATTERNS, UNSELECTIVE_PATTERNS};
use tinybroker::pattern::{Index, Pattern};

use allocator::counted;
use rivals::{Globs, Regexes, Rival, Trie};
use table::time;
use workload::{Workload, merge, mixed};

const SIZES: [usize; 3] = [1_000, 10_000, 100_000];
/// For what is fast enough there.
const LARGEST: usize = 1_000_000;
const STRETCHES: usize = 9;
const TOPICS_A_STRETCH: usize = 2_000;
/// A stretch ends early once it has taken this long.
const STRETCH: Duration = Duration::from_millis(500);
/// Topics for which both must find the same before anything is measured.
const TOPICS_COMPARED: usize = 100;

/// Patterns that a rival can express, as both write them.
struct Common {
    ours: Vec<Pattern>,
    theirs: Vec<String>,
}

impl Common {
    fn of<R: Rival>(size: usize) -> Self {
        let texts = (0..).map(mixed).take(size);
        let both = texts.filter_map(|text| {
            let theirs = R::translate(&text)?;
            Some((Pattern::parse(&text).expect("a pattern"), theirs))
        });
        let (ours, theirs) = both.unzip();
        Self { ours, theirs }
    }

    fn index(&self) -> Index<usize> {
        // Braces count more than once.
        let mut index = Index::with_bounds(2 * DISTINCT_PATTERNS, UNSELECTIVE_PATTERNS);
        for (number, pattern) in self.ours.iter().enumerate() {
            index.insert(number, std::slice::from_ref(pattern)).expect("there is room");
        }
        merge(&mut index);
        index
    }
}

/// The CPU time of a match, in nanoseconds.
fn stretch(topics: &[String], mut look_up: impl FnMut(&str)) -> f64 {
    let begun = clock::now();
    let mut done = 0;
    for some in topics.chunks(50) {
        some.iter().for_each(|topic| look_up(topic));
        done += some.len();
        if clock::now() - begun > STRETCH {
            break;
        }
    }
    (clock::now() - begun).as_nanos() as f64 / done as f64
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_unstable_by(f64::total_cmp);
    figures[figures.len() / 2]
}

fn compare<R: Rival>(size: usize) -> Vec<String> {
    let common = Common::of::<R>(size);
    let what = vec![size.to_string(), R::NAME.to_owned(), common.ours.len().to_string()];
    let (mut index, ours) = counted(|| common.index());
    let begun = clock::now();
    let (built, theirs) = counted(|| R::build(&common.theirs));
    let building = (clock::now() - begun).as_nanos() as f64;
    let mut rival = match built {
        Ok(rival) => rival,
        Err(error) => return [what, vec![format!("does not build: {error}")]].concat(),
    };
    let workload = Workload { text: mixed, size };
    let mut topics = (0..).map(|nth| workload.topic(nth));
    let (mut keys, mut found) = (Vec::new(), Vec::new());
    for topic in topics.by_ref().take(TOPICS_COMPARED) {
        keys.clear();
        found.clear();
        index.matching(&topic, &mut keys);
        rival.matching(&topic, &mut found);
        found.sort_unstable();
        assert_eq!(keys, found, "{} and the index agree on {topic}", R::NAME);
    }
    let (mut of_ours, mut of_theirs) = (Vec::new(), Vec::new());
    for _ in 0..STRETCHES {
        let topics: Vec<String> = topics.by_ref().take(TOPICS_A_STRETCH).collect();
        of_ours.push(stretch(&topics, |topic| {
            keys.clear();
            index.matching(topic, &mut keys);
        }));
        of_theirs.push(stretch(&topics, |topic| {
            found.clear();
            rival.matching(topic, &mut found);
        }));
    }
    let (one, other) = (median(of_ours), median(of_theirs));
    let ratio = other / one;
    let ratio = if ratio < 1.0 { format!("**{ratio:.2}**") } else { format!("{ratio:.1}") };
    let figures = vec![time(other), time(one), ratio, time(building), theirs.to_string(), ours.to_string()];
    [what, figures].concat()
}

fn main() {
    let chosen: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let is_chosen = |name: &str| chosen.is_empty() || chosen.iter().any(|part| name.contains(part.as_str()));
    let mut rows = Vec::new();
    if is_chosen(Globs::NAME) {
        rows.extend(SIZES.map(compare::<Globs>));
    }
    if is_chosen(Regexes::NAME) {
        rows.extend(SIZES.map(compare::<Regexes>));
    }
    if is_chosen(Trie::NAME) {
        rows.extend(SIZES.map(compare::<Trie>));
        rows.push(compare::<Trie>(LARGEST));
    }
    let head = [
        "mix",
        "other",
        "patterns",
        "a match",
        "of the index",
        "ratio",
        "to build",
        "memory",
        "of the index",
    ];
    table::print("The index and others", &head, rows);
}
