//! Fuzzes `parsers::fields`.
#![no_main]

#[path = "../../engine/wire/tests/parsers/fields.rs"]
mod fields;

libfuzzer_sys::fuzz_target!(|input: &[u8]| fields::check(input));
