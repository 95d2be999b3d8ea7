//! Compiled transactions, steps and statements.

use std::sync::Arc;

use dbdyno_schema::record::{StatementClass, StatementKind};

use super::source::Sources;
use crate::picker::TransactionPicker;

/// A compiled workload of user-defined SQL.
#[derive(Clone, Debug)]
pub struct Sql(pub(super) Arc<Compiled>);

#[derive(Debug)]
pub(super) struct Compiled {
    pub(super) transactions: Vec<Vec<Step>>,
    pub(super) picker: TransactionPicker,
    pub(super) statements: Vec<Template>,
    pub(super) kinds: Vec<StatementKind>,
    pub(super) sources: Sources,
    pub(super) session: Vec<String>,
    pub(super) teardown: Vec<String>,
    /// Maximum number of transactions of each user.
    pub(super) each: Option<u64>,
    pub(super) seed: u64,
}

/// One statement in a compiled transaction.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) kind: usize,
    pub(super) statement: usize,
    /// Number of rows that the statement should return or change.
    pub(super) rows: Option<u64>,
    /// Parameter whose value is that number instead.
    pub(super) rows_parameter: Option<usize>,
    pub(super) class: StatementClass,
    /// Parameters that get a new value before the statement is sent.
    pub(super) draws: Arc<[usize]>,
    /// Parameters that get a value from the first row of the result, each with its column, counted from 0.
    pub(super) result_parameters: Arc<[(usize, usize)]>,
}

/// A distinct statement text, and the sources of its placeholders.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Template {
    pub(super) sql: String,
    pub(super) prepared: bool,
    pub(super) slots: Vec<Slot>,
}

/// What replaces a `?` of the compiled text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Slot {
    Parameter(usize),
    /// A `?` of the user's text, which is sent unchanged.
    QuestionMark,
}
