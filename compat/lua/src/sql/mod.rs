//! `sysbench.sql`: drivers, connections, statements, parameters, results.
//!
//! In Lua, each of these objects is a table that contains a number. [`Sql`] holds the Rust object with that number. The
//! steps of an execution:
//!
//! ```text
//! st:execute()             interface.lua: reads the result of the call
//!   └ raw.execute          calls.rs: stores the request, yields
//!       └ run/requests.rs  sends what `Sql::execution` returns, awaits, calls `Connection::succeed` or `fail`
//!   ┌ resumes with true (it returned rows), false (it failed) or no value (it returned no rows)
//! ```
//! # Layout
//! - `request`: requests and results; `objects`: connections, statements and parameters by number.
//! - `bulk`: collects the rows of a bulk insert.
//! - `calls`: the functions that Lua calls.
//! - `interface`, `interface.lua`: the methods of the Lua tables, and their errors; `exported.lua`: functions for scripts that
//!   use `ffi.C` instead.

mod bulk;
mod calls;
mod interface;
mod objects;
mod request;

pub(crate) use calls::request;
pub(crate) use interface::{CONNECT_FAILED, exported, install};
pub use objects::Sql;
pub use request::{Answer, ConnectionId, Quoting, Request, SqlError, StatementId, StatementMode};
