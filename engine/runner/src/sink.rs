//! Where records go, and how a command ends.

use dbdyno_schema::Record;
use dbdyno_schema::record::{EndReason, Failure};

/// Where records go.
pub trait Sink {
    /// Takes one record. Returns false when nobody listens any more; the run then stops.
    fn record(&mut self, record: &Record) -> bool;
}

/// How a command ended; the same as in the last record.
#[derive(Clone, Debug, PartialEq)]
pub struct Ended {
    /// Why.
    pub reason: EndReason,
    /// The error, where there was one.
    pub failure: Option<Failure>,
}
