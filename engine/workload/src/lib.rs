//! Workloads: the OLTP family, user-defined SQL, and replays.
//!
//! A workload consists of statement kinds, the transactions of each user, and tables. This crate does no I/O: the
//! runner calls [`Event::next`] and sends the [`Call`] that it returns.
//!
//! # Layout
//! - [`program`]: the common interface of workloads; [`call`]: one statement to send.
//! - `describe`: statements, tables and limits of a plan; `positions`: positions of parameters in a statement.
//! - [`sql`]: user-defined transactions and the sources of their parameters.
//! - [`replay`]: recorded statements; `picker`: selects a user's next transaction for `sql` and `replay`.
//! - [`kind`]: the statement kinds of the OLTP family and their SQL; `composition`: how many of each a transaction sends;
//!   [`oltp`]: their parameters.
//! - `bulk`: the rows that bulk_insert collects; `new_ids`: ids of the rows that oltp_insert adds.
//! - [`schema`]: the OLTP tables; `postgresql`: their SQL for PostgreSQL; [`TableStatements`]: SQL for tables without
//!   marks; [`rows`]: the tables' content.
//! - [`table_marks`]: the marks by which dbdyno recognises its tables.
//! - [`generated`]: user-defined tables with generated values; [`tables`]: the loader's interface to tables.

mod bulk;
pub mod call;
mod composition;
mod describe;
pub mod generated;
pub mod kind;
mod new_ids;
pub mod oltp;
mod picker;
mod positions;
mod postgresql;
pub mod program;
pub mod replay;
pub mod rows;
pub mod schema;
pub mod sql;
pub mod table_marks;
mod table_statements;
pub mod tables;

pub use call::{Call, Statement, UserIndex};
pub use describe::describe;
pub use kind::{Dialect, Kind};
pub use new_ids::NewRowIds;
pub use oltp::Oltp;
pub use program::{Contents, Event, Program};
pub use table_statements::TableStatements;
