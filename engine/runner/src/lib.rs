//! Executes plans: loads the tables, runs the load on worker threads, and writes records of the measurements.
//!
//! ```text
//!  cli ──Control──▶ inbox ◀──messages── worker thread (one event loop)
//!                     │                    ├── user task ── connection
//!                 coordinator              ├── user task ── connection
//!                     │                    └── timekeeper
//!                     ▼
//!                    Sink
//! ```
//! The coordinator runs on the caller's thread. It starts the workers, adds up their measurements, and passes the records
//! to a sink. It neither uses SQL nor measures anything itself. A worker measures in spans, each of which ends where a
//! tick, an interval or a phase ends. The worker then closes the span: it sends the counts to the coordinator.
//!
//! # Layout
//! - [`RunSpec`]: a plan, its [`Options`] and its [`Secrets`].
//! - [`run()`], `coordinator`, `control`, `merge`, `generator`, `missing_workers`: the coordinator and its messages.
//! - [`external`]: for programs that provide their own users, such as Lua scripts.
//! - `finish`: the end of the run, which all workers share. `arrival_queue`: the queue of a rate, which they share too.
//!   `share`: how they divide connections and limits.
//! - `worker`, `worker_context`, `worker_state`, `schedule`, `wake_queue`, `user`, `session`, `backoff`, `answer_waits`,
//!   `lost_connections`, `usage`: one worker thread.
//! - `slices`: the commands and records of a load in slices.
//! - `clock`, `timer`, `machine`: time and the operating system.
//! - [`prepare`], [`cleanup`]: the loader. `prewarm`: reading the tables before a run.
//! - [`AdminConnection`]: a connection outside any load. [`cancel_statements`]: ends what the server still executes.
//! - `failure`, `server_limits`: why a run failed and how to fix it; `client_errors`: the messages of the databases'
//!   own client libraries.

// Besides `wire`, this is the only crate of the engine that reads the clock (ARCHITECTURE.md, rule 2).
#![allow(clippy::disallowed_methods)]

mod abort;
mod admin_connection;
mod answer_waits;
mod arrival_queue;
mod backoff;
mod cancel;
pub mod client_errors;
mod clock;
mod command;
mod connector;
mod control;
mod coordinator;
pub mod external;
mod failure;
mod finish;
mod generator;
mod loader;
mod lost_connections;
mod machine;
mod merge;
mod missing_workers;
mod options;
mod prewarm;
mod schedule;
mod secrets;
mod server_limits;
mod session;
mod share;
mod sink;
mod slices;
mod timer;
mod usage;
mod user;
mod wake_queue;
mod worker;
mod worker_context;
mod worker_state;

pub use admin_connection::AdminConnection;
pub use cancel::cancel_statements;
pub use clock::unix_us;
pub use control::{Control, Inbox, channel};
pub use coordinator::run;
pub use loader::{cleanup, prepare, prewarm};
pub use options::{
    ExtraCounts, MeasurementEnd, NewRowIds, Options, QueueOverflow, Renewal, RunSpec, TableStatements,
};
pub use secrets::Secrets;
pub use sink::{RunEnd, Sink};
