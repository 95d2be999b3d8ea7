//! WHAT is sent: the OLTP family as data and arithmetic, and SQL of the user's own.
//!
//! A workload is a list of statement kinds, the next transaction of each user, and the tables. Nothing here waits: the
//! runner calls [`Event::next`] and sends the [`Call`] that it returns.
//!
//! # Layout
//! - [`program`]: any workload, as the runner sees it; [`call`]: one statement to send.
//! - `describe`: what a plan means, without a server; `positions`: where parameters are in a statement.
//! - [`sql`]: the user's own transactions and the sources of their parameters.
//! - [`replay`]: recorded statements. `picker`: which transaction of either a user plays next.
//! - [`kind`]: the statement kinds of the OLTP family and their SQL; `composition`: how many of each a transaction sends;
//!   [`oltp`]: their parameters.
//! - `bulk`: the rows that bulk_insert collects; `new_ids`: ids of the rows that oltp_insert adds.
//! - [`schema`]: the tables, `postgresql`: in its SQL; [`TableStatements`]: tables of another form; [`rows`]: their content.
//! - [`generated`]: the user's own tables with generated values; [`tables`]: either kind, as the loader sees it.

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
mod table_statements;
pub mod tables;

pub use call::{Call, Statement, UserIndex};
pub use describe::describe;
pub use kind::{Dialect, Kind};
pub use new_ids::NewRows;
pub use oltp::Oltp;
pub use program::{Contents, Event, Program};
pub use table_statements::TableStatements;
