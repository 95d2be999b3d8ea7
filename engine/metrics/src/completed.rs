//! What a worker reports to its recorder: an event or a statement that completed without error.

use dbdyno_load::Nanos;
use dbdyno_schema::record::StatementClass;

/// One event that completed without error.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// When it was due; in a closed loop the instant it started.
    pub due: Nanos,
    /// When it started.
    pub start: Nanos,
    /// When its last statement was answered.
    pub end: Nanos,
}

/// One statement that completed without error.
#[derive(Clone, Copy, Debug)]
pub struct Statement {
    /// Position of its kind in the workload's list.
    pub kind: usize,
    /// When it was sent.
    pub start: Nanos,
    /// When its last byte had come.
    pub end: Nanos,
    /// What it counts as; `None` to decide by its answer.
    pub class: Option<StatementClass>,
    /// Whether it returned a result set.
    pub returns_rows: bool,
    /// Rows returned or changed.
    pub rows: u64,
    /// Rows that the workload promises; `None` where it promises nothing.
    pub rows_expected: Option<u64>,
    /// Bytes received.
    pub bytes: u64,
}
