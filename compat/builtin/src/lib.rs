//! sysbench's built-in tests: what a machine can do without a database.
//!
//! ```text
//!  Test ──configure──▶ Configured ──open──▶ Bench ──runner──▶ Runner   one for each thread
//!                                                               ▲
//!                                        run: threads, clock, ──┘──▶ Records
//! ```
//! A test defines an event and its report; [`mod@run`] starts and counts the events of all tests.
//! The users of a database share a few event loops; every user here is an operating system thread, because threads are what
//! is measured.
//!
//! # Layout
//! - [`test`](mod@test): the interface of a test. [`TESTS`]: the tests.
//! - [`mod@run`]: threads, phases, intervals, rate and limits.
//! - [`cpu`], [`memory`], [`threads`], [`mutex`], [`fileio`]: one file, or folder, for each test.

// Only dbdyno-compat uses this crate: names that explain themselves have no comment.
#![allow(missing_docs)]
// The tests time events and use files, unlike the other crates below `runner` (ARCHITECTURE.md, rule 2).
#![allow(clippy::disallowed_methods)]

pub mod cpu;
pub mod fileio;
mod lock;
pub mod memory;
pub mod mutex;
pub mod run;
mod step;
pub mod test;
pub mod threads;

pub use test::{Bench, Configured, Line, Parameters, Runner, Test, TestError, Work};

/// In sysbench's order.
pub const TESTS: [&dyn Test; 5] =
    [&fileio::FileIo, &cpu::Cpu, &memory::Memory, &threads::Threads, &mutex::Mutexes];

pub fn test(name: &str) -> Option<&'static dyn Test> {
    TESTS.into_iter().find(|test| test.name() == name)
}
