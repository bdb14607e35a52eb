//! The pattern index against trying each pattern on each topic, over random scripts of all that can happen to it.
//!
//! `PATTERN_INDEX_CASES` sets how many answers are compared, `PATTERN_INDEX_SEED` where the scripts begin; a failure
//! prints the seed of its script, which alone repeats it.

mod chance;
mod script;
mod texts;

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use chance::Chance;

const CASES: u64 = 1_000_000;

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

/// Prints the seed of the script that a panic ends, wherever it comes from.
struct Blame(u64);

impl Drop for Blame {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("failed with PATTERN_INDEX_SEED={} PATTERN_INDEX_CASES=1", self.0);
        }
    }
}

#[test]
fn agrees_with_trying_each_pattern() {
    let cases = setting("PATTERN_INDEX_CASES").unwrap_or(CASES);
    let seed = AtomicU64::new(setting("PATTERN_INDEX_SEED").unwrap_or(1));
    let compared = AtomicU64::new(0);
    let matched = AtomicU64::new(0);
    let work = || {
        while compared.load(Ordering::Relaxed) < cases {
            let blame = Blame(seed.fetch_add(1, Ordering::Relaxed));
            let run = script::run(Chance::of_seed(blame.0));
            compared.fetch_add(run.compared, Ordering::Relaxed);
            matched.fetch_add(run.matched, Ordering::Relaxed);
        }
    };
    thread::scope(|scope| {
        let workers = thread::available_parallelism().map_or(1, usize::from).min(cases as usize);
        for _ in 0..workers {
            scope.spawn(work);
        }
    });
    let (compared, matched) = (compared.into_inner(), matched.into_inner());
    println!("{compared} answers compared, {matched} of them not empty");
    if cases > 1_000 {
        assert!(matched * 4 > compared, "scripts find something often enough: {matched} of {compared}");
        assert!(matched * 20 < compared * 19, "and nothing often enough: {matched} of {compared}");
    }
}

/// As the fuzzer does it: see `fuzz/`.
#[test]
fn agrees_where_bytes_choose() {
    let mut matched = 0;
    for seed in 0..300 {
        let mut chance = Chance::of_seed(seed);
        let bytes = (0..chance.below(4_000)).map(|_| chance.below(256) as u8).collect();
        matched += script::run(Chance::of_bytes(bytes)).matched;
    }
    assert!(matched > 1_000, "scripts of bytes find something: {matched}");
}
