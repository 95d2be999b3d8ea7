//! sysbench's built-in tests: what a machine can do without a database.
//!
//! ```text
//!  Test ──configure──▶ Configured ──open──▶ Bench ──runner──▶ Runner   one for each thread
//!                                                               ▲
//!                                        run: threads, clock, ──┘──▶ Records
//! ```
//! A test is what an event does and what is told of it; when events begin, and what is counted of them, is the same for
//! all tests and lies in [`mod@run`]. Unlike the users of a database, which wait together on a few event loops, every
//! user here is a thread of the operating system: the machine's threads are what is measured.
//!
//! # Layout
//! - [`test`](mod@test): the words that all tests share. [`TESTS`]: the tests.
//! - [`mod@run`]: threads, phases, intervals, rate and limits.
//! - [`cpu`], [`memory`], [`threads`], [`mutex`], [`fileio`]: one file, or folder, for each test.

// Events are timed and files are touched here, as in no other crate below `drive` (ARCHITECTURE.md, rule 2).
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

pub use test::{Bench, Configured, Fault, General, Given, Level, Line, Part, Runner, Test, Work};

/// Every test, in the order in which sysbench lists them.
pub const TESTS: [&dyn Test; 5] =
    [&fileio::FileIo, &cpu::Cpu, &memory::Memory, &threads::Threads, &mutex::Mutexes];

/// The test of that name.
pub fn test(name: &str) -> Option<&'static dyn Test> {
    TESTS.into_iter().find(|test| test.name() == name)
}
