//! What the means of `pattern_index` do not tell: tails, memory, pauses while a million patterns come and go, each beside
//! what it was meant to be. Prints Markdown and ends by itself.
//!
//! `cargo bench --bench pattern_tails -- [--quick] [SECTION...]`; a section is chosen by a part of its name.

#[path = "common/allocator.rs"]
mod allocator;
#[path = "common/clock.rs"]
mod clock;
#[path = "common/extremes.rs"]
mod extremes;
#[path = "common/popular.rs"]
mod popular;
#[path = "common/table.rs"]
mod table;
mod tails;
#[path = "common/workload.rs"]
mod workload;

use tails::{churn, matching, memory};

type Section = (&'static str, fn(usize));

/// Each takes by how much smaller than usual it is to be.
const SECTIONS: [Section; 6] = [
    ("cached", matching::cached),
    ("uncached", matching::uncached),
    ("crafted", matching::crafted),
    ("memory", memory::bytes_a_pattern),
    ("churn", churn::churn),
    ("distinct_topics", memory::distinct_topics),
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let smaller = if arguments.iter().any(|argument| argument == "--quick") { 10 } else { 1 };
    // `cargo bench` adds an option of its own.
    let chosen: Vec<&String> = arguments.iter().filter(|argument| !argument.starts_with('-')).collect();
    for (name, run) in SECTIONS {
        if chosen.is_empty() || chosen.iter().any(|part| name.contains(part.as_str())) {
            run(smaller);
        }
    }
}
