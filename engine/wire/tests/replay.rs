//! Replays the seeds of the fuzz targets: real packets of real servers, and every input that once was a finding.
//!
//! Each seed is also cut off at every length and changed in a few places, always the same ones.

#![allow(clippy::disallowed_methods)] // A test reads files.

mod parsers;

use std::path::Path;

/// Longest seed that is cut off at every length.
const CUT_MAX: usize = 512;

fn replay(target: &str, check: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(target);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() >= 3, "{} holds {} seeds", folder.display(), paths.len());
    for path in paths {
        let seed = std::fs::read(&path).unwrap();
        check(&seed);
        for length in 0..seed.len().min(CUT_MAX) {
            check(&seed[..length]);
        }
        for (place, flip) in changes(seed.len()) {
            let mut changed = seed.clone();
            changed[place] ^= flip;
            check(&changed);
        }
    }
}

/// Where to change a seed of that length, and which bits: a small linear congruential sequence (Knuth's MMIX).
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
