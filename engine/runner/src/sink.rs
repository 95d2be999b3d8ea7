//! The destination of records, and the end of a command.

use dbdyno_schema::Record;
use dbdyno_schema::record::{EndReason, Failure};

/// A destination of records.
pub trait Sink {
    /// Writes one record. Returns false if the reader is gone; the run then stops.
    fn record(&mut self, record: &Record) -> bool;
}

/// How a command ended, as its last record says.
#[derive(Clone, Debug, PartialEq)]
pub struct RunEnd {
    /// Why it ended.
    pub reason: EndReason,
    /// The error, if there was one.
    pub failure: Option<Failure>,
}
