//! The statements of a workload, and one call of a statement with its values.

use dbdyno_schema::record::StatementClass;
use dbdyno_wire::Value;
use dbdyno_wire::scripted::Type;

/// One statement to send.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// Position of the kind in [`Program::describe`](crate::Program::describe).
    pub kind: usize,
    /// Number of the statement, in the order of [`Program::statements`](crate::Program::statements).
    pub statement: usize,
    /// Values of its parameters, in order.
    pub values: Vec<Value>,
    /// Number of rows that it should return or change; `None` if unknown.
    pub rows_expected: Option<u64>,
    /// Whether the statement reads or writes; `None` if the server's answer decides.
    pub class: Option<StatementClass>,
    /// Whether a later statement uses the first row of its result; see [`Event::store_result`](crate::Event::store_result).
    pub is_result_used: bool,
}

/// A statement of the workload, as it is prepared or sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// The text, with a `?` for each parameter.
    pub sql: String,
    /// Types of its parameters, in order.
    pub types: Vec<Type>,
    /// Whether to prepare it on the server.
    pub prepared: bool,
}

/// The number of a user among the users of all engines of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserIndex {
    /// A number from 0 to `users` - 1.
    pub global: u64,
    /// Number of users of all engines.
    pub users: u64,
}
