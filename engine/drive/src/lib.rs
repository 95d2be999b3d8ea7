//! The loop: workers, phases, intervals, retries, stop; and the loader.
//!
//! ```text
//!  cli ──Control──▶ inbox ◀──messages── worker thread (one event loop)
//!                     │                    ├── user task ── connection
//!                  conductor               ├── user task ── connection
//!                     │                    └── timekeeper
//!                     ▼
//!                    Sink
//! ```
//! The conductor runs on the caller's thread: it starts the workers, adds up the spans they close, and hands the
//! records to a sink. It knows no SQL and measures nothing itself.
//!
//! # Layout
//! - [`run()`], `conductor`, `merge`, `health`: the caller's side.
//! - [`external`]: for programs whose users play something else than the plan's workload.
//! - `finish`: how all workers come to the same end.
//! - `worker`, `desk`, `sleepers`, `user`, `session`, `backoff`, `watch`: one worker thread.
//! - `clock`, `timer`, `machine`: time and the operating system.
//! - [`prepare`], [`cleanup`]: the loader. `prewarm`: reading the tables before a run.
//! - [`Hand`]: one connection outside any load.
//! - `secrets`: passwords and certificates, as the caller has read them.
//! - `failure`, `refusal`: errors with a way out; `client_words`: as MySQL's own clients tell them.

// With `wire` the only crate that reads the clock (ARCHITECTURE.md, rule 2).
#![allow(clippy::disallowed_methods)]

mod absent;
mod backoff;
pub mod client_words;
mod clock;
mod command;
mod conductor;
mod control;
mod desk;
pub mod external;
mod failure;
mod finish;
mod hand;
mod health;
mod loader;
mod machine;
mod merge;
mod post;
mod prewarm;
mod refusal;
mod secrets;
mod session;
mod sleepers;
mod timer;
mod user;
mod watch;
mod worker;

pub use clock::unix_us;
pub use conductor::run;
pub use control::{Control, Inbox, channel};
pub use hand::Hand;
pub use loader::{cleanup, prepare, prewarm};
pub use secrets::Secrets;

use dbdyno_door::Record;
use dbdyno_door::record::{EndReason, Failure};

/// Where records go.
pub trait Sink {
    /// Takes one record. Returns false when nobody listens any more; the run then stops.
    fn record(&mut self, record: &Record) -> bool;
}

/// How a command ended; the same as in the last record.
#[derive(Clone, Debug, PartialEq)]
pub struct Ended {
    /// Why.
    pub reason: EndReason,
    /// The error, where there was one.
    pub failure: Option<Failure>,
}
