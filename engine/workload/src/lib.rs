//! What: the OLTP family as data and arithmetic.
//!
//! A workload is a list of statement kinds, a way to draw the next transaction, and the schema it runs over.
//! Nothing here waits for anything: [`oltp::Event`] is asked for one call after the other, and who asks sends it.
//!
//! # Layout
//! - [`kind`]: the statement kinds and their SQL.
//! - [`oltp`]: which statements make a transaction, with which parameters and which promise.
//! - [`shares`]: how often each kind stands in a transaction.
//! - `bulk`: the rows that bulk_insert collects; `new_ids`: the numbers of those that oltp_insert adds.
//! - [`schema`]: the tables, `postgresql`: in its SQL, `sysbench_form`: as sysbench makes them; [`rows`]: their content as text.

mod bulk;
pub mod kind;
mod new_ids;
pub mod oltp;
mod postgresql;
pub mod rows;
pub mod schema;
pub mod shares;
mod sysbench_form;

pub use kind::{Dialect, Kind};
pub use oltp::{Call, Event, Oltp, Seat};
