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
//! - [`Order`]: what is to be done; [`Options`]: what of it no plan says.
//! - [`run()`], `conductor`, `merge`, `health`: the caller's side.
//! - [`external`]: for programs whose users play something else than the plan's workload.
//! - `finish`: how all workers come to the same end.
//! - `worker`, `desk`, `sleepers`, `user`, `session`, `backoff`, `watch`: one worker thread.
//! - `clock`, `timer`, `machine`: time and the operating system.
//! - [`prepare`], [`cleanup`]: the loader. `prewarm`: reading the tables before a run.
//! - [`Hand`]: one connection outside any load.
//! - `secrets`: passwords and certificates, as the caller has read them.
//! - `failure`, `refusal`: errors with a way out; `client_words`: as the databases' own client libraries tell them.

// With `wire` the only crate that reads the clock (ARCHITECTURE.md, rule 2).
#![allow(clippy::disallowed_methods)]

mod absent;
mod backoff;
pub mod client_words;
mod clock;
mod command;
mod conductor;
mod connector;
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
mod options;
mod post;
mod prewarm;
mod refusal;
mod secrets;
mod session;
mod sink;
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
pub use options::{
    ExtraCounts, LastEvents, NewRows, Options, Order, QueueOverflow, Renewal, TableStatements,
};
pub use secrets::Secrets;
pub use sink::{Ended, Sink};
