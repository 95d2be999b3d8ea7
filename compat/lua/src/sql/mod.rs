//! `sysbench.sql`: drivers, connections, statements, parameters, results.
//!
//! What a script holds are tables with a number in them; what they stand for lives here, in [`Sql`], where the driver
//! of the state finds it too. The way of a statement that a script executes:
//!
//! ```text
//! st:execute()           interface.lua: looks at what the call is told
//!   └ raw execute        calls.rs: notes the request, leaves the coroutine
//!       └ driver         writes the message from `Sql::execution`, awaits, notes `Sql::succeeded` or `Sql::failed`
//!   ┌ resumed with yes (rows), no (failed) or nothing
//! ```
//! # Layout
//! - `request`, `connections`: what the driver sees.
//! - `book`: connections, statements and parameters by number.
//! - `bulk`: rows collected for one INSERT.
//! - `calls`, `parameters`, `results`: what Lua calls; `arguments`: what these have in common.
//! - `interface.lua`: methods, errors and their words; `exported.lua`: the same for scripts that call through `ffi.C`.

mod arguments;
mod book;
mod bulk;
mod calls;
mod connections;
mod parameters;
mod request;
mod results;
mod template;

pub(crate) use arguments::want;
pub use book::Bound;
pub(crate) use calls::{exported, install};
pub use connections::Sql;
pub use request::{Answer, ConnectionId, Execution, Quoting, Request, SqlError, StatementId, Way};
