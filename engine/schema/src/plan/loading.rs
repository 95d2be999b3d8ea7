//! How rows are loaded, and what is read before a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is read before a run, so that it does not begin on a cold cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Prewarm {
    /// Nothing is read.
    #[default]
    None,
    /// Every table and every index of it, from end to end.
    Scan,
}

/// How rows are loaded.
///
/// Tables carry dbdyno's mark in their comment. `prepare` keeps complete ones of the same specification, and `cleanup`
/// drops nothing without the mark. Streams share a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Loading {
    /// Connections that load at the same time, inside one table too.
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
    /// LOAD DATA LOCAL, or COPY with PostgreSQL, where the server allows it; INSERT otherwise.
    #[default]
    Auto,
    /// LOAD DATA LOCAL; a server that refuses it is an error.
    LoadData,
    /// COPY; a server that refuses it is an error.
    Copy,
    /// INSERT of many rows.
    Insert,
}
