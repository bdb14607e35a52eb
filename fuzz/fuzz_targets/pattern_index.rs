//! `tests/pattern_index` with scripts of the fuzzer's choice.

#![no_main]

#[path = "../../tests/pattern_index/chance.rs"]
mod chance;
#[path = "../../tests/pattern_index/script.rs"]
mod script;
#[path = "../../tests/pattern_index/texts.rs"]
mod texts;

use chance::Chance;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    script::run(Chance::of_bytes(bytes.to_vec()));
});
