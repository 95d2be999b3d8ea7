//! Fuzzes `parsers::frames`.
#![no_main]

#[allow(dead_code)] // A target uses only one of the modules.
#[path = "../../engine/wire/tests/parsers/mod.rs"]
mod parsers;

libfuzzer_sys::fuzz_target!(|input: &[u8]| parsers::frames::check(input));
