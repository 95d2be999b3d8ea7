//! Fuzzes `parsers::skim`.
#![no_main]

#[path = "../../engine/wire/tests/parsers/skim.rs"]
mod skim;

libfuzzer_sys::fuzz_target!(|input: &[u8]| skim::check(input));
