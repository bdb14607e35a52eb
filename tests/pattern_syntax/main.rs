//! Any bytes as a pattern and a topic: parsing ends well, and what is parsed means what the text says. `fuzz/` does the
//! same with bytes that it chooses by what they reach.

mod check;
mod reference;

use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(50_000))]

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..160)) {
        check::run(&bytes);
    }
}

#[test]
fn bytes_become_patterns_that_match() {
    // A seed of the fuzzer: `a*[b-.]{.,é}` and a topic of it.
    let run = check::run(&check::bytes_of("a*[a-é]{.,é}?"));
    assert_eq!(run, Some(true));
}
