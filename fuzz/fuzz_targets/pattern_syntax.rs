//! `tests/pattern_syntax` with bytes of the fuzzer's choice.

#![no_main]

#[path = "../../tests/pattern_syntax/check.rs"]
mod check;
#[path = "../../tests/pattern_syntax/reference.rs"]
mod reference;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    check::run(bytes);
});
