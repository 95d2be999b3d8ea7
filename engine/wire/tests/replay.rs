//! Runs the fuzz targets on their seeds: recorded packets of real servers, and inputs that have revealed a bug.
//!
//! Each seed is also truncated at every length and changed at 200 pseudo-random positions.

#![allow(clippy::disallowed_methods)] // A test reads files.

mod parsers;

use std::path::Path;

/// Maximum bytes of a seed that is truncated at every length. For a longer seed, only the lengths below this are tested.
const TRUNCATED_MAX: usize = 512;

fn replay(target: &str, check: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(target);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() >= 3, "{} has {} seeds", folder.display(), paths.len());
    for path in paths {
        let seed = std::fs::read(&path).unwrap();
        check(&seed);
        for length in 0..seed.len().min(TRUNCATED_MAX) {
            check(&seed[..length]);
        }
        for (position, flip) in changes(seed.len()) {
            let mut changed = seed.clone();
            changed[position] ^= flip;
            check(&changed);
        }
    }
}

/// The positions at which to change a seed of `length` bytes, and the bits to flip there: a linear congruential sequence
/// (Knuth's MMIX).
fn changes(length: usize) -> impl Iterator<Item = (usize, u8)> {
    let mut state = length as u64;
    let mut next = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize
    };
    (0..if length == 0 { 0 } else { 200 }).map(move |_| (next() % length, 1 << (next() % 8)))
}

#[test]
fn skim() {
    replay("skim", parsers::skim::check);
}

#[test]
fn fields() {
    replay("fields", parsers::fields::check);
}

#[test]
fn login() {
    replay("login", parsers::login::check);
}

#[test]
fn session() {
    replay("session", parsers::session::check);
}

#[test]
fn frames() {
    replay("frames", parsers::frames::check);
}

#[test]
fn pg_skim() {
    replay("pg_skim", parsers::postgres::skim);
}

#[test]
fn pg_session() {
    replay("pg_session", parsers::postgres::session);
}
