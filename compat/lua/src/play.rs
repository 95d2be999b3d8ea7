//! Scripts in Lua on the event loop: thousands of users with globals of their own, on a few threads.
//!
//! ```text
//!  caller's thread                      worker threads
//!  Main: chunk, options, init()         Player: chunk, thread_init ── barrier ── event, event, … ── thread_done
//!    │  commands, hooks, done()            │
//!    └────────────── Broker: has what the scripts want done on connections ──────────────┘
//! ```
//! A script that asks for something leaves its coroutine; its task awaits the answer like any native user, and then
//! resumes it. What cannot be left (a query inside a callback of `string.gsub`) holds the whole thread, which
//! `blocking` notices; with `lua_threads` every user has a thread of its own.
//!
//! # Layout
//! - [`Main`]: the caller's side, and `stage` behind it, by way of `interface`; `parallel`: commands that run on all users.
//! - `worker`, `player`: the users of a run; `vms`: the LuaJIT states they have or share.
//! - `broker`: the connections of one state; `answers`: the requests it answers; `mishaps`: what becomes of errors;
//!   `counting`: what is counted.
//! - `blocking`: who holds a thread for too long.

// The only module of this crate that reads the clock and starts threads (ARCHITECTURE.md, rule 2).
#![allow(clippy::disallowed_methods)]

mod answers;
mod blocking;
mod broker;
mod counting;
mod exec_kind;
mod interface;
mod main;
mod mishaps;
mod parallel;
mod player;
mod stage;
mod vms;
mod worker;

pub use blocking::SCRIPT_BLOCKS;
pub use interface::{CommandKind, Setting};
pub use main::{Hooks, Main};

use crate::ScriptError;
use crate::api::cmdline::Refused;

/// Why a script came to nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LuaFailure {
    /// The chunk is not Lua, or failed.
    #[error("{0}")]
    Chunk(String),
    /// A function of it failed.
    #[error("`{function}' function failed: {message}")]
    Function {
        /// Its name, as sysbench gives it.
        function: String,
        /// What was raised.
        message: String,
    },
    /// The options that were given do not fit those that it declares; the line to tell.
    #[error("{0}")]
    Usage(String),
    /// There is no such function.
    #[error("cannot find the {0}() function")]
    Missing(String),
    /// A command has returned false.
    #[error("the command has returned false")]
    False,
}

impl LuaFailure {
    fn function(name: &str, error: ScriptError) -> Self {
        let message = match error {
            ScriptError::Restart => "(not a string)".into(),
            ScriptError::Message(message) => message,
        };
        LuaFailure::Function { function: name.into(), message }
    }

    fn options(refused: Refused) -> Self {
        match refused {
            Refused::Usage(line) => LuaFailure::Usage(line),
            Refused::Script(message) => {
                let function = "sysbench.cmdline.read_cmdline_options".into();
                LuaFailure::Function { function, message }
            }
        }
    }
}
