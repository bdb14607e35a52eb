//! Any bytes as a pattern and a topic: parsing ends well, and what is parsed means what the text says. `fuzz/` does the
//! same with bytes that it chooses by what they reach.

mod check;
mod reference;

use std::cell::Cell;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;

/// Mostly short ones, since the longer they are the more rules they break.
fn texts() -> impl Strategy<Value = Vec<u8>> {
    let bytes = |range| prop::collection::vec(any::<u8>(), range);
    let short = (prop::collection::vec(..check::END, 1..8), bytes(0..12));
    let short = short.prop_map(|(pattern, topic)| [&pattern[..], &[check::END], &topic].concat());
    prop_oneof![7 => short, 1 => bytes(0..300)]
}

#[test]
fn any_bytes() {
    let counts = [const { Cell::new(0) }; 3];
    let mut runner = TestRunner::new(ProptestConfig::with_cases(30_000));
    let result = runner.run(&texts(), |bytes| {
        let kind = match check::run(&bytes) {
            None => 0,
            Some(is_match) => 1 + usize::from(is_match),
        };
        counts[kind].set(counts[kind].get() + 1);
        Ok(())
    });
    result.expect("all bytes do");
    let counts = counts.map(Cell::into_inner);
    assert!(counts.iter().all(|count| *count > 3_000), "refused, no match, a match: {counts:?}");
}

#[test]
fn bytes_become_patterns_that_match() {
    assert_eq!(check::run(&check::bytes_of("a*[a-é]{.,é}?")), Some(true));
}
