//! sysbench's built-in tests: they measure CPU, memory, threads, locks and files, without a database.
//!
//! ```text
//!  Test ──▶ ConfiguredTest ──▶ SharedState ──▶ Runner, one per thread ──▶ run ──▶ records
//! ```
//! A test defines its event and its report; [`mod@run`] starts and counts the events of every test.
//! Each user is an operating system thread, because these tests measure threads; in database workloads, many users
//! share one event loop.
//!
//! # Layout
//! - [`test`](mod@test): the interface of a test. [`TESTS`]: the tests.
//! - [`mod@run`]: threads, phases, intervals, rate and limits.
//! - [`cpu`], [`memory`], [`threads`], [`mutex`], [`fileio`]: one file or folder per test.

// Only dbdyno-compat uses this crate, so items with a clear name need no doc comment.
#![allow(missing_docs)]
// The tests time events and use files, unlike the other crates below `runner` (ARCHITECTURE.md, rule 2).
#![allow(clippy::disallowed_methods)]

pub mod cpu;
pub mod fileio;
mod lock;
pub mod memory;
pub mod mutex;
mod opaque_step;
pub mod run;
pub mod test;
pub mod threads;

pub use test::{ConfiguredTest, IoCounts, LogMessage, Parameters, Runner, SharedState, Test, TestError};

/// The tests, in sysbench's order.
pub const TESTS: [&dyn Test; 5] =
    [&fileio::FileIo, &cpu::Cpu, &memory::Memory, &threads::Threads, &mutex::Mutexes];

pub fn test(name: &str) -> Option<&'static dyn Test> {
    TESTS.into_iter().find(|test| test.name() == name)
}
