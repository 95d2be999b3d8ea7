//! Events and statements that completed without error, as a worker reports them to its recorder.

use dbdyno_load::Nanos;
use dbdyno_schema::record::StatementClass;

/// One event that completed without error.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// When the event was due; in a closed loop this equals `start`.
    pub due: Nanos,
    /// When it started.
    pub start: Nanos,
    /// When its last statement completed.
    pub end: Nanos,
}

/// One statement that completed without error.
#[derive(Clone, Copy, Debug)]
pub struct Statement {
    /// Position of its kind in the workload's list.
    pub kind: usize,
    /// When it was sent.
    pub start: Nanos,
    /// When the last byte of its result arrived.
    pub end: Nanos,
    /// The class by which it is counted; if `None`, the result determines the class.
    pub class: Option<StatementClass>,
    /// Whether it returned a result set.
    pub returns_rows: bool,
    /// Rows returned or changed.
    pub rows: u64,
    /// Number of rows that the workload expects; `None` if unknown.
    pub rows_expected: Option<u64>,
    /// Bytes received.
    pub bytes: u64,
}
