//! LuaJIT states with the interface that sysbench gives its scripts, and scripts as users of the engine.
//!
//! ```text
//!  play ──start──▶ Task (a coroutine of the script) ──▶ Progress::Requested(Request) ──▶ play answers, resumes
//!                                                   ├─▶ Progress::Returned(ReturnValue)
//!                                                   └─▶ Progress::Failed(ScriptError)
//! ```
//! States never wait. When a script calls the server, its coroutine yields with a [`Request`](sql::Request); [`play`]
//! awaits the answer and resumes the coroutine. If a coroutine cannot yield, for example inside a callback of
//! `string.gsub`, the call goes to [`RequestHandler::handle`](context::RequestHandler), which blocks the thread until
//! the answer arrives.
//!
//! # Layout
//! - [`host`]: the interface to the program that runs a script; [`program`]: a script and its settings.
//! - [`vm`]: a LuaJIT state of one user or of many; [`compile`]: code in it.
//! - [`state`], [`task`]: one user's script in a state, and calls of its functions; [`error`]: their errors.
//! - [`context`]: data of one user, for the functions that scripts call.
//! - [`raw`]: functions that Lua calls without a wrapper; the only file that touches Lua's stack.
//! - [`api`]: the `sysbench` table and other globals, one file per group; [`sql`]: drivers, connections, statements, results.
//! - [`play`]: scripts under load.

mod api;
mod compile;
mod context;
mod error;
mod host;
pub mod play;
mod program;
mod raw;
mod sql;
mod state;
mod task;
#[cfg(test)]
mod testing;
mod vm;

pub use api::modules;
pub use host::{ScriptHost, Stat};
pub use program::{Database, Jit, Program, RandomSettings, Source};
