//! Options of the plan for loading rows and for warming caches before a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Data that the engine reads before a run, so that the run does not begin with a cold cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Prewarm {
    /// None.
    #[default]
    None,
    /// Every table and every index, completely.
    Scan,
}

/// Options for loading rows.
///
/// dbdyno marks its tables in the table comment. `prepare` keeps complete tables with the same specification, and
/// `cleanup` drops only marked tables.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Loading {
    /// Number of connections that load rows concurrently; several of them may load the same table.
    pub streams: u32,
    /// The statement that sends rows.
    pub method: LoadingMethod,
    /// The part of `prepare` to execute, if several engines load together.
    pub part: LoadingPart,
    /// Whether a statement of setup, or of a script's `prepare`, that creates a table also gives it dbdyno's mark, so that
    /// `dbdyno data` finds the table after a command that was killed. Unless the server knows table comments, it refuses the
    /// statement.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub mark_created: bool,
}

impl Default for Loading {
    fn default() -> Self {
        Self {
            streams: 2,
            method: LoadingMethod::default(),
            part: LoadingPart::default(),
            mark_created: false,
        }
    }
}

/// A part of `prepare`. Several engines load together in three calls: one creates the tables, all of them fill them, each
/// with the rows of its segment, and one completes them. Tables whose rows have generators are loaded by one engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LoadingPart {
    /// Everything.
    #[default]
    All,
    /// Create the missing tables.
    Create,
    /// Fill the tables that `create` has left unfinished.
    Fill,
    /// Build their indexes, refresh their statistics, and mark them as complete.
    Complete,
}

/// The statement that sends rows to the server. All methods load the same rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LoadingMethod {
    /// LOAD DATA LOCAL, or COPY with PostgreSQL, if the server allows it; otherwise INSERT.
    #[default]
    Auto,
    /// LOAD DATA LOCAL; `prepare` fails if the server refuses it.
    LoadData,
    /// COPY; `prepare` fails if the server refuses it.
    Copy,
    /// INSERT with many rows.
    Insert,
}
