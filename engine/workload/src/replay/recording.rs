//! The statements of a replay, in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use dbdyno_schema::description::RecordedStatement;
use dbdyno_schema::record::{StatementClass, StatementKind};

/// Transactions and statements of a replay.
#[derive(Debug, Default)]
pub struct Recording {
    pub(super) texts: Vec<Text>,
    /// The text numbers of each transaction.
    pub(super) transactions: Vec<Box<[u32]>>,
    /// How often each transaction was recorded; only for weighted order.
    pub(super) weights: Vec<f64>,
    pub(super) kinds: Vec<StatementKind>,
    /// For each kind its text, how often it was recorded, and how often with a statement that may write.
    pub(super) recorded: Vec<RecordedStatement>,
    /// Number of statements that are not replayed, by reason.
    pub(super) skipped: BTreeMap<String, u64>,
    /// Number of replayed statements, with repetitions.
    pub(super) statements: u64,
}

/// The text of a statement, with its kind and class.
#[derive(Debug)]
pub(super) struct Text {
    pub(super) sql: Arc<str>,
    /// Index in `Recording::kinds`.
    pub(super) kind: u32,
    pub(super) class: StatementClass,
}

impl Recording {
    /// Number of replayed statements, with repetitions, and the number of statements that are not replayed, by reason.
    pub fn counts(&self) -> (u64, &BTreeMap<String, u64>) {
        (self.statements, &self.skipped)
    }

    /// The recorded statements by kind, the most frequent first.
    pub fn recorded(&self) -> &[RecordedStatement] {
        &self.recorded
    }
}
