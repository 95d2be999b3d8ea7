//! Runs whose users another program brings: scripts, say.
//!
//! [`play`] does for them what [`crate::run`] does for a plan's workload: it starts the workers that the program makes, adds up
//! what they measure, and writes the same records. A worker is a thread that calls [`work_on_this_thread`], sets up its
//! users, calls [`Links::ready`], waits for [`Signal::Go`], and hands its users to [`Post::play`]. A user asks its [`Desk`]
//! when the next event is due and reports what became of it. [`command`] writes the records of a command that measures nothing.

pub use crate::command::command;
pub use crate::conductor::play;
pub use crate::connector::{AnyConnector, connector};
pub use crate::control::WorkerReady;
pub use crate::desk::{Desk, Seat};
pub use crate::failure::{code, is_lost, is_retried};
pub use crate::machine::{give_back_memory, raise_open_files, thread_cpu, thread_run_queue_wait};
pub use crate::post::{Links, Post, Signal, spawn_user, work_on_this_thread};
pub use crate::session::OPENING_MAX;
pub use dbdyno_wire::{mysql::errors as mysql_errors, postgres::errors as postgres_errors};
