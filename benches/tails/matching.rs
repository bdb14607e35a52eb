//! Single matches: of topics that come again, of topics that do not, and of the longest ones.

use std::hint::black_box;
use std::time::{Duration, Instant};

use tinybroker::pattern::Index;

use super::{Times, against};
use crate::allocator::counted;
use crate::clock;
use crate::extremes::{Crafted, LARGE, sets, single_patterns};
use crate::popular::Popular;
use crate::table::{self, time};
use crate::workload::{Workload, merge};

const CACHED: f64 = 100.0;
const CACHED_WITH_CHANGES: f64 = 500.0;
/// Mean and, where there is one, 99 % of those in [`LARGE`].
const UNCACHED: [(f64, Option<f64>); 6] = [
    (800.0, None),
    (1_000.0, None),
    (1_500.0, Some(5_000.0)),
    (600.0, None),
    (2_000.0, Some(6_000.0)),
    (2_000.0, Some(6_000.0)),
];
/// Topics that the processor's cache holds beside what a match needs.
const TOPICS_AT_ONCE: usize = 1024;
const LONGEST_TOPIC: f64 = 5_000.0;
const CRAFTED_SET: f64 = 1_000_000.0;

pub fn cached(smaller: usize) {
    let mut index = Popular::workload().index();
    merge(&mut index);
    let mut popular = Popular::new();
    let messages = 2_000_000 / smaller;
    let mut run = |is_changing: bool| {
        let begun = clock::now();
        for _ in 0..messages {
            if is_changing {
                popular.change_now_and_then(&mut index);
            }
            popular.look_up(&mut index);
        }
        (clock::now() - begun).as_nanos() as f64 / messages as f64
    };
    run(false);
    let hit = run(false);
    let with_changes = run(true);
    run(false);
    let ((), usage) = counted(|| {
        run(false);
    });
    let rows = vec![
        vec!["cached hit".into(), against(CACHED, hit)],
        vec![
            "allocations of a cached hit".into(),
            format!("{:.3} (0)", usage.blocks as f64 / messages as f64),
        ],
        vec![
            "with a subscribe and an unsubscribe each 200".into(),
            against(CACHED_WITH_CHANGES, with_changes),
        ],
    ];
    table::print(
        "1,000 topics again and again, 100,000 patterns, CPU time of a match",
        &["what", "mean"],
        rows,
    );
}

pub fn uncached(smaller: usize) {
    let mut rows = Vec::new();
    for ((name, large), (mean, p99)) in LARGE.into_iter().zip(UNCACHED) {
        let workload = Workload { size: large.size / smaller, ..large };
        let mut topics = (0..).map(|nth| workload.topic(nth));
        let mut index = workload.index();
        let mut row = |index: &mut Index<usize>, state: &str| {
            let mut sample = Sample::of(index, 200_000 / smaller, &mut topics);
            let [p50, p99_of_all, p999, max] = [500, 990, 999, 1000].map(|part| sample.each.permille(part));
            rows.push(vec![
                format!("{name}, {state}"),
                workload.size.to_string(),
                against(mean, sample.mean),
                time(p50),
                p99.map_or_else(|| time(p99_of_all), |target| against(target, p99_of_all)),
                time(p999),
                time(max),
                time(sample.longest),
                format!("{} %", sample.answered * 100 / sample.each.0.len()),
            ]);
        };
        row(&mut index, "all in the overlay");
        merge(&mut index);
        row(&mut index, "all in the base");
        replace_sixteenth(&mut index, &workload);
        row(&mut index, "a merge is due");
    }
    let head = ["what", "patterns", "mean, CPU", "p50", "p99", "p99.9", "max", "longest, CPU", "match"];
    table::print("Topics that never came before", &head, rows);
}

/// Takes one pattern of sixteen and adds as many: with what goes and what comes a merge is due.
pub fn replace_sixteenth(index: &mut Index<usize>, workload: &Workload) {
    for number in (0..workload.size).step_by(16) {
        index.remove(number, &[workload.pattern(number)]);
        let other = workload.size + number;
        index.insert(other, &[workload.pattern(other)]).expect("there is room");
    }
}

/// A topic that is looked up has just come from a socket: it is in the processor's cache.
fn touch(topic: &str) {
    black_box(topic.bytes().fold(0, u8::wrapping_add));
}

struct Sample {
    /// CPU time, of many matches measured together.
    mean: f64,
    /// On the clock.
    each: Times,
    /// CPU time.
    longest: f64,
    /// How many of as many answers as in `each` were not empty.
    answered: usize,
}

impl Sample {
    /// Three times so many topics, since looking at a clock takes a good part of what a match does.
    fn of(index: &mut Index<usize>, count: usize, topics: &mut impl Iterator<Item = String>) -> Self {
        let mut keys = Vec::new();
        let mut look_up = |topic: &str| {
            keys.clear();
            index.matching(black_box(topic), &mut keys);
            !keys.is_empty()
        };
        let mut next = || -> Vec<String> { topics.by_ref().take(count).collect() };
        let (mut used, mut answered) = (Duration::ZERO, 0);
        for pass in next().chunks(TOPICS_AT_ONCE) {
            pass.iter().for_each(|topic| touch(topic));
            let begun = clock::now();
            answered += pass.iter().filter(|topic| look_up(topic)).count();
            used += clock::now() - begun;
        }
        let mean = used.as_nanos() as f64 / count as f64;
        let pass = next();
        let mut time_each = || -> Vec<u64> {
            let time = |topic: &String| {
                touch(topic);
                let begun = Instant::now();
                black_box(look_up(topic));
                begun.elapsed().as_nanos() as u64
            };
            pass.iter().map(time).collect()
        };
        // An interrupt would lengthen some of a hundred matches by more than a match takes; it does not come twice at the
        // same topic. Between its two times come so many others that it is remembered by nothing.
        let twice = time_each().into_iter().zip(time_each());
        let each = Times(twice.map(|(one, other)| one.min(other)).collect());
        let longest = next().into_iter().map(|topic| {
            let begun = clock::now();
            black_box(look_up(&topic));
            clock::now() - begun
        });
        let longest = longest.max().unwrap_or_default().as_nanos() as f64;
        Self { mean, each, longest, answered }
    }
}

pub fn crafted(smaller: usize) {
    let rows = |all: Vec<Crafted>, target: f64| -> Vec<Vec<String>> {
        let row = |one: Crafted| {
            let (mut index, taken) = one.index();
            let mut topics = (0..).map(|nth| one.topic(nth));
            let overlay = Sample::of(&mut index, 200 / smaller, &mut topics);
            merge(&mut index);
            let base = Sample::of(&mut index, 200 / smaller, &mut topics);
            let [overlay, base] = [overlay, base].map(|sample| against(target, sample.mean));
            vec![one.name.into(), taken.to_string(), overlay, base]
        };
        all.into_iter().map(row).collect()
    };
    let mut all = rows(single_patterns(), LONGEST_TOPIC);
    all.extend(rows(sets(), CRAFTED_SET));
    let head = ["patterns", "taken", "all in the overlay", "all in the base"];
    table::print("Topics of 1 KiB, mean CPU time of a match", &head, all);
}
