//! What a workload hands to whoever sends its statements, and for which user.

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
    /// Its parameters.
    pub values: Vec<Value>,
    /// Rows it promises to return or change; `None` where nothing can be promised.
    pub rows_expected: Option<u64>,
    /// What it counts as; `None` where the server's answer tells.
    pub class: Option<StatementClass>,
    /// Whether the columns of its first row are wanted; see [`Event::keep`](crate::Event::keep).
    pub keeps: bool,
}

/// A statement of the workload, as the server is to see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// With a `?` for each parameter.
    pub sql: String,
    /// Of its parameters.
    pub types: Vec<Type>,
    /// Whether the server is asked to prepare it.
    pub prepared: bool,
}

/// Which of how many users, over the whole fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat {
    /// From 0.
    pub index: u64,
    /// All of them.
    pub count: u64,
}
