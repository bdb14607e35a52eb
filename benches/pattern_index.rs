//! What it costs to find who wants a topic among many patterns, and to add and take a pattern.

mod common;
#[path = "common/cpu_time.rs"]
mod cpu_time;

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tinybroker::pattern::{Index, Pattern};

use cpu_time::CpuTime;

const SIZES: [usize; 2] = [1_000, 10_000];
/// Topics that take turns, so that no processor learns the one by heart.
const TOPICS: usize = 64;

/// A mix as many tenants of one broker would have it: of twenty patterns ten begin with what they
/// look for, four are topics, three have the star in the middle, two at the front, one has the rest.
fn pattern(number: usize) -> Pattern {
    let text = match number % 20 {
        0..10 => format!("tenant-{number}.order.*"),
        10..14 => format!("tenant-{number}.order.placed"),
        14..17 => format!("tenant-{number}.*.placed"),
        17..19 => format!("*.order-{number}"),
        _ if number % 40 < 20 => format!("tenant-{number}.order-?.*"),
        _ => format!("tenant-{number}.order-[0-9a-f]*.placed"),
    };
    Pattern::parse(&text).expect("a pattern")
}

/// Each pattern is held by a subscription of its own.
fn index(size: usize) -> Index<u32> {
    let mut index = Index::new();
    for number in 0..size {
        index.insert(number as u32, &[pattern(number)]).expect("there is room");
    }
    index
}

/// Topics of tenants from all over the index that match one pattern each, or none.
fn topics(size: usize, wanted: bool) -> Vec<String> {
    let tenants = (0..).map(|nth| nth * 7919 % size);
    let heard = tenants.filter(|tenant| tenant % 20 < 17);
    let last = if wanted { "order.placed" } else { "refund.asked" };
    heard.take(TOPICS).map(|tenant| format!("tenant-{tenant}.{last}")).collect()
}

fn matching(c: &mut Criterion<CpuTime>) {
    let mut group = c.benchmark_group("pattern_index/matching");
    group.throughput(Throughput::Elements(1));
    for size in SIZES {
        let mut index = index(size);
        let mut keys = Vec::new();
        for (name, wanted) in [("one", true), ("none", false)] {
            let topics = topics(size, wanted);
            let mut topics = topics.iter().cycle();
            group.bench_function(format!("{size}_patterns/{name}"), |b| {
                b.iter(|| {
                    keys.clear();
                    index.matching(topics.next().expect("they cycle"), &mut keys);
                    assert_eq!(keys.len(), usize::from(wanted));
                    black_box(&keys);
                });
            });
        }
    }
    group.finish();
}

/// One element is a pattern that comes and goes.
fn insert_and_remove(c: &mut Criterion<CpuTime>) {
    let mut group = c.benchmark_group("pattern_index/insert_and_remove");
    group.throughput(Throughput::Elements(1));
    for size in SIZES {
        let mut index = index(size);
        let guests: Vec<[Pattern; 1]> = (size..size + TOPICS).map(|number| [pattern(number)]).collect();
        let mut guests = guests.iter().cycle();
        group.bench_function(format!("{size}_patterns"), |b| {
            b.iter(|| {
                let guest = guests.next().expect("they cycle");
                index.insert(u32::MAX, black_box(guest)).expect("there is room");
                index.remove(u32::MAX, guest);
            });
        });
        assert_eq!(index.patterns(), size, "the guests are gone");
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = common::criterion(CpuTime);
    targets = matching, insert_and_remove
}
criterion_main!(benches);
