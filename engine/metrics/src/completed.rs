//! Reports of a worker to its recorder: events and statements that completed without error.

use dbdyno_load::Nanos;
use dbdyno_schema::record::StatementClass;

/// One event that completed without error.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// When it was due; in a closed loop the same as `start`.
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
    /// How it is counted; `None`: by its result.
    pub class: Option<StatementClass>,
    /// Whether it returned a result set.
    pub returns_rows: bool,
    /// Rows returned or changed.
    pub rows: u64,
    /// Rows that the workload expects; `None` if the number is unknown.
    pub rows_expected: Option<u64>,
    /// Bytes received.
    pub bytes: u64,
}
