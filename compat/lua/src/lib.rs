//! What, in Lua: LuaJIT states with the interface that sysbench gives its scripts.
//!
//! ```text
//!  drive ──resume──▶ Task (a coroutine of the script) ──▶ Step::Wants(Request) ──▶ drive answers, resumes
//!                                                     ├─▶ Step::Done(Returned)
//!                                                     └─▶ Step::Failed(ScriptError)
//! ```
//! Nothing here waits. A script's call into the server leaves its coroutine with a [`Request`]; whoever drives it
//! has it done and resumes the coroutine by hand. Where a coroutine cannot be left (inside a callback of `string.gsub`,
//! say) the request goes to [`World::at_once`], which has it done before it returns.
//!
//! # Layout
//! - [`front`]: what a script needs from whoever runs it.
//! - [`program`]: what is to run; plain data, shared by all states.
//! - [`vm`]: a LuaJIT state, of one user or of many; `chunks`: code in it.
//! - [`state`], [`task`]: one user's script in it, and its functions under way.
//! - [`context`]: what the functions of one user share; `current`: whose turn it is.
//! - [`error`]: why a function of a script failed.
//! - `raw`: functions that Lua calls without any wrapper in between; the only file that touches Lua's stack.
//! - `life`: events, and what a loop of the script's own calls.
//! - `api/`: the `sysbench` table and its neighbours, one file per group.
//! - [`play`]: scripts under load, as users of the engine.
//! - `sql/`: drivers, connections, statements, results.

pub mod api;
mod chunks;
pub mod context;
mod current;
pub mod error;
pub mod front;
mod life;
pub mod play;
pub mod program;
mod raw;
pub mod sql;
pub mod state;
pub mod task;
#[cfg(test)]
mod testing;
pub mod vm;

pub use context::{Context, Counter, World};
pub use error::ScriptError;
pub use front::{Front, Level, Stat};
pub use program::{Compat, Database, Jit, Program, RandomSettings, Source};
pub use state::State;
pub use task::{Returned, Step, Task};
pub use vm::Vm;
