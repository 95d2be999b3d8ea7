//! `sysbench.sql`: drivers, connections, statements, parameters, results.
//!
//! A script holds tables that contain a number. [`Sql`] holds the objects with these numbers, and the session that
//! executes requests finds them there too. The steps of an execution:
//!
//! ```text
//! st:execute()           interface.lua: reads the result of the call
//!   └ raw execute        calls.rs: stores the request, yields
//!       └ driver         writes the message from `Sql::execution`, awaits, calls `Connection::succeed` or `fail`
//!   ┌ resumed with true (rows), false (failed) or nothing
//! ```
//! # Layout
//! - `request`: requests and results; `objects`: connections, statements and parameters by number.
//! - `bulk`: rows collected for one INSERT.
//! - `calls`: the functions that Lua calls.
//! - `interface`, `interface.lua`: methods, errors and their messages; `exported.lua`: the same for scripts that call through
//!   `ffi.C`.

mod bulk;
mod calls;
mod interface;
mod objects;
mod request;

pub(crate) use calls::request;
pub(crate) use interface::{CONNECT_FAILED, exported, install};
pub use objects::Sql;
pub use request::{Answer, ConnectionId, Quoting, Request, SqlError, StatementId, StatementMode};
