//! Runs Lua scripts on the event loop: thousands of users with their own globals, on a few threads.
//!
//! ```text
//!  caller's thread                        worker threads
//!  MainState: chunk, options, init()      ScriptUser: chunk, thread_init ── barrier ── event, event, … ── thread_done
//!    │  commands, hooks, done()              │
//!    └────────────── UserSession: executes the script's requests on connections ──────────────┘
//! ```
//! When a script calls the server, its coroutine yields with a request. The user's task awaits the result, as a task of a
//! native workload does, and then resumes the coroutine. If a coroutine cannot yield (for example a query inside a callback
//! of `string.gsub`), the request blocks the thread, which delays the other users of the thread. `blocking` warns about
//! such delays; with `--lua-threads=on` every user has its own thread.
//!
//! # Layout
//! - `interface`: the trait [`Script`]; `main_state`: its implementation; `parallel`: commands that run for all users.
//! - `worker`: a thread with its users; `user`: one user.
//! - `session`: the connections of one user; `requests`: executes requests; `errors`: handles failed statements and
//!   connections; `counting`: updates the counters.
//! - `failure`: why a script failed.
//! - `blocking`: detects a script that blocks its thread.

// The only module of this crate that reads the clock and starts threads (ARCHITECTURE.md, rule 2).
#![allow(clippy::disallowed_methods)]

mod blocking;
mod counting;
mod errors;
mod failure;
mod interface;
mod main_state;
mod parallel;
mod requests;
mod session;
mod user;
mod worker;

pub use blocking::SCRIPT_BLOCKS;
pub use failure::LuaFailure;
pub use interface::{CommandKind, Report, Script, ScriptSetup};
pub use main_state::load;
