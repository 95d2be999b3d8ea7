//! Runs Lua scripts written for sysbench: LuaJIT states with sysbench's Lua API, and the simulated users that execute them.
//!
//! ```text
//!  run ──start──▶ Task (a coroutine of the script) ──▶ Progress::Requested(Request) ──▶ run answers, resumes
//!                                                  ├─▶ Progress::Returned(ReturnValue)
//!                                                  └─▶ Progress::Failed(ScriptError)
//! ```
//! States never wait. When a script calls the server, its coroutine yields with a [`Request`](sql::Request); [`run`]
//! awaits the answer and resumes the coroutine. If a coroutine cannot yield, for example inside a callback of
//! `string.gsub`, the call goes to [`RequestHandler::handle`](context::RequestHandler), which blocks the thread until
//! the answer arrives.
//!
//! # Layout
//! - [`host`]: the interface to the application that runs a script; [`config`]: a script and its settings.
//! - [`vm`]: a LuaJIT state, for one user or shared by many; [`compile`]: compiles Lua code in it.
//! - [`state`]: one user's script in a LuaJIT state; [`task`]: a call of one of its functions; [`error`]: why a call failed.
//! - [`context`]: data of one user, for the functions that scripts call.
//! - [`raw`]: Rust functions that Lua calls without mlua; the only file that touches Lua's stack.
//! - [`api`]: the `sysbench` table and other globals, one file per group; [`sql`]: drivers, connections, statements, results.
//! - [`run`]: the users of a run, their events and their connections.

mod api;
mod compile;
mod config;
mod context;
mod error;
mod host;
mod raw;
pub mod run;
mod sql;
mod state;
mod task;
#[cfg(test)]
mod testing;
mod vm;

pub use api::modules;
pub use config::{Database, Jit, RandomSettings, ScriptConfig, Source};
pub use host::{ScriptHost, Stat};
