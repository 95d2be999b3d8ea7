//! What is replayed.

use std::collections::BTreeMap;
use std::sync::Arc;

use dbdyno_schema::record::{StatementClass, StatementKind};

/// What is replayed.
#[derive(Debug, Default)]
pub struct Recorded {
    pub(super) texts: Vec<Text>,
    /// Each as numbers of its texts.
    pub(super) transactions: Vec<Box<[u32]>>,
    /// How often each was recorded, where they are played by chance.
    pub(super) weights: Vec<f64>,
    pub(super) kinds: Vec<StatementKind>,
    /// What was left out, and why, by number of statements.
    pub(super) skipped: BTreeMap<String, u64>,
    /// Statements that are replayed, as often as they were recorded.
    pub(super) statements: u64,
}

/// A statement, with its kind.
#[derive(Debug)]
pub(super) struct Text {
    pub(super) sql: Arc<str>,
    pub(super) kind: u32,
    pub(super) class: StatementClass,
}

impl Recorded {
    /// Statements that are replayed, as often as they were recorded, and what was left out, by the reason.
    pub fn counts(&self) -> (u64, &BTreeMap<String, u64>) {
        (self.statements, &self.skipped)
    }
}
