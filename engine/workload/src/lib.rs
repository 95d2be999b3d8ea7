//! What: the OLTP family as data and arithmetic, and SQL of the user's own.
//!
//! A workload is a list of statement kinds, a way to draw the next transaction, and the schema it runs over.
//! Nothing here waits for anything: [`Event`] is asked for one call after the other, and who asks sends it.
//!
//! # Layout
//! - [`program`]: any of them, as who sends the statements sees it; [`call`]: what it hands over.
//! - [`sql`]: the user's own transactions and where their parameters come from.
//! - [`replay`]: statements that a log has recorded. `turns`: which transaction of either a user plays next.
//! - [`kind`]: the statement kinds and their SQL.
//! - [`oltp`]: which statements make a transaction, with which parameters and which promise.
//! - [`shares`]: how often each kind stands in a transaction.
//! - `bulk`: the rows that bulk_insert collects; `new_ids`: the numbers of those that oltp_insert adds.
//! - [`schema`]: the tables, `postgresql`: in its SQL; [`TableStatements`]: for tables of another form; [`rows`]: their content as
//!   text.
//! - [`generated`]: tables of the user's own with values from generators; [`tables`]: either, as who loads them sees it.

mod bulk;
pub mod call;
pub mod generated;
pub mod kind;
mod new_ids;
pub mod oltp;
mod postgresql;
pub mod program;
pub mod replay;
pub mod rows;
pub mod schema;
pub mod shares;
pub mod sql;
mod table_statements;
pub mod tables;
mod turns;

pub use call::{Call, Seat, Statement};
pub use kind::{Dialect, Kind};
pub use new_ids::NewRows;
pub use oltp::Oltp;
pub use program::{Contents, Event, Program};
pub use table_statements::TableStatements;
