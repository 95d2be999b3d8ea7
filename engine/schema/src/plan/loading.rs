//! How rows are loaded, and how caches are warmed before a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the engine reads before a run, so that the run does not begin with a cold cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Prewarm {
    /// Nothing is read.
    #[default]
    None,
    /// Every table and every index, completely.
    Scan,
}

/// How rows are loaded.
///
/// dbdyno marks its tables in their comment. `prepare` keeps complete tables of the same specification, and `cleanup`
/// drops only marked tables. Several streams load one table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Loading {
    /// Connections that load at the same time, also within one table.
    pub streams: u32,
    /// How rows are sent.
    pub method: LoadingMethod,
}

impl Default for Loading {
    fn default() -> Self {
        Self { streams: 2, method: LoadingMethod::default() }
    }
}

/// How rows are sent to the server. The rows are the same either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LoadingMethod {
    /// LOAD DATA LOCAL, or COPY with PostgreSQL, if the server allows it; otherwise INSERT.
    #[default]
    Auto,
    /// LOAD DATA LOCAL; a server that refuses it is an error.
    LoadData,
    /// COPY; a server that refuses it is an error.
    Copy,
    /// INSERT of many rows.
    Insert,
}
