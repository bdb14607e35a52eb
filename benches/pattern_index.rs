//! What it costs to find who wants a topic among up to a million patterns, and to add and take a pattern.

mod common;
#[path = "common/cpu_time.rs"]
mod cpu_time;
#[path = "common/extremes.rs"]
mod extremes;
#[path = "common/popular.rs"]
mod popular;
#[path = "common/workload.rs"]
mod workload;

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use tinybroker::pattern::Index;

use cpu_time::{CpuTime, clock};
use extremes::{Crafted, LARGE, sets, single_patterns};
use popular::Popular;
use workload::merge;

/// As in the broker.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

type Group<'a> = BenchmarkGroup<'a, CpuTime>;

/// Topics that are made before each stretch that is measured.
const TOPICS_AT_ONCE: u64 = 16_384;
/// So many more are looked up before: to make topics displaces the index from the processor's caches.
const WARM_UP: u64 = 1_024;

/// An index that is filled when a benchmark wants it, not when another one was chosen.
struct Late<F> {
    fill: F,
    index: Option<Index<usize>>,
}

impl<F: Fn() -> Index<usize>> Late<F> {
    fn new(fill: F) -> Self {
        Self { fill, index: None }
    }

    /// All in the overlay, before [`in_base`](Self::in_base) was called.
    fn in_overlay(&mut self) -> &mut Index<usize> {
        self.index.get_or_insert_with(&self.fill)
    }

    /// All in the base, and of guests that came and went nothing.
    fn in_base(&mut self) -> &mut Index<usize> {
        let index = self.in_overlay();
        merge(index);
        index
    }
}

/// How long it takes to look up so many topics, each another one.
fn look_up(index: &mut Index<usize>, times: u64, mut topics: impl Iterator<Item = String>) -> Duration {
    let mut keys = Vec::new();
    let mut used = Duration::ZERO;
    let mut left = times;
    while left > 0 {
        let (before, count) = (left.min(WARM_UP), left.min(TOPICS_AT_ONCE));
        let topics: Vec<String> = topics.by_ref().take((before + count) as usize).collect();
        let mut look_up = |topic: &String| {
            keys.clear();
            index.matching(topic, &mut keys);
            black_box(&keys);
        };
        let (before, measured) = topics.split_at(before as usize);
        before.iter().for_each(&mut look_up);
        let begun = clock::now();
        measured.iter().for_each(&mut look_up);
        used += clock::now() - begun;
        left -= count;
    }
    used
}

/// The same patterns before a merge and after it.
fn before_and_after(
    group: &mut Group<'_>,
    name: &str,
    fill: impl Fn() -> Index<usize>,
    topic: impl Fn(usize) -> String,
) {
    let mut index = Late::new(fill);
    let mut topics = (0..).map(topic);
    group.bench_function(format!("{name}/overlay"), |b| {
        let index = index.in_overlay();
        b.iter_custom(|times| look_up(index, times, &mut topics));
    });
    group.bench_function(format!("{name}/base"), |b| {
        let index = index.in_base();
        b.iter_custom(|times| look_up(index, times, &mut topics));
    });
}

fn uncached(c: &mut Criterion<CpuTime>) {
    let mut group = c.benchmark_group("pattern_index/uncached");
    group.throughput(Throughput::Elements(1));
    for (name, workload) in LARGE {
        before_and_after(&mut group, name, || workload.index(), |nth| workload.topic(nth));
    }
    group.finish();
}

fn crafted(c: &mut Criterion<CpuTime>, name: &str, all: &[Crafted]) {
    let mut group = c.benchmark_group(format!("pattern_index/{name}"));
    group.throughput(Throughput::Elements(1));
    for one in all {
        before_and_after(&mut group, one.name, || one.index().0, |nth| one.topic(nth));
    }
    group.finish();
}

fn longest_topic(c: &mut Criterion<CpuTime>) {
    crafted(c, "longest_topic", &single_patterns());
    crafted(c, "crafted_set", &sets());
}

/// Topics that come again and again, as they are, and while patterns come and go.
fn cached(c: &mut Criterion<CpuTime>) {
    let mut group = c.benchmark_group("pattern_index/cached");
    group.throughput(Throughput::Elements(1));
    let mut index = Late::new(|| Popular::workload().index());
    let mut popular = Popular::new();
    group.bench_function("unchanged", |b| {
        let index = index.in_base();
        b.iter(|| popular.look_up(index));
    });
    group.bench_function("changed_every_200", |b| {
        let index = index.in_base();
        b.iter(|| {
            popular.change_now_and_then(index);
            popular.look_up(index);
        });
    });
    group.finish();
}

/// One element is a pattern that comes and goes.
fn insert_and_remove(c: &mut Criterion<CpuTime>) {
    let mut group = c.benchmark_group("pattern_index/insert_and_remove");
    group.throughput(Throughput::Elements(1));
    for (name, workload) in LARGE.iter().filter(|(name, _)| name.starts_with("mixed")) {
        let mut index = Late::new(|| workload.index());
        let mut guests = workload.guests();
        group.bench_function(*name, |b| {
            let index = index.in_base();
            b.iter(|| {
                index.insert(usize::MAX, &guests[0]).expect("there is room");
                index.remove(usize::MAX, &guests[0]);
                guests.rotate_left(1);
            });
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = common::criterion(CpuTime);
    targets = cached, uncached, longest_topic, insert_and_remove
}
criterion_main!(benches);
