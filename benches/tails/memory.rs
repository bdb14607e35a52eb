//! What patterns and topics take.

use super::beside;
use super::matching::replace_sixteenth;
use crate::allocator::counted;
use crate::clock;
use crate::table::{self, time};
use crate::tails::against;
use crate::workload::{Workload, merge, mixed};

const STEADY: isize = 120;
const PEAK: isize = 300;
const BUILD: f64 = 3e9;

pub fn bytes_a_pattern(smaller: usize) {
    let workload = Workload { text: mixed, size: 1_000_000 / smaller };
    let (mut index, filled) = counted(|| workload.index());
    let text: usize = (0..workload.size).map(|number| (workload.text)(number).len()).sum();
    // Texts come and go, and are as long as those before them.
    let a_pattern = |bytes: isize| (bytes - text as isize) / workload.size as isize;
    let mut held = filled.kept;
    let mut rows = vec![vec!["all in the overlay".into(), format!("{} B", a_pattern(held)), String::new()]];
    let begun = clock::now();
    let ((), first) = counted(|| merge(&mut index));
    let building = (clock::now() - begun).as_nanos() as f64;
    let mut merged = |state: &str, peak: isize, kept: isize| {
        let (peak, kept) = (a_pattern(peak), a_pattern(kept));
        let beside = |figure, target| beside(figure <= target, format!("{figure} B"), format!("{target} B"));
        rows.push(vec![state.into(), beside(kept, STEADY), beside(peak, PEAK)]);
    };
    merged("merged, all at once", held + first.peak, held + first.kept);
    held += first.kept;
    let ((), replaced) = counted(|| replace_sixteenth(&mut index, &workload));
    held += replaced.kept;
    let ((), second) = counted(|| merge(&mut index));
    merged("merged, as soon as was due", held + second.peak, held + second.kept);
    let heading = format!("Bytes a pattern without its text, {} patterns of the mix", workload.size);
    table::print(&heading, &["state", "steady", "at the peak of the merge"], rows);
    println!("\nThe base was built in {} of CPU time, at once.", against(BUILD, building));
    println!("The text of a pattern has {} bytes.", text / workload.size);
}

/// Each topic comes twice, so that all of them are remembered for a while.
pub fn distinct_topics(smaller: usize) {
    let workload = Workload { text: mixed, size: 10_000 };
    let million = 1_000_000 / smaller;
    let mut index = workload.index();
    merge(&mut index);
    let mut keys = Vec::new();
    let mut held = 0;
    let mut rows = Vec::new();
    let mut spent = clock::now();
    for part in 1..=5 {
        let ((), usage) = counted(|| {
            for nth in (part - 1) * million..part * million {
                let topic = workload.topic(nth);
                for _ in 0..2 {
                    keys.clear();
                    index.matching(&topic, &mut keys);
                }
            }
        });
        held += usage.kept;
        let before = std::mem::replace(&mut spent, clock::now());
        let each = (spent - before).as_nanos() as f64 / million as f64;
        rows.push(vec![format!("{}", part * million), format!("{:.2} MB", held as f64 / 1e6), time(each)]);
    }
    let head = ["topics so far", "memory they take", "CPU time of a topic, made and looked up twice"];
    table::print("Topics that come twice, 10,000 patterns of the mix", &head, rows);
}
