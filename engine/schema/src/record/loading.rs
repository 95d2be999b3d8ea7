//! Records of `prepare`, `cleanup` and `prewarm`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Progress of `prepare`, `cleanup` and `prewarm`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Loading {
    /// The step.
    pub step: LoadingStep,
    /// The table.
    pub table: String,
    /// Rows loaded or read so far, over all tables.
    pub rows: u64,
    /// Rows to load or read, over all tables.
    pub rows_planned: u64,
    /// Time since the beginning.
    pub at_us: u64,
}

/// A step of `prepare`, `cleanup` or `prewarm`. The engine records the beginning of a step only if it creates tables
/// one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LoadingStep {
    /// Creating the table.
    Creating,
    /// Loading rows.
    Filling,
    /// Creating the index on k.
    Indexing,
    /// Dropping the table, if it exists.
    Dropping,
    /// Reading the table and its indexes.
    Prewarming,
    /// The table was created.
    Created,
    /// Rows were loaded.
    Rows,
    /// The index on k was created.
    Indexed,
    /// The table existed already, with the same specification.
    Kept,
    /// The table was dropped.
    Dropped,
    /// The table and its indexes were read.
    Prewarmed,
}

/// Result of `prepare`. Rows and indexes are timed separately: `prepare` first loads all rows, then creates all indexes,
/// then has the server collect statistics (ANALYZE). Tables that existed already are not included.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Loaded {
    /// How rows were sent.
    pub way: LoadingWay,
    /// Connections that loaded at the same time.
    pub streams: u32,
    /// Rows loaded.
    pub rows: u64,
    /// Bytes of rows sent, with separators, without protocol headers.
    pub bytes: u64,
    /// From the first row sent to the last one stored, over all tables.
    pub rows_us: u64,
    /// From the beginning of the first index to the end of the last; 0 without an index.
    pub index_us: u64,
    /// The user-defined statements after the rows of generated tables.
    #[serde(default)]
    pub after_us: u64,
    /// ANALYZE over all tables.
    pub analyze_us: u64,
    /// Statements sent again because streams blocked each other (deadlock, lock wait timeout).
    pub retries: u64,
    /// Session settings of the loading connections, by name.
    pub session_settings: BTreeMap<String, String>,
    /// Times per table. Tables that are loaded at the same time overlap.
    pub tables: Vec<LoadedTable>,
}

/// How rows were sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LoadingWay {
    /// LOAD DATA LOCAL INFILE.
    LoadDataLocal,
    /// COPY FROM STDIN.
    Copy,
    /// INSERT of many rows.
    Insert,
    /// No rows to load.
    None,
}

/// Rows loaded into one table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadedTable {
    /// The table.
    pub table: String,
    /// Rows loaded.
    pub rows: u64,
    /// Bytes of rows sent.
    pub bytes: u64,
    /// From its first row sent to its last row stored.
    pub rows_us: u64,
    /// Creating its index; 0 without an index.
    pub index_us: u64,
}
