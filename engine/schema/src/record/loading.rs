//! Records of `prepare` and `cleanup`, and of the reading before a run.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Progress of `prepare` and `cleanup`, and of the reading before a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Loading {
    /// The step.
    pub step: LoadingStep,
    /// The table.
    pub table: String,
    /// Rows loaded, or read, over all tables.
    pub rows: u64,
    /// Rows to load, or to read, over all tables.
    pub rows_planned: u64,
    /// Time since the beginning.
    pub at_us: u64,
}

/// A step of `prepare` or `cleanup`, or of the reading before a run. Steps under way are recorded only where tables
/// are made one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LoadingStep {
    /// The table is being made.
    Creating,
    /// Loading of rows begins.
    Filling,
    /// The index on k is being made.
    Indexing,
    /// The table is being dropped, if it is there.
    Dropping,
    /// The table and its indexes are being read.
    Prewarming,
    /// The table was made.
    Created,
    /// Rows were loaded.
    Rows,
    /// The index on k was made.
    Indexed,
    /// The table was there already, with the same specification.
    Kept,
    /// The table was dropped.
    Dropped,
    /// The table and its indexes were read, before a run.
    Prewarmed,
}

/// Result of `prepare`. Rows and index are timed apart: first all rows are loaded, then all indexes are made, then
/// the server counts what it has (ANALYZE). Tables that were there already are not in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Loaded {
    /// How rows were sent.
    pub way: LoadingWay,
    /// Connections that loaded at the same time.
    pub streams: u32,
    /// Rows loaded.
    pub rows: u64,
    /// Bytes of rows sent, with what separates them, without the protocol's headers.
    pub bytes: u64,
    /// From the first row sent to the last one stored, over all tables.
    pub rows_us: u64,
    /// From the beginning of the first index to the end of the last; 0 without an index.
    pub index_us: u64,
    /// The user's own statements after the rows of generated tables.
    #[serde(default)]
    pub after_us: u64,
    /// ANALYZE over all tables.
    pub analyze_us: u64,
    /// Statements sent again because streams blocked each other (deadlock, lock wait timeout).
    pub retries: u64,
    /// What the loading connections set for their sessions, by name.
    pub session_settings: BTreeMap<String, String>,
    /// Table by table. Tables that are loaded at the same time overlap.
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
    /// There was nothing to load.
    None,
}

/// What was loaded into one table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadedTable {
    /// The table.
    pub table: String,
    /// Rows loaded.
    pub rows: u64,
    /// Bytes of rows sent.
    pub bytes: u64,
    /// From its first row sent to its last one stored.
    pub rows_us: u64,
    /// Making its index; 0 without one.
    pub index_us: u64,
}
