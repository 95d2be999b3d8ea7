//! The output of `describe`: statements, tables and limits that the engine derives from a plan without a server, so that
//! other programs need not derive them again.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::record::ErrorClass;

/// The statements, tables and limits of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Description {
    /// Version of this schema; 1.
    pub schema: u32,
    /// Version of the engine.
    pub engine: String,
    /// The statements of the workload, in the order of a transaction. Empty for scripts, whose statements are known
    /// only while they run, and for replays, which have `recorded`.
    pub statements: Vec<StatementDescription>,
    /// The statements of a replay, the most frequent first; empty without one.
    pub recorded: Vec<RecordedStatement>,
    /// Statements that every connection tries to prepare. A server may refuse some: MySQL refuses BEGIN, which
    /// is then sent as text.
    pub prepared_per_connection: u64,
    /// The tables that `prepare` fills, as they are afterwards. Tables that only a script or `setup` creates are unknown.
    pub tables: Vec<TableGroup>,
    /// Limits of every plan, by name: the largest accepted value.
    pub limits: BTreeMap<String, u64>,
    /// The class of each error code of the target's protocol: MySQL's numbers, or SQLSTATEs. An SQLSTATE of two characters
    /// applies to all unlisted codes that begin with it. Every other code is `other`.
    pub error_classes: BTreeMap<String, ErrorClass>,
}

/// One statement of the workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StatementDescription {
    /// Name in the records. Several statements of user-defined SQL may share one.
    pub kind: String,
    /// The SQL text as written in the plan; for OLTP workloads, on the first table.
    pub sql: String,
    /// Times in its transaction; 0 if only some transactions send it.
    pub per_transaction: u32,
    /// Whether connections try to prepare it.
    pub prepared: bool,
    /// Where its parameters are, from left to right.
    pub parameters: Vec<ParameterPosition>,
    /// Rows that each execution returns or changes. A range that begins near the end of its table returns fewer.
    /// Null if the number is unknown.
    pub rows: Option<u64>,
}

/// Statements of a recorded log that differ only in their values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecordedStatement {
    /// The text, with a `?` in place of values; null for all statements that are too rare to be listed.
    pub sql: Option<String>,
    /// How often the log has them.
    pub count: u64,
    /// How many of these may write.
    pub writes: u64,
}

/// Position of a parameter in a statement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ParameterPosition {
    /// Name after the colon; null for a `?`.
    pub name: Option<String>,
    /// Characters (not bytes) before the colon or the `?`.
    pub at: u64,
}

/// Tables of the same shape and number of rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TableGroup {
    /// Names of the tables.
    pub names: Vec<String>,
    /// Storage engine in lower case; null if the server has none, or if user-defined SQL chooses it.
    pub engine: Option<String>,
    /// The columns in order. For tables that user-defined SQL creates: only the generated columns, without types.
    pub columns: Vec<ColumnDescription>,
    /// The indexes; null if user-defined SQL creates them.
    pub indexes: Option<Vec<IndexDescription>>,
    /// Rows of each table.
    pub rows: u64,
}

/// One column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ColumnDescription {
    /// Name of the column.
    pub name: String,
    /// `int`, `bigint` or `char`; null if user-defined SQL chooses it.
    pub r#type: Option<String>,
    /// Characters of a `char`.
    pub length: Option<u32>,
    /// Whether it may be NULL.
    pub nullable: bool,
    /// Whether the server generates its values.
    pub auto_increment: bool,
}

/// One index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IndexDescription {
    /// Names of the indexed columns, in order.
    pub columns: Vec<String>,
    /// Whether it is the primary key.
    pub primary: bool,
}
