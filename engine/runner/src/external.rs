//! Runs whose users are provided by another program, such as the Lua scripts of `dbdyno-compat`.
//!
//! [`run_workers`] corresponds to [`crate::run`]: it starts the workers that the program creates, adds up their measurements,
//! and writes the same records. A worker is a thread that calls [`run_worker`], creates its users, calls
//! [`CoordinatorLink::report_ready`], waits for [`Signal::Go`], and passes its users to [`WorkerContext::run_users`]. A user
//! asks its [`WorkerState`] when its next event is due, and reports the result. [`run_command`] writes the records of a
//! command without measurements.

pub use crate::clock::unix_us;
pub use crate::command::run_command;
pub use crate::connector::{AnyConnector, connector};
pub use crate::control::{CoordinatorLink, Signal, WorkerReady};
pub use crate::coordinator::run_workers;
pub use crate::failure::{error_code, is_lost, is_retried};
pub use crate::lost_connections::SERVER_GONE;
pub use crate::machine::{
    disable_core_files, memory_peak_bytes, process_cpu, raise_open_files, release_memory, thread_cpu,
    thread_run_queue_wait,
};
pub use crate::session::OPENING_MAX;
pub use crate::worker_context::{WorkerContext, run_worker, spawn_user};
pub use crate::worker_state::{UserId, WorkerState};
pub use dbdyno_wire::{mysql::errors as mysql_errors, postgres::errors as postgres_errors};
pub use dbdyno_workload::table_marks::SetupMarks;
