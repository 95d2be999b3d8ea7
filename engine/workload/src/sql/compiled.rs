//! Compiled transactions, steps and statements.

use std::sync::Arc;

use dbdyno_schema::plan::ResultType;
use dbdyno_schema::record::{StatementClass, StatementKind};

use super::source::Sources;
use crate::picker::TransactionPicker;

/// A compiled workload of user-defined SQL.
#[derive(Clone, Debug)]
pub struct Sql(pub(super) Arc<Compiled>);

#[derive(Debug)]
pub(super) struct Compiled {
    pub(super) transactions: Vec<Transaction>,
    pub(super) picker: TransactionPicker,
    pub(super) statements: Vec<Template>,
    pub(super) kinds: Vec<StatementKind>,
    pub(super) sources: Sources,
    pub(super) session: Vec<String>,
    pub(super) teardown: Vec<String>,
    /// Whether users pause before or after a transaction.
    pub(super) has_pauses: bool,
    /// Maximum number of transactions of each user.
    pub(super) each: Option<u64>,
    pub(super) seed: u64,
}

#[derive(Debug)]
pub(super) struct Transaction {
    pub(super) steps: Vec<Step>,
    pub(super) loops: Vec<Loop>,
    /// How long a user waits before the transaction, in microseconds.
    pub(super) keying_us: u64,
    /// Mean of the time that a user waits after the transaction, in microseconds.
    pub(super) think_us: u64,
}

/// Steps that are repeated together.
#[derive(Clone, Debug)]
pub(super) struct Loop {
    /// Number of the first step.
    pub(super) first: usize,
    /// Number of the step after the last one.
    pub(super) end: usize,
    pub(super) times: Times,
    /// Parameters that get a value before the first repetition.
    pub(super) draws: Vec<usize>,
}

/// How often the steps of a loop are executed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Times {
    Number(u64),
    /// The value of a parameter.
    Parameter(usize),
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
    /// Parameters that get a value from the first row of the result.
    pub(super) result_parameters: Arc<[ResultParameter]>,
}

/// A parameter that gets a value from a result.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResultParameter {
    pub(super) parameter: usize,
    /// Number of the column, from 0.
    pub(super) column: usize,
    pub(super) r#type: ResultType,
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
    /// The number of the current repetition.
    Repetition,
    /// A `?` of the user's text, which is sent unchanged.
    QuestionMark,
}
